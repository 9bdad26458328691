"""Finds the codes of a text: tokens with a digit that name something and are not a quantity, and the addresses in it.

`INC-1042`, `v2.18`, `10.0.3.7`, `A4`, `+46 8 123 45 67`, `https://example.org/a`, `ann@example.org`. Two codes are the
same when their letters and digits are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.text.numbers import find_numbers
from agent.text.units import UNITS

_ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s<>\"')\]]+|(?<![\w@])www\.[^\s<>\"')\]]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[a-zA-Z]{2,24}\b",
    re.IGNORECASE,
)
_PHONE = re.compile(
    r"(?<![\w.])(?<!\d[ .-])(?:\+\d|0[1-9]\d{0,3}(?: / |[-/ ])\d|\(0\d{1,4}\) ?\d|\(\d{3}\) ?\d(?=\d\d-\d{4}\b))"
    r"(?:[ ()./-]{0,2}\d){5,13}(?![\w])"
)
_GROUPED = re.compile(
    r"(?<!\w)[A-Z]{2}\d\d(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,4})?(?!\w)"  # an account (ISO 13616)
    r"|(?<![\w.,-])\d{4}(?:[ -]\d{4}){3}(?![\w-])"  # a card
    r"|(?<![\w.,-])\d{3} \d{3} \d{3} \d{5}(?![\w-])"  # a French company
)
"""Numbers that name something, in groups of other sizes than thousands."""
_TOKEN = re.compile(r"(?<![^\W_])[^\W_]+(?:[-_./:#+][^\W_]+)*")
_NUMBER_BEFORE = re.compile(r"\d[ \u00a0\u202f]$")
_MIN_NUMBER = 7
_VERSION = re.compile(r"\d+(?:\.\d+){2,}")
_DOTTED_PHONE = re.compile(r"(?=(?:\.?\d){8,13}$)(?:0[1-9]\d{0,4}(?:\.\d{2,4}){2,5}|\d{3}\.\d{3}\.\d{4})")
"""A telephone number with points between its groups. No part of a version or a network's address begins with a zero."""


@dataclass(frozen=True, slots=True)
class CodeMention:
    """A code or address where it stands, `text[start:end]`. `key` is what is compared."""

    text: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """Letters and digits in small letters."""
        return make_code_key(self.text)

    @property
    def is_number(self) -> bool:
        """Whether it is a number that names something, as that of a telephone: its groups may be written otherwise."""
        if len(self.key) < _MIN_NUMBER or not self.key.isdigit():
            return False
        return _VERSION.fullmatch(self.text) is None or _DOTTED_PHONE.fullmatch(self.text) is not None


def make_code_key(text: str) -> str:
    """The letters and digits of a code in small letters: `INC-1042` and `inc 1042` have one key."""
    return "".join(char for char in text.casefold() if char.isalnum())


def find_codes(text: str) -> list[CodeMention]:
    """The codes and addresses of a text in order. Dates are not told apart: `agent.text.values` does that."""
    codes = [CodeMention(match[0].rstrip(".,;:!?"), match.start(), match.start() + len(match[0].rstrip(".,;:!?")))
             for pattern in (_ADDRESS, _PHONE, _GROUPED) for match in pattern.finditer(text)]  # fmt: skip
    covered = bytearray(len(text))
    for mention in codes:
        covered[mention.start : mention.end] = b"\x01" * (mention.end - mention.start)
    codes += [mention for mention in _iter_tokens(text) if not any(covered[mention.start : mention.end])]
    return sorted(codes, key=lambda mention: mention.start)


def _iter_tokens(text: str) -> Iterator[CodeMention]:
    for match in _TOKEN.finditer(text):
        token = match[0]
        if not any(char.isdecimal() for char in token) or _is_unit(text, match):
            continue
        if _VERSION.fullmatch(token):
            if _DOTTED_PHONE.fullmatch(token) or len(find_numbers(token)) != 1:
                yield CodeMention(token, match.start(), match.end())
        elif any(char.isalpha() for char in token) and not _is_quantity(token):
            yield CodeMention(token, match.start(), match.end())


def _is_unit(text: str, match: re.Match[str]) -> bool:
    """Whether a token with a digit is the unit of the number before it: `84 m2`."""
    start = match.start()
    return match[0].lower() in UNITS and _NUMBER_BEFORE.search(text, max(0, start - 3), start) is not None


def _is_quantity(token: str) -> bool:
    """Whether a token with letters is a number with its unit, scale or ending, or several: `10kg`, `3rd`, `5k`,
    `7-day`, `2/week`."""
    numbers = find_numbers(token)
    if not numbers:
        return False
    rest = token
    for number in reversed(numbers):
        rest = rest[: number.start] + " " + rest[number.end :]
    words = re.findall(r"[^\W_]+", rest)
    # What is left is words of their own: "7-day" is a quantity, "A4" left the letter it begins with.
    return all(len(word) > 2 and word.isalpha() and word.islower() for word in words)
