"""`Scans`: the pages of a PDF whose text is in a picture, read by tesseract (`ocr.py`) where it is installed."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from liteparse import LiteParse

from gateway.features.documents.engine.ingest.errors import ParserEmptyError, ParserTimeoutError
from gateway.features.documents.engine.ingest.parsers import ocr
from gateway.features.documents.engine.ingest.parsers.draft import Block, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile

if TYPE_CHECKING:
    from liteparse import ParsedPage

_UNREADABLE = frozenset({"scanned", "garbled"})
"""liteparse's reasons to distrust a page's text; its other reasons are hints, also `no-text` if there are a few words.
"""

_DPI = 200
"""Tesseract needs capitals of at least 20 pixels: 10-point type at 200 dpi. 300 dpi takes twice the time."""

_GLANCE_DPI = 36
"""Enough to see whether a page is empty."""

_OCR_SPARE_SECONDS = 5
"""A page of plain text takes 1 to 4 s; one started later than this before the deadline would not finish.
A picture behind text gets no more."""

_PICTURE_SHARE = 0.25
"""The part of a file's remaining time that all pictures behind text may take, which most files do well without."""

_MAX_PIXELS = 5000
"""Of the longer side; a page may claim a height of 5 m."""

_WORD = re.compile(r"\w+")


class Scans:
    """The pages of a file that OCR should read, and what it reads of them."""

    def __init__(self, source: InputFile, pages: Sequence["ParsedPage"]) -> None:
        self._source = source
        self._pages = pages
        self._unreadable = {page.page_num for page in pages if source.force_ocr or is_unreadable(page)}
        self._pictured = {page.page_num for page in pages if _is_picture(page)} - self._unreadable
        wanted = self._unreadable or self._pictured
        self._tesseract = ocr.find_tesseract(source.ocr_languages) if wanted else None
        self._read: dict[int, ocr.OcrPage] = {}
        self._missed: list[int] = []
        self._beside: list[int] = []
        """The pages whose pictures said something besides their own text."""
        self._unseen: dict[str, list[int]] = defaultdict(list)
        """The pages whose pictures were not read, by the reason."""
        self._picture_end: float | None = None
        """When the time for pictures is over, in `time.monotonic`; None before the first one."""

    def read(self, page: "ParsedPage") -> Sequence[Block]:
        """The blocks of a page without text of its own; none for other pages, and where OCR finds none.

        Raises `ParserTimeoutError` if there is too little time.
        """
        number = page.page_num
        picture = self._render(page) if number in self._unreadable else None
        if picture and self._tesseract:
            self._check_time_left()
            self._read[number] = self._tesseract.read(picture, number)
            return self._read[number].blocks
        if picture:
            self._missed.append(number)
        return ()

    def read_picture(self, page: "ParsedPage", own: Iterable[Block]) -> Iterator[Block]:
        """Yields what the picture behind a page's few words says besides these: a stamp on a scan is text, and so is
        the title on the background of a slide."""
        number = page.page_num
        if number not in self._pictured:
            return
        if self._tesseract is None:
            self._unseen[ocr.install_hint(self._source.ocr_languages)].append(number)
            return
        if self._picture_end is None:  # own text is read by now
            now = time.monotonic()
            self._picture_end = now + _PICTURE_SHARE * (self._source.deadline - now)
        if time.monotonic() + _OCR_SPARE_SECONDS > self._picture_end:
            self._unseen["the time for pictures is over"].append(number)
            return
        picture = self._render(page)
        if picture is None:
            return
        seen = self._tesseract.read_sure(picture, number, _OCR_SPARE_SECONDS)
        if seen.problem:
            self._unseen[seen.problem].append(number)
        own_words = {word for block in own for word in _list_words(block)}
        blocks = [one for one in seen.blocks if _says_more(one, own_words)]
        if blocks:
            self._beside.append(number)
        yield from blocks

    def describe(self, draft: Draft) -> None:
        """Adds what is uncertain of these pages to a draft. Raises `ParserEmptyError` if it has no text."""
        notes = list(ocr.describe_results(self._read))
        if notes and not draft.blocks:
            reason = f"{self._source.name} holds pictures only; {'; '.join(notes)}"
            raise ParserEmptyError(reason[:500], reason="scanned")
        draft.uncertainties.extend(notes)
        hint = ocr.install_hint(self._source.ocr_languages)
        if self._missed and not draft.blocks:
            raise ParserEmptyError(f"{self._source.name} holds pictures of text only; {hint}", reason="scanned")
        if self._missed:
            what = "to be read by OCR, which is not here" if self._source.force_ocr else "scanned and not read"
            draft.uncertainties.append(f"{ocr.format_pages(self._missed)} {what}; {hint}")
        if self._beside:
            draft.uncertainties.append(
                f"{ocr.format_pages(self._beside)} read with what OCR sees in the picture that fills the page"
            )
        for why, unseen in self._unseen.items():
            draft.uncertainties.append(
                f"{ocr.format_pages(unseen)} read without the picture that fills the page, which may show more text; "
                f"{why}"
            )
        layered = [str(one.page_num) for one in self._pages if is_scan_with_text(one)]
        if layered:
            draft.uncertainties.append(f"the text of scanned pages {', '.join(layered)} comes from an earlier OCR")

    def _render(self, page: "ParsedPage") -> ocr.Picture | None:
        """Renders the page; returns None for an empty one."""
        wanted = _DPI if self._tesseract else _GLANCE_DPI
        dpi = min(wanted, _MAX_PIXELS * 72 / max(page.width, page.height, 1))
        parser = LiteParse(
            ocr_enabled=False,
            quiet=True,
            password=self._source.password,
            extract_screenshots=True,
            target_pages=str(page.page_num),
            dpi=dpi,
            num_workers=1,
        )
        shot = next(iter(parser.parse(self._source.data).screenshots), None)
        return None if shot is None or shot.is_solid_fill else ocr.Picture(shot.image_bytes, dpi)

    def _check_time_left(self) -> None:
        """Raises `ParserTimeoutError` that says how far OCR got, if the time for the file is nearly over."""
        if time.monotonic() + _OCR_SPARE_SECONDS < self._source.deadline:
            return
        done, pages = len(self._read), len(self._unreadable)
        raise ParserTimeoutError(
            f"{self._source.name}: {done} of {pages} pages were read by OCR in the time for one file; give its parser "
            "more (timeout_s; the pipeline template `scans` does)",
            reason="ocr",
            pages=pages,
            done=done,
        )


def is_unreadable(page: "ParsedPage") -> bool:
    """Whether a page has no text that can be trusted."""
    reasons = _list_reasons(page)
    return not _UNREADABLE.isdisjoint(reasons) or ("no-text" in reasons and not page.blocks)


def is_scan_with_text(page: "ParsedPage") -> bool:
    """Whether a page is a scan behind which an OCR put its text."""
    return "invisible-text-layer" in _list_reasons(page)


def _is_picture(page: "ParsedPage") -> bool:
    """Whether a picture fills the page, with a few words over it."""
    return page.complexity is not None and page.complexity.full_page_image and "sparse-text" in _list_reasons(page)


def _list_reasons(page: "ParsedPage") -> Sequence[str]:
    return page.complexity.reasons if page.complexity else ()


def _says_more(block: Block, own_words: AbstractSet[str]) -> bool:
    """Whether most words of a block are not among a page's own."""
    words = _list_words(block)
    return 2 * sum(word in own_words for word in words) < len(words)


def _list_words(block: Block) -> list[str]:
    return _WORD.findall(block.text.casefold())
