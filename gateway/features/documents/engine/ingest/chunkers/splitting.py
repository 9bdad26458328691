"""Splits a text: at sentences, else at lines or spaces, else anywhere."""

import re
from collections.abc import Iterable, Iterator

from agent.text.dates import MONTHS
from gateway.features.documents.engine.ingest.chunkers.document_layout import Span

_SENTENCE_END = re.compile(
    r"""(?:(?P<stop>(?<![.!?…])[.!?…]++["'”’»)\]]*+)(?=\s+["'“‘«(\[]?[^\sa-z])|[。！？｡]+[」』）]*|\n[ \t]*\n)""",  # noqa: RUF001
)
"""Stops that are not followed by a lower-case letter, Chinese and Japanese stops, and blank lines."""

_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|cf|al|No|Nr|Fig|Figs|Tab|Eq|Sec|Ch|Vol|pp|ca"
    r"|approx|Inc|Ltd|Co|Corp|z\.B|d\.h|u\.a|bzw|usw|Abb|kl|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)\.$"
)
_LOOK_BACK = 12
"""Characters before a full stop that are searched for an abbreviation."""
_DAY_NUMBER = re.compile(r"(?<![\w.,])(?:0?[1-9]|[12]\d|3[01])\.$")
_NEXT_WORD = re.compile(r"[ \t\u00a0]+([^\W\d_]+)")


def split_sentences(text: str, span: Span) -> Iterator[Span]:
    """Yields the sentences of a part of the text without gaps; trailing white space belongs to the sentence
    before it."""
    start = span.start
    for match in _SENTENCE_END.finditer(text, span.start, span.end):
        if match["stop"] == "." and _is_within_sentence(text, max(start, match.end() - _LOOK_BACK), match.end()):
            continue
        yield Span(start, match.end())
        start = match.end()
    if start < span.end:
        yield Span(start, span.end)


def _is_within_sentence(text: str, start: int, end: int) -> bool:
    """Whether a full stop belongs to an abbreviation or to the day of a date: `15. März`."""
    if _ABBREVIATION.search(text[start:end]) is not None:
        return True
    following = _NEXT_WORD.match(text, end) if _DAY_NUMBER.search(text[start:end]) is not None else None
    return following is not None and following[1].lower() in MONTHS


def cut_to_size(text: str, span: Span, size: int) -> Iterator[Span]:
    """Yields pieces of at most `size`, split after the last line end or space in the second half of each, if there is
    one."""
    start = span.start
    while span.end - start > size:
        half = start + max(size // 2, 1)
        places = (text.rfind("\n", half, start + size), text.rfind(" ", half, start + size))
        cut = next((place + 1 for place in places if place >= 0), start + size)
        yield Span(start, cut)
        start = cut
    if start < span.end:
        yield Span(start, span.end)


def pack(parts: Iterable[Span], size: int) -> Iterator[Span]:
    """Yields neighbouring parts joined while they fit into `size`; a larger part stays alone."""
    current: Span | None = None
    for part in parts:
        if current is not None and part.end - current.start <= size:
            current = Span(current.start, part.end)
            continue
        if current is not None:
            yield current
        current = part
    if current is not None:
        yield current


def cut_oversized(text: str, parts: Iterable[Span], size: int) -> Iterator[Span]:
    """Yields the parts, splitting those larger than `size`."""
    for part in parts:
        yield from cut_to_size(text, part, size)
