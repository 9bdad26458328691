"""Sheets as tables: totals, merged numbers, hidden rows and mixed units do not change a sum in silence."""

import datetime as dt
import io
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook  # type: ignore[import-untyped]
from openpyxl.styles import Font  # type: ignore[import-untyped]
from openpyxl.worksheet.table import Table, TableColumn  # type: ignore[import-untyped]

from agent.tools import ToolContext
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.sheets import read_sheets
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
    args: dict[str, Any] = {"sql": f"SELECT {sql} FROM given", "paths": ["given.xlsx"]}
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


@pytest.mark.parametrize(
    ("values", "code", "sql", "expected", "note"),
    [
        ([0.05, "10%", "2,5 %"], "0%", "sum(v)", 0.175, ""),
        ([5, "10%"], "General", "max(v)", "5", "column v is compared as text, because only some of its values are in"),
        ([0.05, "10"], "0%", "max(v)", "5%", "column v is compared as text, because only some of its values are in"),
        ([5, "10 $"], '0 "EUR"', "sum(v)", 15, "column v mixes units ($, EUR)"),
    ],
)
async def test_per_cent_texts_count_as_the_percentages_beside_them(
    values: list[object], code: str, sql: str, expected: object, note: str, tmp_path: Path
) -> None:
    rows: list[list[object]] = [["n", "v"], *(["a", value] for value in values)]
    result, notes = await query(tmp_path, workbook({"S": rows}, formats={"B2": code}), sql)
    assert result == [expected]
    assert [one[: len(note)] for one in notes] == ([note] if note else [])


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


def read_tables(data: bytes) -> list[list[str]]:
    """The first cells of each table that ingestion reads."""
    blocks = read_sheets(InputFile(data, "xlsx")).blocks
    return [block.text.splitlines()[0].strip("| ").split(" | ") for block in blocks if block.layout == "table"]


ITEMS: list[list[object]] = [["Pos", "Item", "Qty"], [1, "Bolt", 5], [2, "Nut", 7], [3, "Cog", 8]]
PEOPLE: list[list[object]] = [["Person", "Hours"], ["Ann", 7.5], ["Bob", 8]]
MONTHS = [dt.date(2024, month, 1) for month in (1, 2)]


@pytest.mark.parametrize(
    ("rows", "formats", "expected"),
    [
        (
            [["Name", *MONTHS], ["a", 1, 2], ["b", 3, 4]],
            {"B1": "mmm yy", "C1": "mmm yy"},
            [["Name", "Jan 24", "Feb 24"]],
        ),
        ([["Firm", "Sample"], ["Day", dt.date(2024, 1, 1)], *ITEMS], {}, [["Pos", "Item", "Qty"]]),
        ([["Firm", "Sample", "Ltd"], ["Day", MONTHS[0], "x"], [], *ITEMS], {}, [["Pos", "Item", "Qty"]]),
        (
            [["Team", 2023, None, 2024, None], [None, *["Plan", "Fact"] * 2], ["a", 1, 2, 3, 4], ["b", 5, 6, 7, 8]],
            {},
            [["Team", "2023 Plan", "2023 Fact", "2024 Plan", "2024 Fact"]],
        ),
        (
            [["Item", "Qty", "Sum"], [None, "kg", "EUR"], ["a", 1, 2.5], ["b", 3, 4]],
            {},
            [["Item", "Qty kg", "Sum EUR"]],
        ),
        ([*ITEMS, [], *PEOPLE], {}, [["Pos", "Item", "Qty"], ["Person", "Hours"]]),
        ([*ITEMS, [], ["Hours of May"], *PEOPLE], {}, [["Pos", "Item", "Qty"], ["Person", "Hours"]]),
        ([*ITEMS, [], ["Hours of May"], [], *PEOPLE], {}, [["Pos", "Item", "Qty"], ["Person", "Hours"]]),
        (
            [[*row, None, *other] for row, other in zip([row[1:] for row in ITEMS], [*PEOPLE, ["Cy", 1]], strict=True)],
            {},
            [["Item", "Qty"], ["Person", "Hours"]],
        ),
        (
            [*ITEMS, [4, "Pin", 9, None, "Day", "Hours"], [5, "Cap", 9, None, 1, 7.5], [6, "Rod", 2, None, 2, 8]],
            {},
            [["Pos", "Item", "Qty"], ["Day", "Hours"]],
        ),
        # No tables of their own: groups of rows with a line between them, and a column left free.
        ([*ITEMS, [], [4, "Pin", 9], [], [5, "Cap", 9]], {}, [["Pos", "Item", "Qty"]]),
        ([["Item", "Fact", None, "Plan"], ["a", 1, None, 2], ["b", 3, None, 4]], {}, [["Item", "Fact", "Plan"]]),
    ],
)
async def test_each_table_of_a_sheet_has_its_own_header(
    rows: list[list[object]], formats: dict[str, str], expected: list[list[str]], tmp_path: Path
) -> None:
    data = workbook({"S": rows}, formats=formats)
    tables = await describe(tmp_path, data)
    assert [[column["name"] for column in table["columns"]] for table in tables] == expected
    assert read_tables(data) == expected
    numbers = {"BIGINT", "DECIMAL"}
    assert all(any(one["type"].partition("(")[0] in numbers for one in table["columns"]) for table in tables)


@pytest.mark.parametrize("first", [["Hold", "tbd", "tbd"], ["Hold", "tbd", "late"], [None, "tbd", "tbd"]])
async def test_a_first_row_of_texts_is_no_header(first: list[object], tmp_path: Path) -> None:
    data = workbook({"S": [["name", "q1", "q2"], first, ["Ann", 1, 2], ["Bob", 3, 4], ["Cy", 5, 6]]})
    (table,) = await describe(tmp_path, data)
    assert ([column["name"] for column in table["columns"]], table["row_count"]) == (["name", "q1", "q2"], 4)
    assert read_tables(data) == [["name", "q1", "q2"]]


async def test_a_second_table_of_a_sheet_has_a_name_and_its_line_above(tmp_path: Path) -> None:
    tables = await describe(tmp_path, workbook({"S": [*ITEMS, [], ["Hours of May"], *PEOPLE]}))
    assert [(table["table"], table["row_count"], table["notes"]) for table in tables] == [
        ("given", 3, []),
        ("given_s", 2, ["above the table: Hours of May"]),
    ]


async def test_tables_beyond_the_limit_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheets = {f"S{number}": [["a"], [number]] if number % 2 else [] for number in range(60)}
    assert len(await describe(tmp_path, workbook(sheets))) == 30
    path = tmp_path / "given.xlsx"
    with path.open("rb") as file:
        monkeypatch.setattr(workbooks, "MAX_TABLES", 28)
        texts = workbooks.read_sheets(file.fileno())
    assert len(texts) == 28
    assert texts[0].notes == ["the workbook has more than 28 tables; not or not wholly read: sheets S57, S59"]


async def test_struck_cells_are_told_and_struck_texts_are_marked(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    for row in (["Plan", "Price"], ["Basic", 100], ["Old", 50]):
        sheet.append(row)
    for address in ("B2", "A3"):
        sheet[address].font = Font(strike=True)
    buffer = io.BytesIO()
    book.save(buffer)
    found, notes = await query(tmp_path, buffer.getvalue(), "sum(Price), max(Plan)")
    assert found == [150, "~~Old~~"]
    assert "sheet Sheet: cells are struck out, and their numbers are counted here: B2, A3" in notes
