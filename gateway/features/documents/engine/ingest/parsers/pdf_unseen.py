"""Text of a PDF's page that nobody sees, left out of its blocks. The text that an OCR put behind a scan stays."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.ocr import format_pages
from gateway.features.documents.engine.ingest.parsers.pdf_marks import fold_letters, mark_letters
from gateway.features.documents.engine.ingest.parsers.pdf_scans import is_scan_with_text
from gateway.features.documents.engine.ingest.parsers.pdfium_unseen import UnseenKind, UnseenLetter, UnseenText

if TYPE_CHECKING:
    from liteparse import ParsedPage, WordBox

_SLACK = 0.1
"""Share of a word's height by which the middle of its letters may be beside its box."""
_COVERED = "[covered]"
"""What stands for covered words between others: a sentence without them would say something else."""
_KINDS: Mapping[UnseenKind, str] = {
    "invisible": "invisible, or in the color of what is behind",
    "covered": "covered by something else",
    "tiny": "too small to read",
}


class UnseenWords:
    """Leaves out the unseen words of a file's pages, and counts them by kind."""

    def __init__(self) -> None:
        self._counts: Counter[UnseenKind] = Counter()
        self._pages: list[int] = []
        self._incomplete_pages: list[int] = []
        self._layered_pages: list[int] = []

    def leave_out(self, blocks: Sequence[Block], page: "ParsedPage", unseen: UnseenText) -> list[Block]:
        """The blocks of a page without the words of its unseen letters."""
        rest, letters = list(blocks), unseen.letters
        if unseen.has_ocr_layer and not is_scan_with_text(page):
            self._layered_pages.append(page.page_num)
        if not unseen.is_complete:
            self._incomplete_pages.append(page.page_num)
        if not letters:
            return rest
        self._pages.append(page.page_num)
        ends = {one.place + 1 for one in letters}
        self._counts.update(one.kind for one in letters if one.place not in ends)  # the first of each word
        is_complete = True
        for kinds, stand_in in (({"invisible", "tiny"}, ""), ({"covered"}, _COVERED)):
            own = sorted((one for one in letters if one.kind in kinds), key=lambda one: one.y)
            marked = dict(self._iter_words(page, own))
            rest, is_whole = mark_letters(rest, page.text_items, marked, partial(_replace, stand_in))
            is_complete = is_complete and is_whole
        if not is_complete:
            self._incomplete_pages.append(page.page_num)
        before = {id(block) for block in blocks}
        return [one for one in rest if id(one) in before or _has_words(one.text)]

    def describe(self) -> Iterator[str]:
        """Says what was left out."""
        if self._pages:
            kinds = "; ".join(f"{count:,} {_KINDS[kind]}" for kind, count in sorted(self._counts.items()))
            yield f"{format_pages(self._pages)} read without words that nobody sees there: {kinds}"
        if self._layered_pages:
            yield f"{format_pages(self._layered_pages)} read with invisible text on pictures, as of an earlier OCR"
        if self._incomplete_pages:
            yield f"{format_pages(self._incomplete_pages)} read as written; some words may be seen by nobody"

    def _iter_words(self, page: "ParsedPage", letters: Sequence[UnseenLetter]) -> Iterator[tuple[int, Sequence[bool]]]:
        """Yields the `id` of each word with unseen letters, and which ones these are."""
        heights = [one.y for one in letters]
        for word in (word for item in page.text_items for word in item.words):
            slack = _SLACK * word.height
            first = bisect_left(heights, word.y - slack)
            last = bisect_right(heights, word.y + word.height + slack)
            inside = [one for one in letters[first:last] if -slack <= one.x - word.x <= word.width + slack]
            if inside and any(marks := _find_letters(word, sorted(inside, key=lambda one: one.place))):
                yield id(word), marks


def _find_letters(word: "WordBox", letters: Sequence[UnseenLetter]) -> list[bool]:
    """Which characters of a word the letters are, in their order; none unless all are: others belong to a word in
    the same place."""
    marks = [False] * len(word.text)
    place = 0
    for one in letters:
        wanted = fold_letters(one.letter)
        place = next((at for at in range(place, len(marks)) if fold_letters(word.text[at]) == wanted), len(marks))
        if place == len(marks):
            return [False] * len(marks)
        marks[place] = True
        place += 1
    return marks


def _replace(stand_in: str, _text: str) -> str:
    return stand_in


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text.replace(_COVERED, "")))
