"""Letters of a PDF's words that are marked or taken out where its blocks have them."""

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from gateway.features.documents.engine.ingest.parsers.draft import Block

if TYPE_CHECKING:
    from liteparse import TextItem, WordBox

_WHOLE = 0.65
"""Share of a word that is marked from which the whole is: lines end a little before or behind it."""
_CONTEXTS = ((12, 6), (4, 2), (0, 0))
"""How many letters before and behind a marked text are compared to find it in a block."""
_LINE_STEP = 0.5
"""Share of a text's height within which texts are on one line."""
_CELL = re.compile(r"[^|\n]+")


class _Letter(NamedTuple):
    letter: str
    is_marked: bool


def mark_letters(
    blocks: Sequence[Block],
    items: Sequence["TextItem"],
    marked: Mapping[int, Sequence[bool]],
    write: Callable[[str], str],
) -> tuple[list[Block], bool]:
    """The blocks of a page with some of its texts rewritten, and whether all of these could be.

    `marked` says of each character of a word whether it is one of these, by the word's `id`.
    """
    changed = list(blocks)
    left = {id(item) for item in items if any(any(marked.get(id(word), ())) for word in item.words)}
    is_complete = True
    for place, block in enumerate(changed if left else ()):
        own = [item for item in items if _is_inside(item, block)]
        if left.isdisjoint(map(id, own)):
            continue
        left.difference_update(map(id, own))
        letters = [one for item in _order(own) for word in item.words for one in _iter_letters(word, marked)]
        text, is_whole = _mark(block.text, letters, write)
        changed[place] = block._replace(text=text)
        is_complete = is_complete and is_whole
    return changed, is_complete and not left


def _is_inside(item: "TextItem", block: Block) -> bool:
    if block.bbox is None or block.layout == "image":
        return False
    left, top, right, bottom = block.bbox
    x, y = item.x + item.width / 2, item.y + item.height / 2
    return bool(left - 1 <= x <= right + 1 and top - 1 <= y <= bottom + 1)


def _order(items: Iterable["TextItem"]) -> list["TextItem"]:
    """Texts from line to line, and each line from the left."""
    ordered: list[list[TextItem]] = []
    for item in sorted(items, key=lambda one: (one.y, one.x)):
        if not ordered or item.y - ordered[-1][0].y > _LINE_STEP * max(ordered[-1][0].height, 1):
            ordered.append([])
        ordered[-1].append(item)
    return [item for line in ordered for item in sorted(line, key=lambda one: one.x)]


def _iter_letters(word: "WordBox", marked: Mapping[int, Sequence[bool]]) -> Iterator[_Letter]:
    """Yields the letters and digits of a word."""
    own = marked.get(id(word), (False,) * len(word.text))
    share = sum(own) / max(len(own), 1)
    for sign, is_marked in zip(word.text, own, strict=True):
        is_rewritten = share >= _WHOLE or (is_marked and share > 1 - _WHOLE)
        yield from (_Letter(letter, is_rewritten) for letter in fold_letters(sign))


def fold_letters(sign: str) -> str:
    """The letters and digits that a character stands for: raised figures are plain ones."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", sign).casefold()))


def _mark(text: str, letters: Sequence[_Letter], write: Callable[[str], str]) -> tuple[str, bool]:
    """A block's text with what is marked rewritten, and whether all of it was found."""
    places = [(letter, at) for at, sign in enumerate(text) for letter in fold_letters(sign)]
    written, wanted = "".join(one for one, _ in places), "".join(one.letter for one in letters)
    is_whole = True
    marked: set[int] = set()
    if written == wanted:
        marked.update(at for (_, at), one in zip(places, letters, strict=True) if one.is_marked)
    else:
        for start, end in _iter_runs(letters):
            first = _find(written, wanted, start, end)
            is_whole = is_whole and first >= 0
            marked.update(at for _, at in places[first : first + end - start] if first >= 0)
    return _CELL.sub(lambda match: _mark_cell(match[0], match.start(), marked, write), text), is_whole


def _iter_runs(letters: Sequence[_Letter]) -> Iterator[tuple[int, int]]:
    place = 0
    for is_marked, group in groupby(letters, key=lambda one: one.is_marked):
        start, place = place, place + len(list(group))
        if is_marked:
            yield start, place


def _find(written: str, wanted: str, start: int, end: int) -> int:
    """Where the letters from `start` to `end` are in what is written, with those around them; -1 if that is not
    certain."""
    for before, behind in _CONTEXTS:
        first = max(0, start - before)
        piece = wanted[first : end + behind]
        at = written.find(piece)
        if at >= 0 and written.find(piece, at + 1) < 0:
            return at + start - first
    return -1


def _mark_cell(cell: str, offset: int, marked: Container[int], write: Callable[[str], str]) -> str:
    """Rewrites the marked letters of a line or of a table's cell, with the signs that belong to them."""
    letters = [at for at, sign in enumerate(cell) if sign.isalnum()]
    rewritten, place = "", 0
    for is_marked, group in groupby(letters, key=lambda at: at + offset in marked):
        if not is_marked:
            continue
        first, *rest = group
        start, end = _widen(cell, first, [first, *rest][-1] + 1)
        rewritten += cell[place:start] + write(cell[start:end])
        place = end
    return rewritten + cell[place:]


def _widen(cell: str, start: int, end: int) -> tuple[int, int]:
    """Takes in the signs beside a text as far as they stand between it and white space."""
    head, tail = re.search(r"(?:^|(?<=\s))[^\w\s]+$", cell[:start]), re.match(r"[^\w\s]+(?=\s|$)", cell[end:])
    return start - len(head[0] if head else ""), end + len(tail[0] if tail else "")
