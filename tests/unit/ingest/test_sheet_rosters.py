"""Rosters: dates, times and numbers of days name the columns above texts, in sheets, in CSV and in `query_table`."""

import datetime as dt
from pathlib import Path

import pytest

from tests.integration.test_table_sheets import describe
from tests.support.workbooks import workbook
from tests.unit.ingest.test_sheet_coverage import complete, read, table

DAYS = [dt.date(2026, 3, day) for day in (2, 3, 4)]
NAMES = ["2026-03-02", "2026-03-03", "2026-03-04"]
ROSTERS: dict[str, tuple[list[list[object]], list[str]]] = {
    "first row of texts, then times": (
        [
            ["Shift", *DAYS],
            ["Early", "Ada", "Ben", "Cy"],
            [dt.time(14), "Ben", "Cy", "Dee"],
            [dt.time(22), "Cy", "Dee", "Ada"],
        ],
        ["Shift", *NAMES],
    ),
    "a number in one row": (
        [["Room", *DAYS], ["Elm", "Ada", "Ben", "Cy"], ["Oak", "Cy", "Dee", "Ada"], ["Ash", 12, "Dee", "Ben"]],
        ["Room", *NAMES],
    ),
    "a weekday below each date": (
        [["Date", *DAYS], ["Weekday", "Mon", "Tue", "Wed"], ["Ada", 8, 8, 8], ["Ben", 8, 0, 8]],
        ["Date Weekday", "2026-03-02 Mon", "2026-03-03 Tue", "2026-03-04 Wed"],
    ),
    "two columns a date": (
        [
            [None, DAYS[0], None, DAYS[1], None],
            ["Name", "in", "out", "in", "out"],
            ["Ada", 1, 2, 3, 4],
            ["Ben", 2, 3, 4, 5],
        ],
        ["Name", "2026-03-02 in", "2026-03-02 out", "2026-03-03 in", "2026-03-03 out"],
    ),
    "texts only": (
        [["Name", *DAYS], ["Ada", "early", "late", "off"], ["Ben", "off", "late", "late"]],
        ["Name", *NAMES],
    ),
    "numbers of days": (
        [["March"], ["Name", 1, 2, 3], ["Ada", "early", "late", "off"], ["Ben", "off", "late", "late"]],
        ["Name", "1", "2", "3"],
    ),
}


@pytest.mark.parametrize("name", ROSTERS)
def test_dates_name_the_columns_of_a_roster(name: str, tmp_path: Path) -> None:
    rows, names = ROSTERS[name]
    output = read(workbook({"Roster": rows}), tmp_path)
    assert table(output).splitlines()[0] == f"| {' | '.join(names)} |"
    assert complete(output)


@pytest.mark.parametrize("name", ROSTERS)
async def test_a_roster_can_be_asked_by_its_dates(name: str, tmp_path: Path) -> None:
    rows, names = ROSTERS[name]
    (described,) = await describe(tmp_path, workbook({"Roster": rows}))
    assert [column["name"] for column in described["columns"]] == names


async def test_dates_over_merged_cells_are_no_row_of_the_table(tmp_path: Path) -> None:
    rows = [
        [None, DAYS[0], None, DAYS[1], None],
        ["Name", "in", "out", "in", "out"],
        ["Ada", "x", "y", "z", "w"],
        ["Ben", "x", "y", "z", "w"],
    ]
    (described,) = await describe(tmp_path, workbook({"Roster": rows}, merged=["B1:C1", "D1:E1"]))
    assert [column["name"] for column in described["columns"]][1] == "2026-03-02 in"
    assert described["row_count"] == 2


def test_dates_of_a_log_without_a_header_are_values(tmp_path: Path) -> None:
    rows = [[DAYS[0], DAYS[1], "Ada"], [DAYS[1], DAYS[2], "Ben"]]
    assert table(read(workbook({"Log": rows}), tmp_path)).count("\n") == 2
