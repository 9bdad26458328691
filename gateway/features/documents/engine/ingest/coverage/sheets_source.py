"""The cells of an xlsx: shared strings and values. A workbook counts cells, not words."""

import contextlib
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Literal, NamedTuple
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from gateway.features.documents.engine.ingest.coverage.fractions import part_fractions
from gateway.features.documents.engine.ingest.coverage.office_source import (
    Package,
    add_graphic_parts,
    choose_branch,
    get_name,
    iter_text,
)
from gateway.features.documents.engine.ingest.coverage.source_text import Cell, SourceText
from gateway.features.documents.engine.search.models import FileType

_MAX_CELLS = 2_000_000
_TAIL = 100_000
"""Bytes at the end of a sheet's part that hold its headers and footers."""
_PAGE_HEAD = re.compile(r"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>([^<]*)<")
_COLUMN = re.compile(r"[A-Z]+")


class _StoredCell(NamedTuple):
    """A cell as it is stored: its address, type, value and whether a formula made it."""

    row: int
    column: str
    kind: str
    value: str
    has_formula: bool
    style: str


def read_source(data: bytes, _file_type: FileType, _encoding: str, _deadline: float) -> SourceText:
    """Counts the cells of the sheets that are shown, their comments, and the points of charts."""
    package = Package(data)
    main = package.find_main_part()
    relations = package.list_relations(main)
    strings = _read_strings(package, next((r.target for r in relations.values() if r.kind == "sharedStrings"), ""))
    formats = _read_formats(package, next((r.target for r in relations.values() if r.kind == "styles"), ""))
    source = SourceText(unit="cells")
    book = package.read(main)
    settings = () if book is None else tuple(book)
    stale = any(one.get("fullCalcOnLoad") in {"1", "true"} for one in settings if get_name(one) == "calcPr")
    for sheet in () if book is None else book.iter():
        relation = next((relations[v] for v in sheet.attrib.values() if v in relations), None)
        if get_name(sheet) == "sheet" and relation is not None and relation.kind in {"worksheet", "chartsheet"}:
            is_shown = sheet.get("state", "visible") == "visible"
            _count_sheet(source, package, relation.target, strings, formats, is_shown=is_shown, stale=stale)
    return source


def _read_strings(package: Package, path: str) -> list[str]:
    root = package.read(path)
    return [] if root is None else [_collect_string(item) for item in root if get_name(item) == "si"]


def _collect_string(item: Element) -> str:
    """The runs of a string without its phonetic reading."""
    part_fractions(item)
    parts = []
    for one in item:
        name = get_name(one)
        if name == "t":
            parts.append(one.text or "")
        elif name == "r":
            parts += [inner.text or "" for inner in one if get_name(inner) == "t"]
    return _decode("".join(parts))


def _decode(text: str) -> str:
    """A text whose forbidden characters are written as `_x000D_`."""
    pieces = re.split("_x([0-9A-Fa-f]{4})_", text)
    return "".join(chr(int(piece, 16)) if place % 2 else piece for place, piece in enumerate(pieces))


def _read_formats(package: Package, path: str) -> dict[str, str]:
    """The format codes that may show a number in words or without its sign, by the number of the style."""
    has_codes = package.has(path) and re.search(rb'formatCode|numFmtId="1[67]"', package.open(path).read())
    root = package.read(path) if has_codes else None
    codes = {"16": "d-mmm", "17": "mmm-yy"}
    styles: list[str] = []
    for group in () if root is None else root:
        for one in group:
            if get_name(one) == "numFmt" and re.search(
                '[";]|mmm|ddd', code := one.get("formatCode", ""), re.IGNORECASE
            ):
                codes[one.get("numFmtId", "")] = code
            elif get_name(group) == "cellXfs":
                styles.append(one.get("numFmtId", ""))
    return {str(place): codes[number] for place, number in enumerate(styles) if number in codes}


def _count_sheet(
    source: SourceText,
    package: Package,
    path: str,
    strings: list[str],
    formats: Mapping[str, str],
    *,
    is_shown: bool,
    stale: bool,
) -> None:
    """Counts a sheet. `stale`: zeros beside formulas are recomputed when a program opens the file."""
    hidden_columns: list[tuple[int, int]] = []
    merges: list[str] = []
    hidden_cells: dict[str, _StoredCell] = {}
    for count, (cell, hidden_by) in enumerate(_iter_cells(package, path, strings, hidden_columns, merges)):
        if count >= _MAX_CELLS:
            source.omitted["sheets cut after two million cells"] += 1
            break
        if not is_shown:
            source.omitted["cells of hidden sheets"] += 1
        elif hidden_by:
            if hidden_by == "column":
                hidden_cells[f"{cell.column}{cell.row}"] = cell
            source.omitted["cells of hidden rows and columns"] += 1
        elif cell.value and not (stale and cell.has_formula and cell.kind == "n" and cell.value == "0"):
            source.add_cell("cells", _convert(cell, formats.get(cell.style, "")))
        elif cell.has_formula:
            source.omitted["formulas without a stored value"] += 1
    for merge in merges if is_shown else ():
        _count_merged(source, merge, hidden_cells, hidden_columns, formats)
    if is_shown:
        _count_beside(source, package, path)


def _count_merged(
    source: SourceText,
    merge: str,
    hidden_cells: dict[str, _StoredCell],
    hidden_columns: list[tuple[int, int]],
    formats: Mapping[str, str],
) -> None:
    """Counts a hidden cell that is seen all the same, because it is merged with visible ones in its row."""
    first, _, last = merge.partition(":")
    left, right = (_count_column(match[0]) if (match := _COLUMN.match(one)) else 0 for one in (first, last))
    is_seen = not any(low <= left and right <= high for low, high in hidden_columns)
    cell = hidden_cells.pop(first, None) if is_seen else None
    if cell is not None and cell.value:
        source.omitted["cells of hidden rows and columns"] -= 1
        source.add_cell("cells", _convert(cell, formats.get(cell.style, "")))


def _count_beside(source: SourceText, package: Package, path: str) -> None:
    """Counts drawings, comments, headers and footers. Comments of the newer kind have plain copies."""
    parts = [(one.kind, one.target, package.read(one.target)) for one in package.list_relations(path).values()]
    for kind, target, part in parts:
        if kind == "drawing" and part is not None:
            _count_drawing(source, package, target, part)
        elif kind == "vmlDrawing":
            _count_controls(source, package, target)
    threads = [part for kind, _, part in parts if kind == "threadedComment" and part is not None]
    for comments in threads or [part for kind, _, part in parts if kind == "comments" and part is not None]:
        _count_comments(source, comments)
    _count_page_heads(source, package, path)


def _count_comments(source: SourceText, part: Element) -> None:
    for comment in part.iter():
        if get_name(comment) in {"comment", "threadedComment"}:
            texts = [one.text or "" for one in comment.iter() if get_name(one) in {"t", "text"}]
            source.add_cell("comments", Cell("".join(texts)))


def _count_page_heads(source: SourceText, package: Package, path: str) -> None:
    """Counts headers, footers and messages, which stand behind the cells; codes in headers begin with `&`."""
    with package.open(path) as stream:
        stream.seek(max(0, stream.seek(0, 2) - _TAIL))
        tail = stream.read().decode("utf-8", "replace")
    _count_messages(source, tail)
    texts = {unescape(text) for text in _PAGE_HEAD.findall(tail)}
    for area in {area for text in texts for area in re.split("&[LCR]", text)}:
        pieces = [re.sub(r'&("[^"]*"|K[\dA-Fa-f+-]{6}|\d+|[A-Za-z])', "", p) for p in re.split("(?<!&)&[PN]", area)]
        if len(pieces) == 1 or any(len(re.findall(r"[^\W\d_]\S*", piece)) > 1 for piece in pieces):
            source.add_cell("page headers", Cell(" ".join(pieces)))


def _count_messages(source: SourceText, tail: str) -> None:
    """Counts what is shown beside cells that are being filled in."""
    messages = {
        message
        for message in re.findall(r"<(?:\w+:)?dataValidation\b([^>]*)>", tail)
        if re.search(r'\bshowInputMessage="(?:1|true)"', message)
    }
    for text in {text for one in messages for text in re.findall(r'\bprompt(?:Title)?="([^"]*)"', one)}:
        if text.strip():
            source.add_cell("input messages", Cell(unescape(text)))


def _count_drawing(source: SourceText, package: Package, path: str, part: Element) -> None:
    """Counts the text boxes and charts that lie on a sheet."""
    inner = SourceText()
    add_graphic_parts(inner, package, path, part)
    for words in inner.words.values():
        for word, times in words.items():
            for _ in range(times):
                source.add_cell("charts", Cell(word))
    for cells in inner.cells.values():
        source.cells.setdefault("charts", Counter()).update(cells)
    for text in _iter_box_texts(source, part):
        if text.strip():
            source.add_cell("text boxes", Cell(text))


def _iter_box_texts(source: SourceText, element: Element) -> Iterator[str]:
    """Yields the texts of the shapes that are shown."""
    for child in element:
        name = get_name(child)
        if name == "AlternateContent":
            yield from _iter_box_texts(source, choose_branch(child))
        elif any(get_name(one) == "cNvPr" and one.get("hidden") in {"1", "true"} for head in child for one in head):
            source.omit("hidden shape", " ".join(iter_text(child)))
        elif name == "txBody":
            yield from iter_text(child)
        else:
            yield from _iter_box_texts(source, child)


def _count_controls(source: SourceText, package: Package, path: str) -> None:
    """Counts the captions of form controls, in a part that need not be good XML."""
    if not package.has(path):
        return
    with package.open(path) as stream:
        text = stream.read().decode("utf-8", "replace")
    for shape in re.findall(r"<v:shape\b.*?</v:shape>", text, re.DOTALL):
        if 'ObjectType="Note"' not in shape:
            for box in re.findall(r"<v:textbox\b[^>]*>(.*?)</v:textbox>", shape, re.DOTALL):
                if caption := unescape(re.sub(r"<[^>]*>", "", box)).strip():
                    source.add_cell("form controls", Cell(caption))


def _iter_cells(
    package: Package, path: str, strings: list[str], hidden_columns: list[tuple[int, int]], merges: list[str]
) -> Iterator[tuple[_StoredCell, Literal["row", "column", ""]]]:
    """Yields each cell that has something, and whether its row or its column is hidden."""
    hidden_row = False
    row_number = place = 0
    with package.open(path) as stream:
        for event, element in ET.iterparse(stream, events=("start", "end")):  # noqa: S314 - see `Package`
            name = get_name(element)
            if event == "start":
                if name == "row":
                    row_number = int(element.get("r") or row_number + 1)
                    place = 0
                    hidden_row = element.get("hidden") in {"1", "true"}
                continue
            if name == "col" and element.get("hidden") in {"1", "true"}:
                hidden_columns.append((int(element.get("min", "0")), int(element.get("max", "0"))))
            elif name == "c":
                cell = _read_cell(element, row_number, strings)
                place = _count_column(cell.column) if cell.column else place + 1
                if cell.value or cell.has_formula:
                    is_hidden = any(low <= place <= high for low, high in hidden_columns)
                    yield cell, "row" if hidden_row else "column" if is_hidden else ""
            elif name == "row":
                element.clear()
            elif name == "mergeCell":
                merges.append(element.get("ref", ""))


def _read_cell(element: Element, row: int, strings: list[str]) -> _StoredCell:
    kind = element.get("t", "n")
    value, has_formula = "", False
    for one in element:
        name = get_name(one)
        if name == "v":
            value = one.text or ""
        elif name == "is":
            value = _collect_string(one)
        elif name == "f":
            has_formula = True
    if kind == "str":
        value = _decode(value)
    if kind == "s" and value.isdecimal():
        value = strings[int(value)] if int(value) < len(strings) else ""
    column = _COLUMN.match(element.get("r", ""))
    return _StoredCell(row, column[0] if column else "", kind, value.strip(), has_formula, element.get("s", ""))


def _count_column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _convert(stored: _StoredCell, code: str) -> Cell:
    if stored.kind == "b":
        return Cell("true" if stored.value == "1" else "false")
    if stored.kind == "d":  # shown as its format says, if it is a moment
        with contextlib.suppress(ValueError):
            moment = dt.datetime.fromisoformat(stored.value).replace(tzinfo=None)
            return Cell(number=(moment - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1))  # noqa: DTZ001 - no zone
    if stored.kind in {"s", "str", "inlineStr", "e", "d"}:
        return Cell(stored.value)
    try:
        number = float(stored.value)
    except ValueError:
        return Cell(stored.value)
    return Cell(number=number, format=code) if math.isfinite(number) else Cell(stored.value)
