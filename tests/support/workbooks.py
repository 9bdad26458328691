"""Workbooks with formats, merged cells and formulas, made by openpyxl, which stores no values of formulas."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from openpyxl import Workbook  # type: ignore[import-untyped]
from openpyxl.comments import Comment  # type: ignore[import-untyped]
from openpyxl.utils.datetime import CALENDAR_MAC_1904  # type: ignore[import-untyped]


def workbook(
    sheets: Mapping[str, Sequence[Any]],
    *,
    formats: Mapping[str, str] | None = None,
    merged: Sequence[str] = (),
    comments: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
    date1904: bool = False,
) -> bytes:
    """An xlsx. `formats`, `merged` and `comments` are of the first sheet, by address; `hidden` are names of sheets,
    and rows (`3`) and columns (`B`) of the first one."""
    book = Workbook()
    book.remove(book.active)
    if date1904:
        book.epoch = CALENDAR_MAC_1904
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name in hidden else "visible"
        for row in rows:
            sheet.append(list(row))
    _adorn(book.worksheets[0], formats or {}, merged, comments or {}, hidden)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _adorn(
    first: Any, formats: Mapping[str, str], merged: Sequence[str], comments: Mapping[str, str], hidden: Sequence[str]
) -> None:
    for address, code in formats.items():
        first[address].number_format = code
    for area in merged:
        first.merged_cells.add(area)
    for address, text in comments.items():
        first[address].comment = Comment(text, "Ada")
    for name in hidden:
        if name.isdecimal():
            first.row_dimensions[int(name)].hidden = True
        elif len(name) == 1:
            first.column_dimensions[name].hidden = True
