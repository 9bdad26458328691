"""xlsx by openpyxl: the fall-back for workbooks that kreuzberg refuses. Values as last calculated; a sheet is
a page."""

import datetime as dt
import io

from openpyxl import load_workbook  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile

_MAX_CELLS = 2_000_000
"""An empty sheet may claim 17 billion cells (1,048,576 rows of 16,384)."""


def read_sheets(source: InputFile) -> Draft:
    """Reads a workbook. Raises openpyxl's errors on damage."""
    book = load_workbook(io.BytesIO(source.data), read_only=True, data_only=True)
    draft = Draft(pages=len(book.worksheets), metadata={"sheets": [sheet.title for sheet in book.worksheets]})
    for number, sheet in enumerate(book.worksheets, 1):
        draft.add_heading(sheet.title, 1, number)
        sheet.reset_dimensions()  # the size a sheet claims may be a lie; the rows that are there count
        rows, cells = [], 0
        for row in sheet.iter_rows(values_only=True):
            cells += len(row)
            if cells > _MAX_CELLS:
                draft.uncertainties.append(f"sheet {sheet.title} was cut after {_MAX_CELLS} cells")
                break
            rows.append([_format_value(value) for value in row])
        draft.add_table(rows, number)
    return draft


def _format_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.15g}"  # what Excel itself shows at most
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return str(value)
