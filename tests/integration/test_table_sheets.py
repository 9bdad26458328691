"""Sheets as tables: totals, merged numbers, hidden rows and mixed units do not change a sum in silence."""

import datetime as dt
import io
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook  # type: ignore[import-untyped]
from openpyxl.worksheet.table import Table, TableColumn  # type: ignore[import-untyped]

from agent.tools import ToolContext
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.tables import DescribeTableTool, QueryTableTool
from mcp_tools.tables import workbooks
from tests.support.workbooks import workbook

CONTEXT = ToolContext(run_id="run_1", owner="somebody")


async def describe(folder: Path, data: bytes) -> Any:
    (folder / "given.xlsx").write_bytes(data)
    args: dict[str, Any] = {"paths": ["given.xlsx"]}
    value: Any = (await DescribeTableTool(FileRoots((folder,))).call(args, CONTEXT)).value
    return value["tables"]


async def query(folder: Path, data: bytes, sql: str) -> Any:
    (folder / "given.xlsx").write_bytes(data)
    args = {"sql": f"SELECT {sql} FROM given", "paths": ["given.xlsx"]}
    value: Any = (await QueryTableTool(FileRoots((folder,))).call(args, CONTEXT)).value
    return value["rows"][0], value["tables"][0]["notes"]


@pytest.mark.parametrize(
    ("rows", "sql", "expected"),
    [
        ([["a", 1.5], ["b", "-"], ["c", 3]], "sum(v)", 4.5),
        ([["a", dt.date(2024, 1, 2)], ["b", "n/a"], ["c", dt.date(2025, 1, 2)]], "max(v)", "2025-01-02"),
        ([["a", "1.234,50"], ["b", "5,00"]], "sum(v)", 1239.5),
        ([["a", "1.234,50"], ["b", 5.25]], "sum(v)", 1239.75),
        ([["a", "12,5-"], ["b", "\u22121,5"]], "sum(v)", -14),
        ([["a", "31.12.2024"], ["b", "01.02.2025"]], "max(v)", "2025-02-01"),
    ],
)
async def test_texts_in_a_column_of_values_are_values(
    rows: list[list[object]], sql: str, expected: object, tmp_path: Path
) -> None:
    assert (await query(tmp_path, workbook({"S": [["n", "v"], *rows]}), sql))[0] == [expected]


async def test_a_merged_number_counts_once_and_a_merged_name_in_each_row(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Team", "Year", "Budget", "Person"],
        ["A", 2024, 300, "x"], [None, None, None, "y"], [None, None, None, "z"], ["B", 2024, 100, "w"],
    ]  # fmt: skip
    data = workbook({"S": rows}, merged=["A2:A4", "B2:B4", "C2:C4"])
    found, notes = await query(tmp_path, data, "sum(Budget), count(Team), count(Year)")
    assert found == [400, 4, 4]
    assert notes == ["sheet S: numbers of merged cells are in the first of their rows only: C2"]


def make_listed(last: list[object]) -> bytes:
    """A workbook with a table of the sheet that ends in a totals row."""
    book = Workbook()
    sheet = book.active
    for row in (["Item", "Qty"], ["a", 1], ["b", 3], last):
        sheet.append(row)
    table = Table(displayName="T", ref="A1:B4", totalsRowCount=1)
    table.tableColumns = [TableColumn(id=1, name="Item", totalsRowLabel="Total"), TableColumn(id=2, name="Qty")]
    sheet.add_table(table)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


async def test_the_totals_row_of_a_table_is_left_out(tmp_path: Path) -> None:
    found, notes = await query(tmp_path, make_listed(["Total", 4]), "sum(Qty), count(*)")
    assert found == [4, 2]
    assert notes == ["sheet Sheet: totals of a table were left out: A4:B4"]


@pytest.mark.parametrize(
    ("rows", "is_total"),
    [
        ([["a", 1, 5], ["b", 2, 5], ["c", 4, 5], ["Sum", 7, 15]], True),
        ([["a", 1, 5], ["b", 2, 5], [None, 3, 10]], True),
        ([["a", 1, 5], ["b", 2, 5], ["c", 3, 6]], False),
        ([["a", 1, None], ["b", 2, None], ["c", 3, None]], False),
        ([["a", 0, 0], ["b", 0, 0], ["c", 0, 0], ["d", 0, 0]], False),
    ],
)
async def test_a_last_row_of_sums_is_named(rows: list[list[object]], is_total: bool, tmp_path: Path) -> None:
    _, notes = await query(tmp_path, workbook({"S": [["n", "v", "w"], *rows]}), "count(*)")
    assert any("holds the sums of v, w above it" in note for note in notes) == is_total, notes


async def test_hidden_rows_and_mixed_units_are_named(tmp_path: Path) -> None:
    rows: list[list[object]] = [["n", "v", "w"], ["a", 10, 0.175], ["b", 20, 5], ["c", 31, 0.5]]
    formats = {"B2": '0.00 "EUR"', "B3": "[$$-409]0.00", "B4": '0 "EUR"', "C2": "0.0%", "C3": '0 "days"', "C4": "0%"}
    _, notes = await query(tmp_path, workbook({"S": rows}, formats=formats, hidden=["3"]), "count(*)")
    assert notes == [
        "sheet S: 1 row is hidden, perhaps by a filter, and counted here",
        "column v mixes units ($, EUR); the values are their bare numbers",
        "column w mixes units (%, days); the values are their bare numbers",
    ]


async def test_a_column_of_dates_with_a_text_says_why_it_is_text(tmp_path: Path) -> None:
    day = dt.date(2024, 1, 2)
    rows: list[list[object]] = [["n", "d"], *(["a", day] for _ in range(8)), ["b", "late"]]
    (table,) = await describe(tmp_path, workbook({"S": rows}))
    assert table["columns"][1]["type"] == "VARCHAR"
    assert table["notes"] == [
        "column d is compared as text, because 1 of 9 values are texts, such as 'late'; use TRY_CAST"
    ]


async def test_sheets_beyond_the_limit_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets = {f"S{number}": [["a"], [number]] if number % 2 else [] for number in range(60)}
    assert len(await describe(tmp_path, workbook(sheets))) == 30
    path = tmp_path / "given.xlsx"
    with path.open("rb") as file:
        monkeypatch.setattr(workbooks, "MAX_SHEETS", 28)
        texts = workbooks.read_sheets(file.fileno())
    assert len(texts) == 28
    assert texts[0].notes == ["30 sheets have cells, of which the first 28 were read; not read: S57, S59"]
