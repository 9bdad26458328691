"""Every row of a CSV file reaches SQL as it reaches ingestion, and notes say what a sum would not show."""

from pathlib import Path
from typing import Any

import pytest

from agent.tools import ToolContext
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.plain import read_csv
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.tables import DescribeTableTool, QueryTableTool

CONTEXT = ToolContext(run_id="run_1", owner="somebody")


async def describe(folder: Path, data: str | bytes, name: str = "given.csv") -> Any:
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    args: dict[str, Any] = {"paths": [name]}
    value: Any = (await DescribeTableTool(FileRoots((folder,))).call(args, CONTEXT)).value
    (table,) = value["tables"]
    return table


async def query(folder: Path, data: str | bytes, sql: str) -> Any:
    (folder / "given.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    args: dict[str, Any] = {"sql": f"SELECT {sql} FROM given", "paths": ["given.csv"]}
    value: Any = (await QueryTableTool(FileRoots((folder,))).call(args, CONTEXT)).value
    return value["rows"]


def names(table: Any) -> list[str]:
    return [column["name"] for column in table["columns"]]


def types(table: Any) -> list[str]:
    return [column["type"].partition("(")[0] for column in table["columns"]]


def count_read_rows(data: str) -> Any:
    draft = read_csv(InputFile(data.encode(), "csv"))
    return draft.metadata["rows"]


MANY = "".join(f"{number},n{number},{number}\n" for number in range(1, 30_001))


@pytest.mark.parametrize(
    ("data", "rows", "note"),
    [
        ("a,b,c\n1,2,3\n3,4\n6,7,8,9\n", 3, "row 4 has more cells than the 3"),
        ("a,b,c\n1,2,3\n3,4\n6,7,8,9\n", 3, "row 3 has fewer cells than the 3"),
        ("Name,City,Qty\nN1,Oslo,5\nN2,Rome,6\nN3,Paris, France,7\n", 3, "row 4 has more cells than the 3"),
        ("Item;Qty;Price\nA;5;1,00\nB;6;2,00\nTotal;11;;;3,00\n", 3, "row 4 has more cells than the 3"),
        (
            f"id,name,v\n{MANY.replace('29000,n29000,29000', '29000,n29000,29000,x')}",
            30_000,
            "row 29001 has more cells",
        ),
        ('a,b\n1,x\n3,"un\n5,6\n', 3, "row 3: a quote is not closed"),
    ],
)
async def test_no_row_or_cell_is_lost(data: str, rows: int, note: str, tmp_path: Path) -> None:
    table = await describe(tmp_path, data)
    assert table["row_count"] == rows
    assert any(one.startswith(note) for one in table["notes"]), table["notes"]
    assert count_read_rows(data) == rows + 1


async def test_apostrophes_are_quotes_for_sql_too(tmp_path: Path) -> None:
    assert await query(tmp_path, "'a','b'\n'x, y','1'\n'O''Brien','2'\n", "a, b") == [["x, y", 1], ["O'Brien", 2]]


async def test_cells_beyond_the_header_have_columns_of_their_own(tmp_path: Path) -> None:
    data = "a,b,c\n1,2,3\n3,4\n6,7,8,9\n"
    assert names(await describe(tmp_path, data)) == ["a", "b", "c", "column3"]
    assert await query(tmp_path, data, "*") == [[1, 2, 3, None], [3, 4, None, None], [6, 7, 8, 9]]


async def test_a_line_below_the_table_is_a_note(tmp_path: Path) -> None:
    data = "id,name,v\n1,a,2\n2,b,3\n3,c,4\nPrinted on a Monday\n"
    table = await describe(tmp_path, data)
    assert (types(table), table["row_count"]) == (["BIGINT", "VARCHAR", "BIGINT"], 3)
    assert table["notes"] == ["below the table: Printed on a Monday"]


@pytest.mark.parametrize(
    "data",
    [
        "| name | n |\n|------|--:|\n| Ann  | 1 |\n|      | 2 |\n",
        "+------+---+\n| name | n |\n+------+---+\n| Ann  | 1 |\n|      | 2 |\n+------+---+\n",
        " name | n \n------+---\n Ann  | 1\n      | 2\n",
        " name | n \n------+---\n Ann  | 1\n      | 2\n(2 rows)\n",
        "name | n\n--- | ---\nAnn | 1\n | 2\n",
    ],
)
async def test_a_drawn_table_is_read_without_its_drawing(data: str, tmp_path: Path) -> None:
    assert await query(tmp_path, data, "name, n") == [["Ann", 1], [None, 2]]
    text = "\n".join(block.text for block in read_csv(InputFile(data.encode(), "csv")).blocks)
    assert text.startswith("| name | n |\n| --- | --- |\n| Ann | 1 |\n|  | 2 |")


async def test_rows_of_several_lines_and_empty_ones_are_counted_once(tmp_path: Path) -> None:
    data = 'a,b\r\n1,"x\r\ny"\r\n\r\n,\r\n2,z'
    assert await query(tmp_path, data, "*") == [[1, "x\r\ny"], [2, "z"]]


@pytest.mark.parametrize(
    ("data", "sql", "expected"),
    [
        ("x,amount\na,1\nb,-\nc,3.5\nd,n/a\n", "sum(amount)", 4.5),
        ("x;amount\na;1,5\nb;\u2013\nc;3\n", "sum(amount)", 4.5),
        # A column that can be read in one way decides for those that cannot.
        ("Item;Qty;Sum\nA;1.234;99,50\nB;2.500;1.012,00\n", "sum(Qty)", 3734),
        ('Item,Qty,Sum\nA,"1,234",99.50\nB,"2,500",12.00\n', "sum(Qty)", 3734),
        ('Item,Sum\nA,"1.234,50"\nB,"2,5"\n', "sum(Sum)", 1237),
        ("Item;Sum\nA;1.234,50-\nB;10,00\nC;\u22125,00\n", "sum(Sum)", -1229.5),
        ("Item;Rate\nA;17,5 %\nB;10 %\n", "max(Rate)", 17.5),
        ("Item;Sum\nA;1.234,50 €\nB;5,00 €\n".encode("cp1252"), "sum(Sum)", 1239.5),
        ("Item;Sum\nA;1.234,50 €\nB;5,00 €\n".encode("utf-16-le"), "sum(Sum)", 1239.5),
        ("Day;x\n31.12.2024;1\n01.02.2025;2\n", "max(Day)", "2025-02-01"),
        ("Day,x\n12/31/2023,1\n01/02/2024,2\n", "max(Day)", "2024-01-02"),
        ("Day,x\n31/12/2023,1\n01/02/2024,2\n", "max(Day)", "2024-02-01"),
        ("Day;x\n03/04/2024;1,5\n01/02/2024;2,5\n", "max(Day)", "2024-04-03"),
        ("Hour,x\n31.12.2024 08:30,1\n01.02.2025 17:05,2\n", "max(Hour)", "2025-02-01T17:05:00"),
        ("Hour,x\n08:30,1\n9:45,2\n", "max(Hour)", "09:45:00"),
        ("Day,x\n2024-02-30,1\n2024-01-01,2\n", "max(Day)", "2024-02-30"),
        ("1,5;2,5\n3,5;4,5\n", "sum(column0 + column1)", 12),
        ("Price, net;Weight, kg\n1,5;2,5\n2,5;3,5\n", 'sum("Price, net")', 4),
        ("---------\n|Acct|Sum |\n---------\n|1   |5,50|\n|2   |6,00|\n---------\n", "sum(Sum)", 11.5),
        ("Tag;x\n31.12.24;1\n01.02.25;2\n", "max(Tag)", "2025-02-01"),
        ("order_date,paid\n31.12.24,01.02.25\n01.02.25,02.02.25\n", "max(paid)", "2025-02-02"),
        ("Hour;x\n31.12.24 08:30;1\n01.02.25;2\n", "max(Hour)", "2025-02-01T00:00:00"),
        ("Mark;x\n1-;a\n2+;b\n3;c\n", "max(Mark)", "3"),
        ("Sum;x\n1 234-;a\n5 €-;b\n", "sum(Sum)", -1239),
        ("name,zip\nA,01067\nB,99999\n", "min(zip)", "01067"),
    ],
)
async def test_values_have_the_types_that_people_mean(
    data: str | bytes, sql: str, expected: object, tmp_path: Path
) -> None:
    assert await query(tmp_path, data, sql) == [[expected]]


@pytest.mark.parametrize(
    ("data", "kinds", "note"),
    [
        ("x,amount\na,1\nb,-\n", ["VARCHAR", "BIGINT"], "column amount: 1 cell such as - or n/a have no value here"),
        ("Item;Qty\nA;1.234\nB;2.500\n", ["VARCHAR", "VARCHAR"], "column Qty is compared as text: the point in 1.234"),
        ("lat\tlon\n52.520\t13.405\n48.137\t11.575\n", ["DECIMAL", "DECIMAL"], "was read as a decimal mark"),
        ("lat\tlon\n52,520\t13,405\n48,137\t11,575\n", ["VARCHAR", "VARCHAR"], "may be a decimal mark or group"),
        ("Item,Qty\nA,1.234\nB,2.500\n", ["VARCHAR", "DECIMAL"], "was read as a decimal mark; no column decides it"),
        (
            "a;b;c\n1,5;1.5;1.234\n",
            ["DECIMAL", "DECIMAL", "VARCHAR"],
            "column c is compared as text: the point in 1.234",
        ),
        (
            "Day,w\n03/04/2024,5\n",
            ["VARCHAR", "BIGINT"],
            "strptime(\"Day\", '%d/%m/%Y') or strptime(\"Day\", '%m/%d/%Y')",
        ),
        (
            "Part;x\n10.05.12;1\n11.06.13;2\n",
            ["VARCHAR", "BIGINT"],
            "column Part is compared as text: 10.05.12 may be a date or a code; for dates write "
            "strptime(\"Part\", '%d.%m.%y')",
        ),
        (
            "Day;Part\n10.05.2012;10.05.12\n11.06.2013;11.06.13\n",
            ["DATE", "VARCHAR"],
            "column Part is compared as text: 10.05.12 may be a date or a code",
        ),
        ("Sum;x\n10 €;a\n20 $;b\n", ["BIGINT", "VARCHAR"], "column Sum mixes units ($, €)"),
        ("Rate;x\n17,5 %;a\n", ["DECIMAL", "VARCHAR"], "column Rate is in per cent: 5 is 5 %"),
        (
            "Name,Qty\n,kg\nA,1\nB,3\n",
            ["VARCHAR", "BIGINT"],
            "rows 1 to 2 are the header; its names and units are joined",
        ),
        ("a,b\nnan,x\n1,y\n3,z\n", ["BIGINT", "VARCHAR"], "column a: 1 cell such as - or n/a have no value here"),
        ("v,w\n" + "1,a\n" * 30 + "abc,b\n", ["VARCHAR", "VARCHAR"], "1 of 31 values is not a number, such as 'abc'"),
    ],
)
async def test_a_note_says_what_a_column_may_hide(data: str, kinds: list[str], note: str, tmp_path: Path) -> None:
    table = await describe(tmp_path, data)
    assert types(table) == kinds
    assert any(note in one for one in table["notes"]), table["notes"]


@pytest.mark.parametrize("data", ["a,b\n1.5,x\n2.5,y\n", "day,zip\n2024-01-05,00123\n2024-01-06,00456\n", "n\n1\n2\n"])
async def test_a_plain_table_has_no_notes(data: str, tmp_path: Path) -> None:
    assert (await describe(tmp_path, data))["notes"] == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Item;01.2024;02.2024\nA;5;6\nB;7;8\n", ["Item", "01.2024", "02.2024"]),
        ("2023,,2024,\nPlan,Fact,Plan,Fact\n1,2,3,4\n5,6,7,8\n", ["2023 Plan", "2023 Fact", "2024 Plan", "2024 Fact"]),
        ("Name,Qty,Price\n,kg,EUR\nA,1,2.5\nB,3,4.5\n", ["Name", "Qty kg", "Price EUR"]),
        ("Firm;Sample\nDay;2024-01-01\nPos;Item;Qty\n1;Bolt;5\n2;Nut;7\n3;Cog;8\n", ["Pos", "Item", "Qty"]),
        ("Customer;Sample\nPlace;Oslo\n" + "Name;City;Land\nA;B;C\nD;E;F\nG;H;I\n", ["Name", "City", "Land"]),
        ("Customer;Sample\n\n" + "Name;City;Land\nA;B;C\nD;E;F\nG;H;I\n", ["Name", "City", "Land"]),
        ("a line\n" * 13 + "Name,Qty\nA,1\nB,2\n" + "C,3\n" * 20, ["Name", "Qty"]),
        ("a b\n1 2 3\n4 5 6\n".replace(" ", ","), ["a", "b", "column2"]),
        ("region,2023,2024\nnorth,1,2\n", ["region", "2023", "2024"]),
        ("1,x\n2,y\n", ["column0", "column1"]),
        ("name,v\nann,1\nbob,unknown\ncy,2\ndan,3\n", ["name", "v"]),
        ("a,A,a_1,\n1,2,3,4\n", ["a", "A_1", "a_1_1", "column3"]),
        ('"a\nb",c\n1,2\n3,4\n', ["a b", "c"]),
        ('Sizes in 5" steps\na,b\n1,2\n3,4\n', ["a", "b"]),
        # First rows without values are no header and no units.
        ("ma5,ma10\nNaN,NaN\nNaN,NaN\n1.5,2.5\n1.6,2.6\n1.7,2.7\n", ["ma5", "ma10"]),
        (
            "name,score1,score2\n"
            + "".join(f"{name},absent,absent\n" for name in ("Ann", "Bob", "Cy"))
            + "".join(f"n{number},{number},{number + 1}\n" for number in range(20)),
            ["name", "score1", "score2"],
        ),
        (
            "task,start,end\nPlan,open,later\nBuild,2024-01-01,2024-02-01\nShip,2024-01-03,2024-02-01\n",
            ["task", "start", "end"],
        ),
        (",q1,q2\nHold,tbd,tbd\nA,1,2\nB,3,4\nC,5,6\n", ["column0", "q1", "q2"]),
        ("a,b\nnan,nan\n1,2\n3,4\n5,6\n", ["a", "b"]),
        ("h,w\nNone,None\n1,2\n3,4\n5,6\n", ["h", "w"]),
        ("t1,t2\n?,?\n1,2\n3,4\n", ["t1", "t2"]),
        ("name,weight,height\n,tbd,tbd\nA,1,2\nB,3,4\n", ["name", "weight", "height"]),
        ("Datum;Soll;Haben\nEröffnung;keine;keine\n01.01.2024;1;2\n02.01.2024;3;4\n", ["Datum", "Soll", "Haben"]),
        ("t,u,flow,q\ns,mV,m3/h,[1]\n1,2,3,4\n2,3,4,5\n", ["t s", "u mV", "flow m3/h", "q [1]"]),
        ("Firm,Sample,Ltd\nDay,2024-01-01,x\n\nPos,Item,Qty\n1,Bolt,5\n2,Nut,6\n3,Cog,7\n", ["Pos", "Item", "Qty"]),
    ],
)
async def test_the_header_is_the_row_that_differs_from_those_below(
    data: str, expected: list[str], tmp_path: Path
) -> None:
    assert names(await describe(tmp_path, data)) == expected
    text = "\n".join(block.text for block in read_csv(InputFile(data.encode(), "csv")).blocks)
    if "column" not in "".join(expected):
        assert f"| {' | '.join(expected)} |" in text
