"""Personal data that has a form: found by pattern, kept only if its checksum or its own rules hold.

Names and street addresses have no form; finding them takes a model, which may join as a further `Guardrail`.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple

from stdnum import iban, luhn
from stdnum.exceptions import ValidationError

from agent.guardrails.identities import identities
from agent.guardrails.models import Finding, Guarded, GuardrailsInput
from agent.guardrails.phones import phones
from agent.guardrails.spans import Span

_LOCAL: Final = re.compile(r"[\w.!#$%&'*+^`{|}~-]{1,64}\Z")
_DOMAIN: Final = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_CARD: Final = re.compile(r"(?<![\w.,/=#-])\d(?:[ -]?\d){11,18}(?![\w])(?![.,-]\d)|(?<=#)\d(?:[ -]?\d){11,18}(?![\w])")
_CARD_WORDS: Final = re.compile(
    r"card|karte|kort|carte|tarjeta|carta|visa|master|amex|maestro|diners"
    r"|discover",
    re.IGNORECASE,
)
_ISSUERS: Final = re.compile(
    r"4\d{12}(?:\d{3}|\d{6})?|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689])\d{11,16}|6(?:011|4[4-9]|5)\d{12,15}"
    r"|62\d{14,17}|35\d{14}|(?:2131|1800)\d{11}|(?:5018|5020|5038|5[678]|6304|6390|67)\d{8,17}"
)  # fmt: skip
"""Numbers that card issuers give out. With a word for card before it, any number that passes Luhn's check is one."""
_IBAN: Final = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{2,4}){3,9}(?: ?[A-Za-z0-9])?")
_IPV4: Final = re.compile(r"(?<![\w.=<>~^])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_VERSION: Final = re.compile(r"(?:version|release|\bv|\bver\.?)\s?$", re.IGNORECASE)
BEFORE: Final = 48
"""Characters before a number in which a word may say what it is."""


class Kind(NamedTuple):
    """A kind of personal data and how it is found. Earlier kinds win where spans overlap."""

    name: str
    find: Callable[[str], Iterator[Span]]


class PiiDetector:
    """Finds personal data; all its work is linear in the text's length."""

    categories: frozenset[Guarded] = frozenset({"pii"})

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """Findings that do not overlap, in the order of the text."""
        return [
            Finding(category="pii", kind=name, start=span.start, end=span.end, detail=span.why)
            for name, span in personal(request.content)
        ]


def personal(text: str) -> list[tuple[str, Span]]:
    """All personal data of a text by kind, without overlaps, in order."""
    taken: list[tuple[str, Span]] = []
    covered = bytearray(len(text))
    for kind in _KINDS:
        for span in kind.find(text):
            if not any(covered[span.start : span.end]):
                covered[span.start : span.end] = b"\x01" * (span.end - span.start)
                taken.append((span.kind or kind.name, span))
    return sorted(taken, key=lambda found: found[1].start)


def _emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at >= 0:
        local = _LOCAL.search(text, max(0, at - 64), at)
        domain = _DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            start = local.start() + len(local[0]) - len(local[0].lstrip(".!#$%&'*+^`{|}~-"))
            if start < at:
                yield Span(start, domain.end(), "an e-mail address")
        at = text.find("@", at + 1)


def _cards(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(set(digits)) > 1 and luhn.is_valid(digits):
            known = _ISSUERS.fullmatch(digits) is not None and len(digits) >= 13
            if known or _CARD_WORDS.search(text, max(0, match.start() - BEFORE), match.start()):
                yield Span(match.start(), match.end(), "a card number whose check digit is right")


def _ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        for end in range(match.end(), match.start() + 14, -1):
            if (end == len(text) or not text[end].isalnum()) and _is_iban(text[match.start() : end]):
                yield Span(match.start(), end, "an IBAN whose check digits are right")
                break


@lru_cache(maxsize=4096)
def _is_iban(number: str) -> bool:
    try:
        iban.validate(number)
    except ValidationError:
        return False
    return True


def _addresses(text: str) -> Iterator[Span]:
    for pattern in (_IPV4, _IPV6):
        for match in pattern.finditer(text):
            try:
                address = ip_address(match[0])
            except ValueError:
                continue
            said = _VERSION.search(text, max(0, match.start() - 12), match.start())
            if address.is_global and not said:
                yield Span(match.start(), match.end(), "a public IP address")


_KINDS: Final = (
    Kind("EMAIL", _emails),
    Kind("IBAN", _ibans),
    Kind("CARD", _cards),
    Kind("ID", identities),
    Kind("IP", _addresses),
    Kind("PHONE", phones),
)
