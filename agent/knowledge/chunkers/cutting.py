"""Where a text may be cut: at sentences, else at lines or spaces, else anywhere."""

import re
from collections.abc import Iterable, Iterator

from agent.knowledge.chunkers.document import Span

_SENTENCE_END = re.compile(
    r"""(?:(?P<stop>(?<![.!?…])[.!?…]++["'”’»)\]]*+)(?=\s+["'“‘«(\[]?[^\sa-z])|[。！？｡]+[」』）]*|\n[ \t]*\n)""",  # noqa: RUF001
)
"""Stops before something that is no small letter, the stops of Chinese and Japanese, and blank lines."""

_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|cf|al|No|Nr|Fig|Figs|Tab|Eq|Sec|Ch|Vol|pp|ca"
    r"|approx|Inc|Ltd|Co|Corp|z\.B|d\.h|u\.a|bzw|usw|Abb|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)\.$"
)
_LOOK_BACK = 12
"""Characters before a full stop in which an abbreviation is looked for."""


def sentences(text: str, span: Span) -> Iterator[Span]:
    """The sentences of a part of the text, one after the other without gaps; the white space belongs to the one
    before."""
    start = span.start
    for match in _SENTENCE_END.finditer(text, span.start, span.end):
        if match["stop"] == "." and _ABBREVIATION.search(text[max(start, match.end() - _LOOK_BACK) : match.end()]):
            continue
        yield Span(start, match.end())
        start = match.end()
    if start < span.end:
        yield Span(start, span.end)


def hard_cut(text: str, span: Span, size: int) -> Iterator[Span]:
    """Pieces of at most `size`, cut behind the last line end or space of each where there is one in its second half."""
    start = span.start
    while span.end - start > size:
        half = start + max(size // 2, 1)
        places = (text.rfind("\n", half, start + size), text.rfind(" ", half, start + size))
        cut = next((place + 1 for place in places if place >= 0), start + size)
        yield Span(start, cut)
        start = cut
    if start < span.end:
        yield Span(start, span.end)


def packed(parts: Iterable[Span], size: int) -> Iterator[Span]:
    """Neighbouring parts joined as long as they fit into `size`; a part that is larger stays alone."""
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


def fitted(text: str, parts: Iterable[Span], size: int) -> Iterator[Span]:
    """The parts, those that are larger than `size` cut hard."""
    for part in parts:
        yield from hard_cut(text, part, size)
