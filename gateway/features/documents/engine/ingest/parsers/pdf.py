"""PDF by liteparse: blocks in reading order with boxes, tables with cells, and pages that need OCR.

liteparse's own OCR is always off, because it downloads language data. Scanned pages go to tesseract (`pdf_scans.py`).
"""

import contextlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from liteparse import LiteParse, ParseError

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.errors import (
    ParserCorruptError,
    ParserEncryptedError,
)
from gateway.features.documents.engine.ingest.parsers import ocr
from gateway.features.documents.engine.ingest.parsers.draft import Block, Box, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.pdf_annotations import (
    has_drawn_notes,
    has_pinned_files,
    iter_annotations,
    iter_descriptions,
)
from gateway.features.documents.engine.ingest.parsers.pdf_columns import arrange_tables
from gateway.features.documents.engine.ingest.parsers.pdf_forms import list_fields
from gateway.features.documents.engine.ingest.parsers.pdf_heads import RunningHeads
from gateway.features.documents.engine.ingest.parsers.pdf_layers import leave_out_hidden
from gateway.features.documents.engine.ingest.parsers.pdf_leftovers import Leftovers
from gateway.features.documents.engine.ingest.parsers.pdf_merged import fill_tables
from gateway.features.documents.engine.ingest.parsers.pdf_moved import move_in_blocks
from gateway.features.documents.engine.ingest.parsers.pdf_parts import AlignedPart, Part, list_merged
from gateway.features.documents.engine.ingest.parsers.pdf_repair import (
    drop_units,
    mend_page_count,
    repair_trailer,
    strip_head,
)
from gateway.features.documents.engine.ingest.parsers.pdf_scans import Scans, is_unreadable
from gateway.features.documents.engine.ingest.parsers.pdf_spacing import close_letters
from gateway.features.documents.engine.ingest.parsers.pdf_struck import mark_struck_text
from gateway.features.documents.engine.ingest.parsers.pdf_tables import read_table_rows
from gateway.features.documents.engine.ingest.parsers.pdf_turned import (
    is_upside_down,
    iter_notes,
    join_items,
    list_turned_items,
    split_items,
    take_column_heads,
)
from gateway.features.documents.engine.ingest.parsers.pdf_unseen import UnseenWords
from gateway.features.documents.engine.ingest.parsers.pdf_xfa import list_values
from gateway.features.documents.engine.ingest.parsers.pdfium import Pdfium, open_pdfium

if TYPE_CHECKING:
    from liteparse import AnnotationRect, LayoutBlock, ParsedPage, ParseResult, TextItem

_FEW_PAGES = 20
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*|(?<![\w*\\])\*(?=[^\s*])([^*]+?)(?<=[^\s*\\])\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\*_`\[\]<>#|])")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2}")
"""Two letters of Hebrew, Arabic or their neighbours: a PDF has them where they are drawn, not as they are read."""
_XMP_ITEM = re.compile(r"<rdf:li[^<>]*>")


def warm_up() -> None:
    """Loads the PDF engine. It reserves 1.1 GB of address space once, which must not count against a file's limit."""
    with contextlib.suppress(ParseError):
        LiteParse(ocr_enabled=False, quiet=True).parse(b"%PDF-1.4\n")


def read_pdf(source: InputFile) -> Draft:
    """Reads a PDF.

    Raises `ParserEncryptedError`, `ParserCorruptError`, `ParserEmptyError` for scans without OCR, and
    `ParserTimeoutError` if there is too little time for OCR.
    """
    source = replace(source, data=drop_units(strip_head(source.data)))
    result, source = _parse_or_repair(source)
    claimed = result.total_pages
    if (mended := mend_page_count(source.data, claimed)) is not None:
        source = replace(source, data=mended)
        result = _parse(source)
    layers = leave_out_hidden(source.data, source.password)
    if layers.data is not source.data:
        source = replace(source, data=layers.data)
        result = _parse(source)
    draft = Draft(pages=result.total_pages, metadata=_read_metadata(result))
    if source.is_repaired:
        draft.uncertainties.append("the file is cut or damaged: its table of objects was rebuilt; text may be missing")
    if result.total_pages > claimed:
        draft.uncertainties.append(f"the file claims {claimed} pages and has {result.total_pages}; all were read")
    draft.uncertainties.extend(_describe_missing_pages(result))
    if layers.note:
        draft.uncertainties.append(layers.note)
    with open_pdfium(source.data, source.password) as pdfium:
        attachments = _list_attachments(pdfium, result.pages)  # what draws notes takes them from the pages
        _read_pages(source, result, pdfium, draft)
    if attachments:
        draft.metadata["attachments"] = [*attachments]
        draft.uncertainties.append(f"attachments were not read: {', '.join(attachments)}")
    _add_xfa(result, draft)
    return draft


def _read_pages(source: InputFile, result: "ParseResult", pdfium: Pdfium | None, draft: Draft) -> None:
    reader = _PageReader(pdfium)
    scans = Scans(source, result.pages)
    read = [scans.read(page) or reader.list_blocks(page) for page in result.pages]
    own = [reader.leave_out_repeated(blocks, page) for page, blocks in zip(result.pages, read, strict=True)]
    for page, blocks in zip(result.pages, own, strict=True):  # last, because it may take all the time that is left
        draft.blocks.extend(blocks)
        draft.blocks.extend(scans.read_picture(page, blocks))
    scans.describe(draft)
    reader.describe(draft)


def _list_attachments(pdfium: Pdfium | None, pages: Iterable["ParsedPage"]) -> list[str]:
    """The names of the files in the file, and of those that are pinned to its pages."""
    if pdfium is None:
        return []
    pinned = (pdfium.list_pinned_files(page.page_num) for page in pages if has_pinned_files(page))
    return list(dict.fromkeys([*pdfium.list_attachments(), *chain.from_iterable(pinned)]))


def _add_xfa(result: "ParseResult", draft: Draft) -> None:
    """Adds the values of a form that XFA draws, where they are not on the pages."""
    packets = result.xfa_packets or ()
    if not packets or any(page.form_fields for page in result.pages):
        return
    draft.add_text("\n".join(list_values(packets)), result.total_pages or None)
    draft.uncertainties.append("the form is drawn by XFA, which is not read: only its filled fields are")


def _parse_or_repair(source: InputFile) -> tuple["ParseResult", InputFile]:
    """Parses the file, or what can be made of it if its table of objects is lost; returns the bytes that were read."""
    try:
        return _parse(source), source
    except ParserCorruptError:
        repaired = repair_trailer(source.data)
        if repaired is None:
            raise
        source = replace(source, data=repaired, is_repaired=True)
        result = _parse(source)
        empty = result.total_pages - sum(bool(page.blocks) and not is_unreadable(page) for page in result.pages)
        if 2 * empty > result.total_pages:  # what is left is too little to pass for the document
            raise
        return result, source


def _describe_missing_pages(result: "ParseResult") -> Iterator[str]:
    """Says which pages could not be read; a file may claim many that it does not have."""
    missing = sorted({error.page_num for error in result.page_errors})
    if len(missing) > _FEW_PAGES:
        yield f"{len(missing):,} of {result.total_pages:,} pages that the file claims could not be read"
    else:
        yield from (f"page {number} could not be read" for number in missing)


def _parse(source: InputFile) -> "ParseResult":
    parser = LiteParse(
        ocr_enabled=False,
        quiet=True,
        password=source.password,
        extract_blocks=True,
        emit_word_boxes=True,
        keep_headers_footers=True,
        extract_form_fields=True,
        extract_annotations=True,
        extract_vector_graphics=True,
        extract_links=False,
        include_complexity=True,
        extract_document_metadata=True,
        extract_structure_tree=True,
        extract_xfa_packets=True,
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
        raise ParserCorruptError(f"{source.name} is not a readable PDF: {error}", reason="damaged") from error


class _PageReader:
    """Reads the pages of a file, which come in order, and knows of which of them something is uncertain."""

    def __init__(self, pdfium: Pdfium | None) -> None:
        self._pdfium = pdfium
        self._leftovers = Leftovers()
        self._heads = RunningHeads()
        self._unseen = UnseenWords()
        self._unknown_characters: dict[int, int] = {}
        self._unmarked_pages: list[int] = []
        self._parted_pages: list[int] = []
        self._right_to_left_pages: list[int] = []

    def list_blocks(self, page: "ParsedPage") -> Sequence[Block]:
        """The blocks of a page, also those that it repeats."""
        parts = arrange_tables(page)
        blocks: Sequence[Block] = self._leftovers.add(page, _list_text_blocks(page, parts))
        if self._pdfium is not None:
            facts, unseen = self._pdfium.read_text_facts(page.page_num)
            blocks, is_whole = close_letters(blocks, page, facts)
            if not is_whole:
                self._parted_pages.append(page.page_num)
            blocks = self._unseen.leave_out(move_in_blocks(blocks, facts.moved), page, unseen)
            if facts.is_doubtful:
                self._unknown_characters[page.page_num] = facts.unknown
        blocks, is_complete = mark_struck_text(blocks, page)
        if not is_complete:
            self._unmarked_pages.append(page.page_num)
        if any(_RIGHT_TO_LEFT.search(block.text) for block in blocks):
            self._right_to_left_pages.append(page.page_num)
        draft = Draft(blocks=self._heads.add(fill_tables(blocks, list_merged(parts)), page))
        if fields := list_fields(page):
            draft.add_text("\n".join(fields), page.page_num)
        _add_notes(page, self._pdfium, draft)
        for description in iter_descriptions(page):
            draft.add_image(description, page.page_num)
        return draft.blocks

    def leave_out_repeated(self, blocks: Sequence[Block], page: "ParsedPage") -> Sequence[Block]:
        """The blocks without the heads and feet that pages before have; to be asked when all pages are read."""
        return self._heads.leave_out(blocks, page.page_num)

    def describe(self, draft: Draft) -> None:
        """Says what is uncertain."""
        draft.uncertainties.extend(self._unseen.describe())
        if self._unknown_characters:
            draft.uncertainties.append(
                f"{ocr.format_pages(list(self._unknown_characters))} partly read by guess: fonts do not say which "
                f"letters {sum(self._unknown_characters.values()):,} characters are; words may be wrong or missing"
            )
        if self._parted_pages:
            draft.uncertainties.append(
                f"{ocr.format_pages(self._parted_pages)} read with words that are parted into letters; a search may "
                "not find them"
            )
        if self._right_to_left_pages:
            draft.uncertainties.append(
                f"{ocr.format_pages(self._right_to_left_pages)} read with text from right to left, in which letters, "
                "words and brackets may be in the wrong order"
            )
        if self._unmarked_pages:
            draft.uncertainties.append(
                f"{ocr.format_pages(self._unmarked_pages)} read without some marks: text that is struck out there may "
                "read as valid"
            )


def _list_text_blocks(page: "ParsedPage", parts: Iterable[Part]) -> Sequence[Block]:
    draft = Draft()
    turned = split_items(list_turned_items(page))
    for block in parts:
        if isinstance(block, AlignedPart):
            if block.merged is not None:
                draft.blocks.append(Block(block.text, "table", page.page_num, block.bbox))
            elif block.rows:
                draft.add_table(block.rows, page.page_num, block.bbox)
            else:
                draft.add_text(block.text, page.page_num, block.bbox)
            continue
        if turned and is_upside_down(block, page):
            continue
        heads = take_column_heads(block, turned) if turned and block.kind == "table" else {}
        _add(draft, block, page, heads)
    for note in iter_notes(turned):
        text = join_items(note)
        draft.add_text(text, page.page_num, _find_union([_find_box(item) for item in note]))
    return draft.blocks


def _add_notes(page: "ParsedPage", pdfium: Pdfium | None, draft: Draft) -> None:
    block_texts = {block.text for block in draft.blocks}
    notes = list(iter_annotations(page))
    hidden = pdfium.list_hidden_notes(page.page_num) if pdfium is not None and notes else []
    for text, contents, place in notes:
        if contents in hidden:
            hidden.remove(contents)
        elif text not in block_texts:
            draft.add_text(text, page.page_num, _find_box(place))
    if pdfium is not None and has_drawn_notes(page):
        for text in pdfium.list_drawn_notes(page.page_num):
            draft.add_text(text, page.page_num)


def _find_union(boxes: Sequence[Box | None]) -> Box | None:
    known_boxes = [box for box in boxes if box is not None]
    lefts, tops, rights, bottoms = zip(*known_boxes, strict=True)
    return (min(lefts), min(tops), max(rights), max(bottoms))


def _add(draft: Draft, block: "LayoutBlock", page: "ParsedPage", heads: Mapping[int, str]) -> None:
    number = page.page_num
    bbox = _find_box(block.bbox)
    text = _remove_marks(block.text or "")
    match block.kind:
        case "heading":
            draft.add_heading(text, block.level or 1, number, bbox)
        case "table":
            rows = read_table_rows(block, page.text_items, _remove_marks)
            if heads:
                rows.insert(0, [heads.get(column, "") for column in range(max(map(len, rows)))])
            draft.add_table(rows, number, bbox)
        case "list_item":
            marker = block.marker if block.ordered and block.marker else "-"
            draft.add_text(f"{marker} {text}", number, bbox)
        case "code" | "grid_fallback":
            draft.add_text("\n".join(block.lines or ()), number, bbox)
        case "figure":
            draft.add_image("", number, bbox)
        case "rule":
            pass
        case _:
            draft.add_text(text, number, bbox)


def _remove_marks(text: str) -> str:
    """The words alone, without liteparse's marks and Markdown escapes. It takes a whole line for struck out that any
    rule crosses."""
    return _ESCAPED.sub(r"\1", _BOLD.sub(lambda match: match[1] or match[2], _STRUCK.sub(r"\1", text)))


def _find_box(rect: "AnnotationRect | TextItem | None") -> Box | None:
    if rect is None:
        return None
    return (
        round(rect.x, 2),
        round(rect.y, 2),
        round(rect.x + rect.width, 2),
        round(rect.y + rect.height, 2),
    )


def _read_metadata(result: "ParseResult") -> JsonObject:
    meta = result.doc_meta
    metadata: JsonObject = {
        "title": find_xmp_title(meta.xmp) if meta and meta.xmp else None,
        "creator": result.creator,
        "producer": result.producer,
        "created": meta.creation_date if meta else None,
    }
    return {name: value for name, value in metadata.items() if value}


def find_xmp_title(xmp: str) -> str | None:
    """The title in a PDF's metadata, or None. In one pass: the author of the file decides its length."""
    described = xmp.partition("<dc:title>")[2].partition("</dc:title>")[0]
    begin = _XMP_ITEM.search(described)
    if begin is None:
        return None
    title, end, _ = described[begin.end() :].partition("</rdf:li>")
    return html.unescape(title).strip() if end else None
