"""PDF by liteparse: blocks in reading order with their boxes, tables with their cells, pages that need OCR found.

liteparse's own OCR stays off in every call: without a folder of language data it downloads one. Scanned pages go to
the tesseract program instead (`ocr.py`).
"""

import contextlib
import html
import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from liteparse import LiteParse, ParseError

from agent.core.models import JsonObject
from agent.knowledge.errors import ParserCorruptError, ParserEmptyError, ParserEncryptedError, ParserTimeoutError
from agent.knowledge.parsers import ocr
from agent.knowledge.parsers.draft import Block, Box, Draft
from agent.knowledge.parsers.pdf_tables import table_rows
from agent.knowledge.parsers.source import Source

if TYPE_CHECKING:
    from liteparse import AnnotationRect, LayoutBlock, ParsedPage, ParseResult

_UNREADABLE = frozenset({"scanned", "garbled"})
"""liteparse's reasons to doubt a page's text; its others are hints, `no-text` too where there are a few words."""

_DPI = 200
"""Tesseract asks for capitals of at least 20 pixels, 10-point type at 200 dpi; 300 takes twice the time."""

_GLANCE_DPI = 36
"""Enough to see whether anything is on a page."""

_OCR_SPARE_SECONDS = 5
"""A page of plain text takes 1 to 4 s; one begun later than this before the end is not finished."""

_MAX_PIXELS = 5000
"""Along the longer side; a page may claim to be 5 m high."""

_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*|(?<![\w*\\])\*(?=[^\s*])([^*]+?)(?<=[^\s*\\])\*(?![\w*])")
_ESCAPED = re.compile(r"\\([\\*_`\[\]<>#|])")
_XMP_TITLE = re.compile(r"<dc:title>.*?<rdf:li[^>]*>(.*?)</rdf:li>", re.DOTALL)


def warm_up() -> None:
    """Load the PDF engine. It reserves 1.1 GB of address space once, which no limit on a file's memory should count."""
    with contextlib.suppress(ParseError):
        LiteParse(ocr_enabled=False, quiet=True).parse(b"%PDF-1.4\n")


def read_pdf(source: Source) -> Draft:
    """Raises `ParserEncryptedError`, `ParserCorruptError`, `ParserEmptyError` for pages that are pictures only where
    there is no OCR, and `ParserTimeoutError` where there is too little time for it."""
    result = _parse(source)
    draft = Draft(pages=result.total_pages, metadata=_metadata(result))
    draft.uncertainties.extend(f"page {error.page_num} could not be read" for error in result.page_errors)
    unread = {page.page_num for page in result.pages if source.force_ocr or _is_unreadable(page)}
    reader = ocr.find(source.ocr_languages) if unread else None
    missed: list[int] = []
    read: dict[int, ocr.Words] = {}
    for page in result.pages:
        picture = _picture(source, page, _DPI if reader else _GLANCE_DPI) if page.page_num in unread else None
        if reader and picture:
            _refuse_if_late(source, len(read), len(unread))
            read[page.page_num] = reader.read(picture, page.page_num)
        elif picture:
            missed.append(page.page_num)
        draft.blocks.extend((read[page.page_num].blocks if page.page_num in read else ()) or _blocks(page))
    doubts = list(ocr.doubts(read))
    if doubts and not draft.blocks:
        raise ParserEmptyError(f"{source.name} holds pictures only; {'; '.join(doubts)}"[:500], reason="scanned")
    draft.uncertainties.extend(doubts)
    if missed:
        _say_unread(source, missed, draft)
    _say_old_ocr(result.pages, draft)
    return draft


def _parse(source: Source) -> "ParseResult":
    parser = LiteParse(
        ocr_enabled=False,
        quiet=True,
        password=source.password,
        extract_blocks=True,
        extract_links=False,
        include_complexity=True,
        extract_document_metadata=True,
        continue_on_page_error=True,
        num_workers=1,
    )
    try:
        return parser.parse(source.data)
    except ParseError as error:
        reason = str(error).lower()
        if "password" in reason or "security" in reason:
            how = "is protected by a password" if source.password is None else "does not open with the password given"
            raise ParserEncryptedError(f"{source.name} {how}") from error
        raise ParserCorruptError(f"{source.name} is no readable PDF: {error}", reason="damaged") from error


def _is_unreadable(page: "ParsedPage") -> bool:
    reasons = page.complexity.reasons if page.complexity else ()
    return not _UNREADABLE.isdisjoint(reasons) or ("no-text" in reasons and not page.blocks)


def _picture(source: Source, page: "ParsedPage", dpi: float) -> ocr.Picture | None:
    """The page as pixels; None for an empty one, which needs nobody to read it."""
    dpi = min(dpi, _MAX_PIXELS * 72 / max(page.width, page.height, 1))
    parser = LiteParse(
        ocr_enabled=False,
        quiet=True,
        password=source.password,
        extract_screenshots=True,
        target_pages=str(page.page_num),
        dpi=dpi,
        num_workers=1,
    )
    shot = next(iter(parser.parse(source.data).screenshots), None)
    return None if shot is None or shot.is_solid_fill else ocr.Picture(shot.image_bytes, dpi)


def _say_unread(source: Source, pages: Sequence[int], draft: Draft) -> None:
    if not draft.blocks:
        raise ParserEmptyError(
            f"{source.name} holds pictures of text only; {ocr.missing(source.ocr_languages)}", reason="scanned"
        )
    what = "to be read by OCR, which is not here" if source.force_ocr else "scanned and not read"
    draft.uncertainties.append(f"{ocr.listed(pages)} {what}; {ocr.missing(source.ocr_languages)}")


def _refuse_if_late(source: Source, done: int, pages: int) -> None:
    """Scans take seconds a page; who gave too little time is told how far it went, not only that it was over."""
    now = time.monotonic()
    if now + _OCR_SPARE_SECONDS < source.deadline:
        return
    raise ParserTimeoutError(
        f"{source.name}: {done} of {pages} pages were read by OCR in the time for one file; give its parser more "
        "(timeout_s; the pipeline template `scans` does)",
        reason="ocr",
        pages=pages,
        done=done,
    )


def _say_old_ocr(pages: Iterable["ParsedPage"], draft: Draft) -> None:
    layered = [str(p.page_num) for p in pages if p.complexity and "invisible-text-layer" in p.complexity.reasons]
    if layered:
        draft.uncertainties.append(f"the text of scanned pages {', '.join(layered)} comes from an earlier OCR")


def _blocks(page: "ParsedPage") -> Iterable[Block]:
    draft = Draft()
    for block in page.blocks or ():
        _add(draft, block, page)
    return draft.blocks


def _add(draft: Draft, block: "LayoutBlock", page: "ParsedPage") -> None:
    number = page.page_num
    bbox = _box(block.bbox)
    text = _plain(block.text or "")
    match block.kind:
        case "heading":
            draft.heading(text, block.level or 1, number, bbox)
        case "table":
            draft.table(table_rows(block, page.text_items, _plain), number, bbox)
        case "list_item":
            marker = block.marker if block.ordered and block.marker else "-"
            draft.text(f"{marker} {text}", number, bbox)
        case "code" | "grid_fallback":
            draft.text("\n".join(block.lines or ()), number, bbox)
        case "figure":
            draft.image("", number, bbox)
        case "rule":
            pass
        case _:
            draft.text(text, number, bbox)


def _plain(text: str) -> str:
    """The words alone: liteparse marks emphasis, and escapes what Markdown would read as such marks."""
    return _ESCAPED.sub(r"\1", _BOLD.sub(lambda match: match[1] or match[2], text))


def _box(rect: "AnnotationRect | None") -> Box | None:
    if rect is None:
        return None
    return (
        round(rect.x, 2),
        round(rect.y, 2),
        round(rect.x + rect.width, 2),
        round(rect.y + rect.height, 2),
    )


def _metadata(result: "ParseResult") -> JsonObject:
    meta = result.doc_meta
    title = _XMP_TITLE.search(meta.xmp) if meta and meta.xmp else None
    shown: JsonObject = {
        "title": html.unescape(title[1]).strip() if title else None,
        "creator": result.creator,
        "producer": result.producer,
        "created": meta.creation_date if meta else None,
    }
    return {name: value for name, value in shown.items() if value}
