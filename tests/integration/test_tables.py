"""`describe_table` and `query_table` on real files, in the real worker process."""

import asyncio
import csv
import json
import os
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.tools import ToolContext, ToolResult
from mcp_tools.builtin import tables
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.tables import DescribeTableTool, QueryTableTool
from mcp_tools.tables import process

CONTEXT = ToolContext(run_id="run_1", owner="somebody")
ORDERS = "id,amount,zip,day,paid\n1,12.10,00123,2026-01-02,true\n2,0.20,00456,2026-02-03,false\n3,,00457,,\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    root.mkdir()
    (root / "orders.csv").write_text(ORDERS)
    return root


async def query(folder: Path, sql: str, *paths: str, **options: Any) -> ToolResult:
    args = {"sql": sql, "paths": list(paths) or ["orders.csv"], **options}
    return await QueryTableTool(FileRoots((folder,))).call(args, CONTEXT)


async def rows(folder: Path, sql: str, *paths: str, **options: Any) -> Any:
    value = (await query(folder, sql, *paths, **options)).value
    assert isinstance(value, dict)
    return value["rows"]


async def describe(folder: Path, path: str) -> Any:
    value = (await DescribeTableTool(FileRoots((folder,))).call({"paths": [path]}, CONTEXT)).value
    assert isinstance(value, dict)
    return value["tables"]


async def test_a_table_is_described_with_types_counts_and_first_rows(folder: Path) -> None:
    (table,) = await describe(folder, "orders.csv")
    assert (table["table"], table["row_count"]) == ("orders", 3)
    assert {column["name"]: (column["type"].split("(")[0], column["missing"]) for column in table["columns"]} == {
        "id": ("BIGINT", 0),
        "amount": ("DECIMAL", 1),
        "zip": ("VARCHAR", 0),  # leading zeros: an identifier, no number
        "day": ("DATE", 1),
        "paid": ("BOOLEAN", 1),
    }
    assert table["sample"][0] == [1, 12.1, "00123", "2026-01-02", True]


async def test_rows_come_as_a_markdown_table_and_as_data(folder: Path) -> None:
    result = await query(folder, "SELECT id, amount, 'a|b' AS note FROM orders ORDER BY id")
    assert result.text.splitlines() == [
        "| id | amount | note |",
        "| --- | --- | --- |",
        "| 1 | 12.1 | a\\|b |",
        "| 2 | 0.2 | a\\|b |",
        "| 3 |  | a\\|b |",
    ]
    assert [source.name for source in result.sources] == ["orders.csv"]
    assert [row[1] for row in result.value["rows"]] == [12.1, 0.2, None]  # type: ignore[index,call-overload,union-attr]


@pytest.mark.parametrize("table", ["orders", "data", "'orders.csv'", '"orders.csv"'])
async def test_a_table_has_its_files_name_and_a_single_one_is_data(folder: Path, table: str) -> None:
    assert await rows(folder, f"SELECT count(*) FROM {table}") == [[3]]


async def test_sums_over_100_000_rows_are_exact(folder: Path) -> None:
    amounts = [Decimal(number % 9973) / 100 + Decimal("0.1") for number in range(100_000)]
    with (folder / "large.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "team", "amount"])
        writer.writerows([number, f"t{number % 7}", amount] for number, amount in enumerate(amounts))
    assert await rows(folder, "SELECT sum(amount), count(*) FROM large", "large.csv") == [
        [float(sum(amounts)), 100_000]
    ]
    per_team = await rows(folder, "SELECT team, sum(amount) FROM large GROUP BY team ORDER BY team", "large.csv")
    assert per_team == [[f"t{team}", float(sum(amounts[team::7]))] for team in range(7)]


async def test_files_of_every_format_are_read(folder: Path) -> None:
    (folder / "a.tsv").write_text("x\ty\n1\t2.5\n2\t3.5\n")
    (folder / "b.jsonl").write_text('{"x": 1.1, "y": {"z": 1}}\n{"x": 2.2, "y": {"z": 2}}\n')
    book = openpyxl.Workbook()
    book.active.append(["x", "day"])
    book.active.append([1.5, datetime(2026, 1, 2)])  # noqa: DTZ001 - workbooks know no time zone
    book.create_sheet("Second sheet").append(["only a head"])
    book.save(folder / "c.xlsx")
    import duckdb

    duckdb.sql(f"COPY (SELECT range AS x, 0.1::DOUBLE AS y FROM range(10)) TO '{folder / 'd.parquet'}'")
    assert await rows(folder, "SELECT sum(y) FROM a", "a.tsv") == [[6]]
    assert await rows(folder, "SELECT sum(x), sum(y.z) FROM b", "b.jsonl") == [[3.3, 3]]
    assert await rows(folder, "SELECT x, day FROM c", "c.xlsx") == [[1.5, "2026-01-02"]]
    assert [table["table"] for table in await describe(folder, "c.xlsx")] == ["c", "c_second_sheet"]
    assert await rows(folder, "SELECT sum(x), sum(y) FROM d", "d.parquet") == [[45, 1]]


async def test_tables_of_several_files_are_joined(folder: Path) -> None:
    (folder / "places.csv").write_text("zip,city\n00123,Lund\n00456,Bergen\n")
    sql = "SELECT city, amount FROM orders JOIN places USING (zip) ORDER BY city"
    assert await rows(folder, sql, "orders.csv", "places.csv") == [["Bergen", 0.2], ["Lund", 12.1]]


@pytest.mark.parametrize(
    ("data", "sql", "expected"),
    [
        ("Stadt;Umsatz\nMalmö;1.234,50\nKöln;12,5\n".encode("latin-1"), "sum(Umsatz)", 1247),
        ("a,b\n1,ü\n".encode("utf-16"), "max(b)", "ü"),
        (b"\xef\xbb\xbfa,b\n1,2\n", "sum(a)", 1),
        (b"region,2023,2024\nnorth,1,2\nsouth,3,4\n", 'sum("2024")', 6),
        (b"1,x\n2,y\n", "sum(column0)", 3),
        (b"id,big\n1,12345678901234567890\n", "max(big)", "12345678901234567890"),
        (b"n\n9007199254740993\n", "max(n)", "9007199254740993"),
        (b"a\n1\nx\n", "max(a)", "x"),
    ],
)
async def test_tables_as_people_write_them(folder: Path, data: bytes, sql: str, expected: object) -> None:
    (folder / "given.csv").write_bytes(data)
    assert await rows(folder, f"SELECT {sql} FROM given", "given.csv") == [[expected]]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("COPY orders TO 'stolen.csv'", "only SELECT statements are allowed, this is COPY"),
        ("ATTACH 'other.db'", "this is ATTACH"),
        ("INSTALL httpfs", "only SELECT statements"),
        ("LOAD httpfs", "only SELECT statements"),
        ("SET threads = 8", "this is SET"),
        ("EXPORT DATABASE 'x'", "this is EXPORT"),
        ("CREATE TABLE x AS SELECT 1", "this is CREATE"),
        ("SELECT 1; SELECT 2", "exactly one SQL statement, not 2"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Cannot access file"),
        ("SELECT * FROM read_text('/proc/self/environ')", "Cannot access file"),
        ("SELECT * FROM read_blob('/dev/fd/3')", "Cannot access file"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT * FROM glob('/*')", "Cannot access file"),
        ("SELECT * FROM connection", "does not exist"),
        ("SELECT nothing FROM orders", "not found"),
        ("SELECT * FROM ordrs", "the tables are orders"),
    ],
)
async def test_sql_reaches_nothing_but_the_tables(folder: Path, sql: str, why: str) -> None:
    with pytest.raises(ToolInputError, match=why):
        await query(folder, sql)
    assert os.listdir(folder) == ["orders.csv"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("path", "error", "why"),
    [
        ("../secret.csv", ToolDeniedError, "is not followed"),
        ("/etc/passwd", ToolDeniedError, "outside"),
        ("link.csv", ToolDeniedError, "symbolic link"),
        ("missing.csv", ToolInputError, "no file"),
        ("notes.md", ToolInputError, "not a table file; known types: .csv"),
        ("empty.csv", ToolInputError, "empty"),
        ("binary.csv", ToolInputError, "not a text file"),
        ("broken.parquet", ToolInputError, "broken.parquet cannot be read as parquet"),
        ("broken.xlsx", ToolInputError, "broken.xlsx cannot be read as xlsx: it is not a readable workbook"),
    ],
)
async def test_what_is_no_readable_table_says_why(folder: Path, path: str, error: type[ToolError], why: str) -> None:
    (folder.parent / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    for name, data in (
        ("notes.md", b"x"),
        ("empty.csv", b""),
        ("binary.csv", b"\x00\x01"),
        ("broken.parquet", b"x" * 50),
    ):
        (folder / name).write_bytes(data)
    (folder / "broken.xlsx").write_bytes(b"no zip")
    with pytest.raises(error, match=why) as caught:
        await query(folder, "SELECT 1", path)
    assert "/dev/fd" not in caught.value.message


async def test_a_long_result_says_that_it_goes_on(folder: Path) -> None:
    result = await query(folder, "SELECT * FROM range(5000)", max_rows=10)
    assert len(result.value["rows"]) == 10  # type: ignore[index,call-overload,arg-type]
    assert "[more rows; aggregate" in result.text


@pytest.mark.parametrize(
    ("sql", "kill_delay_s"),
    [
        ("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", 10.0),
        # A single call, which nothing interrupts: the worker is killed.
        ("SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))", 0.4),
    ],
)
async def test_a_query_ends_at_its_time_limit(
    folder: Path, sql: str, kill_delay_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "QUERY_SECONDS", 0.2)
    monkeypatch.setattr(process, "KILL_DELAY_S", kill_delay_s)
    with pytest.raises(ToolTimeoutError, match=r"did not finish within 0\.2 s"):
        async with asyncio.timeout(20):
            await query(folder, sql)


STATES = "id,state,town,note\n" + "".join(
    f"{number},{('Paid', 'open', 'cancelled')[number % 3]},town-{number},{'long ' * 20}\n" for number in range(30)
)


async def test_a_text_column_with_few_values_has_them_listed(folder: Path) -> None:
    (folder / "states.csv").write_text(STATES)
    (table,) = await describe(folder, "states.csv")
    values = {column["name"]: column["values"] for column in table["columns"]}
    assert values == {"id": [], "state": ["Paid", "cancelled", "open"], "town": [], "note": []}
    text = (await DescribeTableTool(FileRoots((folder,))).call({"paths": ["states.csv"]}, CONTEXT)).text
    assert "| Paid, cancelled, open |" in text


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT paid FROM states", "'paid' is not a column but a value of state: write state = 'Paid'"),
        ('SELECT id FROM states WHERE "o\'pen" = 1', ""),
        ("SELECT gone FROM states", ""),
    ],
)
async def test_a_value_that_is_taken_for_a_column_is_explained(folder: Path, sql: str, hint: str) -> None:
    (folder / "states.csv").write_text(STATES)
    with pytest.raises(ToolInputError, match="not found") as failed:
        await query(folder, sql, "states.csv")
    assert hint in str(failed.value)
    assert bool(hint) == ("is not a column but" in str(failed.value))


async def test_a_correction_of_a_query_is_told(folder: Path) -> None:
    (folder / "states.csv").write_text(STATES)
    text = (await query(folder, "SELECT count(*) AS paid_ones FROM states WHERE paid", "states.csv")).text
    assert text == "Corrected: paid was read as \"state\" = 'Paid'\n\n| paid_ones |\n| --- |\n| 10 |"


async def test_a_column_of_another_table_is_explained_with_the_join(folder: Path) -> None:
    (folder / "people.csv").write_text("id,segment\n1,trade\n2,public\n")
    with pytest.raises(ToolInputError, match="not found") as failed:
        await query(folder, "SELECT segment, sum(amount) FROM orders GROUP BY segment", "orders.csv", "people.csv")
    hint = '\'segment\' is a column of people: write FROM "orders" JOIN "people" USING ("id")'
    assert hint in str(failed.value)
    joined = "SELECT segment, sum(amount) FROM orders JOIN people USING (id) GROUP BY segment ORDER BY 1"
    assert await rows(folder, joined, "orders.csv", "people.csv") == [["public", 0.2], ["trade", 12.1]]


@pytest.mark.parametrize("sql", ["SELECT repeat('x', 2000000000)", "SELECT list(range) FROM range(500000000)"])
async def test_a_query_cannot_fill_the_memory(folder: Path, sql: str) -> None:
    with pytest.raises(ToolError, match="memory"):
        await query(folder, sql)


async def test_a_result_is_plain_json(folder: Path) -> None:
    sql = "SELECT 1.5::DOUBLE, 'NaN'::DOUBLE, [1, 2], {'a': 1}, TIMESTAMP '2026-01-02 03:04:05', '\\x01'::BLOB, NULL"
    (row,) = await rows(folder, sql)
    assert row == [1.5, "nan", [1, 2], {"a": 1}, "2026-01-02T03:04:05", "01", None]
    json.dumps(row, allow_nan=False)
