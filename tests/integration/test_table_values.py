"""`describe_table` and `query_table` on workbooks and CSV as people write them: typed values, headers, lines above."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolInputError
from agent.tools import ToolContext
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.tables import DescribeTableTool, QueryTableTool
from tests.support.workbooks import workbook

CONTEXT = ToolContext(run_id="run_1", owner="somebody")


async def describe(folder: Path, *paths: str, **given: Any) -> Any:
    args = given or {"paths": list(paths)}
    value = (await DescribeTableTool(FileRoots((folder,))).call(args, CONTEXT)).value
    assert isinstance(value, dict)
    return value["tables"]


async def query(folder: Path, sql: str, path: str) -> Any:
    value = (await QueryTableTool(FileRoots((folder,))).call({"sql": sql, "paths": [path]}, CONTEXT)).value
    assert isinstance(value, dict)
    return value


MOMENTS = [dt.datetime(2026, 3, day, hour) for day, hour in ((1, 14), (2, 8))]  # noqa: DTZ001 - sheets know no zone
LEDGER = workbook(
    {
        "Ledger": [
            ["Code", "Day", "Moment", "Share", "Price", "Span", "Flag", "Opens", "Sum"],
            [7, dt.date(2026, 3, 1), MOMENTS[0], 0.175, 1234.5, 1.128472222222222, True, 0.34375, "=1+1"],
            [42, dt.date(2026, 3, 2), MOMENTS[1], 1, -5, 0.5, False, 0.5, '=NOW()'],
            [9, None, None, "#N/A", None, None, None, None, None],
        ]
    },
    formats={
        "A2": "00000", "A3": "00000", "A4": "00000", "B2": "dd.mm.yyyy", "B3": "dd.mm.yyyy", "D2": "0.0%", "D3": "0%",
        "E2": '#,##0.00 "SEK"', "F2": "[h]:mm", "F3": "[h]:mm", "H2": "h:mm", "H3": "h:mm",
    },
)  # fmt: skip


async def test_a_workbook_keeps_typed_values(tmp_path: Path) -> None:
    (tmp_path / "ledger.xlsx").write_bytes(LEDGER)
    (table,) = await describe(tmp_path, "ledger.xlsx")
    columns = {column["name"]: (column["type"].split("(")[0], column["format"]) for column in table["columns"]}
    assert columns == {
        "Code": ("VARCHAR", "00000"),
        "Day": ("DATE", "dd.mm.yyyy"),
        "Moment": ("TIMESTAMP", "yyyy-mm-dd h:mm:ss"),
        "Share": ("DECIMAL", "0.0%"),
        "Price": ("DECIMAL", '#,##0.00 "SEK"'),
        "Span": ("INTERVAL", "[h]:mm"),
        "Flag": ("BOOLEAN", ""),
        "Opens": ("TIME", "h:mm"),
        "Sum": ("BIGINT", ""),
    }
    assert table["sample"][0] == [
        "00007", "2026-03-01", "2026-03-01T14:00:00", 0.175, 1234.5, "27:05:00", True, "08:15:00", 2,
    ]  # fmt: skip
    assert table["notes"] == [
        "sheet Ledger: computed, because the file stores no value: I2",
        "sheet Ledger: formula without value: I3",
        "sheet Ledger: cells with an error have no value here: D4",
    ]
    found = await query(
        tmp_path, "SELECT sum(Share), max(Day) - min(Day), to_seconds(sum(epoch(Span))) FROM ledger", "ledger.xlsx"
    )
    assert found["rows"] == [[1.175, 1, "39:05:00"]]
    assert found["tables"][0]["notes"] == table["notes"]
    with pytest.raises(ToolInputError, match=r"to_seconds\(sum\(epoch\(column\)\)\)"):
        await query(tmp_path, "SELECT sum(Span) FROM ledger", "ledger.xlsx")


async def test_lines_above_and_joined_headers_are_found(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Costs of March"],
        ["Region", "2025", None],
        [None, "Q1", "Q2"],
        ["North", 5, 6],
        ["South", 7, 8],
    ]
    (tmp_path / "costs.xlsx").write_bytes(workbook({"S": rows}, merged=["A2:A3", "B2:C2"]))
    (table,) = await describe(tmp_path, "costs.xlsx")
    assert [column["name"] for column in table["columns"]] == ["Region", "2025 Q1", "2025 Q2"]
    assert table["notes"] == ["above the table: Costs of March"]
    assert (await query(tmp_path, 'SELECT sum("2025 Q2") FROM costs', "costs.xlsx"))["rows"] == [[14]]


async def test_a_sheet_without_names_keeps_its_first_row(tmp_path: Path) -> None:
    (tmp_path / "plain.xlsx").write_bytes(workbook({"S": [["a", 1], ["b", 2]]}))
    assert (await query(tmp_path, "SELECT count(*) FROM plain", "plain.xlsx"))["rows"] == [[2]]


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["1 234.50", "(200.00)", "5"], 1039.5),
        (["€99", "€ 1 000.25", "-€1"], 1098.25),
        (["99 kr", "(1 kr)", "2 kr"], 100),
        (['"1,234.50"', '"(1,000.00)"', "1.00"], 235.5),
    ],
)
async def test_amounts_are_numbers_where_the_whole_column_is(cells: list[str], total: float, tmp_path: Path) -> None:
    (tmp_path / "amounts.csv").write_text("\n".join(["name,amount", *(f"x,{cell}" for cell in cells)]))
    assert (await query(tmp_path, "SELECT sum(amount) FROM amounts", "amounts.csv"))["rows"] == [[total]]
    sheet = workbook({"S": [["name", "amount"], *(["x", cell.strip('"')] for cell in cells), ["x", 0.5]]})
    (tmp_path / "amounts.xlsx").write_bytes(sheet)
    assert (await query(tmp_path, "SELECT sum(amount) FROM amounts", "amounts.xlsx"))["rows"] == [[total + 0.5]]


async def test_amounts_among_texts_and_codes_stay_text(tmp_path: Path) -> None:
    (tmp_path / "mixed.csv").write_text("amount,code\n€99,00471\nnone,12\n")
    found = await query(tmp_path, "SELECT * FROM mixed", "mixed.csv")
    assert found["rows"] == [["€99", "00471"], ["none", "12"]]


async def test_a_separator_line_titles_and_escaped_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=;\nName;Price\nBolt;1,50\nNut;2,25\n")
    assert (await query(tmp_path, "SELECT sum(Price) FROM a", "a.csv"))["rows"] == [[3.75]]
    (tmp_path / "b.csv").write_text('Report of March\n\nName,Qty\n"a \\"b\\", c",5\nNut,6\n')
    found = await query(tmp_path, "SELECT * FROM b", "b.csv")
    assert found["rows"] == [['a "b", c', 5], ["Nut", 6]]
    assert found["tables"][0]["notes"] == ["above the table: Report of March"]


async def test_an_argument_of_earlier_versions_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    assert (await describe(tmp_path, path="a.csv"))[0]["row_count"] == 1


async def test_each_table_of_a_text_is_one(tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_text(
        "Books of 2026\n\nAccount: Cash\nDate,Ref,Debit,Credit\n2026-03-01,A1,100.00,\n2026-03-02,A2,,40.00\n\n"
        "2026-03-03,A3,,5.00\n\nAccount: Stock\nItem,Count\nRope,4\nNet,9\n"
    )
    first, second = await describe(tmp_path, "books.csv")
    assert [column["name"] for column in first["columns"]] == ["Date", "Ref", "Debit", "Credit"]
    assert [column["name"] for column in second["columns"]] == ["Item", "Count"]
    assert "row 1 is row 9 of the file" in second["notes"]
    assert (await query(tmp_path, "SELECT sum(Debit), sum(Credit) FROM books", "books.csv"))["rows"] == [[100, 45]]
    assert (await query(tmp_path, "SELECT sum(Count) FROM books_2", "books.csv"))["rows"] == [[13]]
