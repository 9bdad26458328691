"""Detectors search for a pattern only where a plain word stands, a sign, because that is cheaper.

Here every text that a pattern can match is spelled out as far as its letters are fixed. Each must contain one of the
pattern's signs, so that nobody adds a word to a pattern and forgets its sign."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

from agent.policy.guardrails import harm, injection, pii, secrets

parser: Any = import_module("re._parser")  # without types
op: Any = import_module("re._constants")
ANY = "\0"
"""Stands for characters that a pattern leaves open."""
MAX_CHOICES = 5
"""Character classes of more characters count as open."""


def spell_out(pattern: re.Pattern[str]) -> set[str]:
    """The texts a pattern can match, in lower case; optional parts once without and once with them."""
    return _join(parser.parse(pattern.pattern, pattern.flags))


def _join(parts: Iterable[tuple[Any, Any]]) -> set[str]:
    texts = {""}
    for kind, value in parts:
        choices = set(_spell_part(kind, value))
        texts = {re.sub(f"{ANY}+", ANY, text + choice) for text in texts for choice in choices}
    return texts


def _spell_part(kind: Any, value: Any) -> Iterator[str]:
    """Yields what one part of a parsed pattern can be."""
    if kind is op.LITERAL:
        yield chr(value).casefold()
    elif kind is op.IN:
        characters = [chr(code).casefold() for name, code in value if name is op.LITERAL]
        is_small = len(characters) == len(value) <= MAX_CHOICES
        yield from characters if is_small else [ANY]
    elif kind in {op.MAX_REPEAT, op.MIN_REPEAT}:
        least, most, inner = value
        once = _join(inner)
        yield from once if least else {"", *once}
        if most > 1:
            yield from (text + ANY + text for text in once)
    elif kind is op.SUBPATTERN:
        yield from _join(value[-1])
    elif kind is op.BRANCH:
        for branch in value[1]:
            yield from _join(branch)
    elif kind is op.ASSERT:
        is_ahead = value[0] > 0
        yield from (text + ANY if is_ahead else ANY + text for text in _join(value[1]))
    elif kind in {op.AT, op.ASSERT_NOT}:
        yield ""
    else:
        yield ANY


CASES = [
    ("trailing name", secrets._TRAILING_NAME, secrets._TRAILING_NAME_SIGNS),
    ("open line", secrets._OPEN_LINE, secrets._OPEN_LINE_SIGNS),
    *((f"{kind} {at}", pattern, signs) for at, (kind, signs, pattern) in enumerate(secrets._NAMED_CREDENTIALS)),
    *((kind, pattern, (marker,)) for marker, kind, pattern in secrets._INFIX_CREDENTIALS),
    *((f"{form.kind} {at}", pattern, signs) for at, (form, signs, pattern) in enumerate(harm._COMPILED)),
    ("e-mail address", pii._AT, pii._AT_MARKERS),
    ("personal document", re.compile(pii._DOCUMENT_NAMES, re.IGNORECASE), pii._DOCUMENT_WORDS),
    *((name, pattern, ("<", "[", "#")) for name, pattern, _ in injection._SYNTAX_RULES),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "signs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_text_that_a_pattern_matches_contains_a_sign(pattern: re.Pattern[str], signs: Sequence[str]) -> None:
    texts = spell_out(pattern)
    assert [text for text in sorted(texts) if not any(sign.casefold() in text for sign in signs)] == []


def test_a_word_without_a_sign_is_found() -> None:
    assert spell_out(re.compile("(?:kill|hang)(?:ed)? x", re.IGNORECASE)) == {
        "kill x",
        "killed x",
        "hang x",
        "hanged x",
    }
    assert spell_out(re.compile(r"a[bc]\d+")) == {f"ab{ANY}", f"ac{ANY}"}
