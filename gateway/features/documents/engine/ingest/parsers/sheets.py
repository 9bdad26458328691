"""xlsx as its sheets show it: formatted numbers, merged cells, headers over several rows, comments, charts.

A sheet is a page. Hidden sheets, rows and columns are left out, and a note says so.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from agent.core.models import JsonObject
from agent.workbooks import Sheet, Workbook, open_workbook
from agent.workbooks.form_controls import iter_control_texts
from agent.workbooks.formulas import count_column
from agent.workbooks.package import WorkbookPackage, get_name
from agent.workbooks.sheet_reader import MAX_CELLS
from agent.workbooks.sheets import join_addresses
from agent.workbooks.tables import SheetTable, find_moved_cells, find_tables, show_cell
from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.graphics import (
    CHOICES,
    add_graphics,
    choose_content,
    iter_drawn_lines,
)

_ADDRESS = re.compile(r"([A-Z]{1,3})(\d{1,7})")


def read_sheets(source: InputFile) -> Draft:
    """Reads a workbook. Raises the errors of zipfile and lxml on damage."""
    book = open_workbook(source.data)
    draft = Draft(pages=len(book.sheets), metadata=_read_metadata(book))
    for number, sheet in enumerate(book.sheets, 1):
        if not sheet.is_shown:
            cells = sum(map(len, sheet.rows.values()))
            if cells:
                draft.uncertainties.append(f"sheet {sheet.name} is hidden and was left out ({_count_cells(cells)})")
            continue
        start = len(draft.blocks)
        draft.add_heading(sheet.name, 1, number)
        _add_sheet(draft, book, sheet, number)
        if len(draft.blocks) == start + 1:  # an empty sheet
            del draft.blocks[start:]
    draft.uncertainties.extend(_describe_embedded(source.data))
    return draft


def _describe_embedded(data: bytes) -> Iterator[str]:
    """Names the documents and objects of other programs that lie on sheets."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [PurePosixPath(name) for name in archive.namelist()]
    for name in sorted(part.name for part in parts if part.parent.name == "embeddings"):
        yield f"an embedded object was not read ({name})"


def _add_sheet(draft: Draft, book: Workbook, sheet: Sheet, page: int) -> None:
    tables = find_tables(book, sheet)
    for table in tables:
        for title in table.titles:
            draft.add_text(title, page)
        draft.add_table([table.names, *_iter_rows(book, sheet, table)], page)
    for address, text in sheet.comments.items():
        draft.add_text(f"Comment on {_describe_cell(book, sheet, tables, address)}: {text}", page)
    for text, places in sheet.input_messages.items():
        draft.add_text(f"Input message at {join_addresses(list(dict.fromkeys(places)))}: {text}", page)
    for text in sheet.page_heads:
        draft.add_text(f"Page header or footer: {text}", page)
    for text in iter_control_texts(book.package, sheet.controls):
        draft.add_text(f"Form control: {text}", page)
    if sheet.drawing:
        _add_drawing(draft, book, sheet.drawing, page)
    draft.uncertainties.extend(book.describe_formulas(sheet))
    draft.uncertainties.extend(_describe_limits(sheet))


def _describe_cell(book: Workbook, sheet: Sheet, tables: Sequence[SheetTable], address: str) -> str:
    """The address of a cell, with the head of its column and the first cell of its row: `B2 (Gannet rope, Stock)`."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return address
    row, column = int(match[2]), count_column(match[1])
    table = next((one for one in tables if row in one.rows and column in one.columns), None)
    if table is None:
        return address
    first = show_cell(book, sheet, table, row, table.columns[0]) if column != table.columns[0] else ""
    head = table.names[table.columns.index(column)] if table.has_header else ""
    heads = [" ".join(one.split()) for one in (first, head)]
    return f"{address} ({', '.join(filter(None, heads))})" if any(heads) else address


def _iter_rows(book: Workbook, sheet: Sheet, table: SheetTable) -> Iterator[list[str]]:
    for row in table.rows:
        yield [show_cell(book, sheet, table, row, column) for column in table.columns]


def _describe_limits(sheet: Sheet) -> Iterator[str]:
    if sheet.is_cut:
        yield f"sheet {sheet.name} was cut after {MAX_CELLS:,} cells"
    if sheet.linked_cells:
        verb = "shows" if sheet.linked_cells == 1 else "show"
        yield (
            f"sheet {sheet.name}: {_count_cells(sheet.linked_cells)} {verb} a picture or linked data, which was not "
            "read"
        )
    hidden = sum(
        row in sheet.hidden_rows or column in sheet.hidden_columns
        for row, cells in sheet.rows.items()
        for column in cells
    ) - len(find_moved_cells(sheet))
    if hidden:
        verb = "was" if hidden == 1 else "were"
        yield f"sheet {sheet.name}: {_count_cells(hidden)} of hidden rows and columns {verb} left out"


def _count_cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number:,} cells"


class _Part:
    """A part of a workbook, as `add_graphics` reads it."""

    def __init__(self, package: WorkbookPackage, path: str) -> None:
        self._package = package
        self._path = path

    @property
    def blob(self) -> bytes:
        """The part's bytes."""
        with self._package.open(self._path) as stream:
            return stream.read()

    @property
    def rels(self) -> dict[str, Any]:
        """The part's relationships by their ids."""
        relations = self._package.list_relations(self._path)
        return {number: _Target(_Part(self._package, one.target)) for number, one in relations.items()}


class _Target:
    def __init__(self, part: _Part) -> None:
        self.target_part = part


def _add_drawing(draft: Draft, book: Workbook, path: str, page: int) -> None:
    """Adds the text boxes and the charts that lie on a sheet."""
    root = book.package.read(path)
    if root is None:
        return
    _remove_unseen(root)
    for shape in root.iter("{*}txBody"):
        draft.add_text("\n".join(iter_drawn_lines(shape)), page)
    for properties in root.iter("{*}cNvPr"):
        if properties.get("descr"):
            draft.add_description(properties.get("descr"), page)
    add_graphics(draft, root, _Part(book.package, path), page, cells=book)


def _remove_unseen(root: Any) -> None:
    """Removes hidden shapes from a drawing, and of alternative contents those that are not shown."""
    for choices in list(root.iter(f"{CHOICES}AlternateContent")):
        chosen = choose_content(choices)
        for branch in list(choices):
            if branch is not chosen:
                choices.remove(branch)
    for properties in list(root.iter("{*}cNvPr")):
        shape = properties.getparent().getparent()
        if properties.get("hidden") in {"1", "true"} and shape.getparent() is not None:
            shape.getparent().remove(shape)


def _read_metadata(book: Workbook) -> JsonObject:
    metadata: JsonObject = {"sheets": [sheet.name for sheet in book.sheets]}
    path = next((o.target for o in book.package.list_relations("").values() if o.kind == "core-properties"), "")
    root = book.package.read(path)
    for element in () if root is None else root:
        name = {"title": "title", "creator": "authors", "created": "created", "modified": "modified"}.get(
            get_name(element)
        )
        if name and element.text:
            metadata[name] = [element.text] if name == "authors" else element.text
    return metadata
