"""Finds national identity numbers by format and check digit.

Formats that other numbers share count only next to a word that names them.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from collections.abc import Iterator
from typing import Final

from agent.policy.guardrails.spans import Span

CONTEXT_BEFORE: Final = 48
"""Characters before a number in which the context must match."""
CONTEXT_AFTER: Final = 24
"""Characters after a number: `12345 (isikukood)`."""


_MAYBE_IDENTITY: Final = re.compile(r"\d(?:[ .+-]?\d){5}|\d\d[A-Z]\d\d[A-Z]", re.ASCII)
"""Every format of `identity_formats.py` matches this, and most texts do not."""
_DIGIT: Final = re.compile(r"\d")
_DOCUMENT_NAMES: Final = (
    r"(?P<what>driv(?:er|ing)['’]?s? licen[cs]e|licen[cs]e (?:number|no)|\bdl(?= ?(?:#|no|number))|führerschein|körkort"
    r"|permis de conduire|carn[eé] de conducir|patente di guida|rijbewijs|prawo jazdy"
    r"|(?P<passport>passport|identity card|reisepass|personalausweis|passeport|pasaporte|passaporto|passaporte|paspoort"
    r"|paszport|pasnummer|passnummer|паспорт\w{0,2}|护照|護照|パスポート|جواز (?:ال)?سفر|διαβατήριο))"
)
_DOCUMENT_NUMBER: Final = re.compile(
    _DOCUMENT_NAMES
    + r"(?:n?ummer)?(?: ?(?:number|num(?:ber)?|no|nr|nummer|núm|numéro|numero|número|n[°º]|№|#|id|号码?|番号|رقم)\.?)?"
    r"(?: is| ist|är|es| est| è|:| =)? {0,2}#?(?P<number>(?=[A-Z]{0,4}[ -]?\d)(?:\d{2} ?\d{2} \d{6}"
    r"|[A-Z0-9](?:[A-Z0-9]|-(?!-)){4,17}))(?!\w)",
    re.IGNORECASE,
)  # fmt: skip


_MAYBE_NEEDS_CONTEXT: Final = re.compile(
    r"\d(?:[ ./-]?\d){8}|[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]|[A-Z]{5}\d{4}[A-Z]|\d{7}[A-W]", re.ASCII
)
"""Every format that needs a context matches this. Few texts do, which saves the many searches."""
_DOCUMENT_WORDS: Final = (
    "licen", "dl #", "dl#", "dl n", "dln", "führersch", "körkort", "permis", "conducir", "patente", "rijbewijs",
    "prawo", "passp", "identity card", "reisepass", "personalausweis", "passep", "pasaporte", "passaport", "paspoort",
    "paszport",
    "pasnummer", "passn", "паспорт", "护照", "護照", "パスポート", "جواز", "διαβατήριο",
)  # fmt: skip
"""Every document name above contains one of these."""


def find_identities(text: str) -> Iterator[Span]:
    """Yields the identity numbers of a text."""
    if _MAYBE_IDENTITY.search(text):
        yield from _find_formats(text)
    low = text.lower() if _DIGIT.search(text) else ""
    for match in _DOCUMENT_NUMBER.finditer(text) if any(map(low.__contains__, _DOCUMENT_WORDS)) else ():
        kind = "LICENCE" if match["passport"] is None else "PASSPORT"
        if sum(char.isdigit() for char in match["number"]) < 3:
            continue
        yield Span(match.start("number"), match.end("number"), "the number of a personal document", kind)


def _find_formats(text: str) -> Iterator[Span]:
    from agent.policy.guardrails.identity_formats import (  # noqa: PLC0415 - see its docstring
        FORMATS_WITHOUT_CONTEXT,
        IDENTITY_FORMATS,
        is_valid,
    )

    for identity in IDENTITY_FORMATS if _MAYBE_NEEDS_CONTEXT.search(text) else FORMATS_WITHOUT_CONTEXT:
        for match in identity.pattern.finditer(text):
            if identity.context is not None and not (
                identity.context.search(text, max(0, match.start() - CONTEXT_BEFORE), match.start())
                or identity.context.search(text, match.end(), match.end() + CONTEXT_AFTER)
            ):
                continue
            if is_valid(identity.validate, match[0]):
                yield Span(match.start(), match.end(), identity.description, identity.kind)
