"""Every requirement id that a test names is explained in `tests/rows.yaml`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import DEVIATIONS, MARKER, PAGE, build_page, find_row_tests, list_open_rows, read_rows

TESTS = Path(__file__).parents[1]


def find_row_ids() -> Iterator[tuple[str, object]]:
    """Yields file and id of each argument of `pytest.mark.row`; None for one that is not written as a text."""
    for path in sorted(TESTS.rglob("test_*.py")) + sorted(TESTS.rglob("*contract*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if MARKER in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == MARKER:
                for argument in node.args:
                    yield path.name, argument.value if isinstance(argument, ast.Constant) else None


def test_every_row_a_test_names_is_listed() -> None:
    used, listed = set(find_row_ids()), read_rows()
    assert len({row for _, row in used}) > 150, "the markers are found"
    assert sorted(f"{name}: {row}" for name, row in used if row not in listed) == []


def test_every_row_is_listed_once_and_says_in_one_line_what_it_means() -> None:
    ids = re.findall(r"^(S\w+-\d+):", (TESTS / "rows.yaml").read_text("utf-8"), re.MULTILINE)
    rows = read_rows()
    assert len(ids) == len(set(ids)) == len(rows)
    assert [row for row, meaning in rows.items() if "\n" in meaning] == []
    assert ids == sorted(ids), "in order, so that a row is found"


def test_the_page_of_requirements_lists_the_tests_as_they_are() -> None:
    assert PAGE.read_text("utf-8") == build_page(), "run `python -m tests.requirements --write`"


def test_every_row_is_listed_with_a_test_a_deviation_or_as_open() -> None:
    rows, tests, open_rows = read_rows(), find_row_tests(), set(list_open_rows())
    assert len(rows) == 281
    assert set(DEVIATIONS) == {"S001-27", "S001-30", "S002-40", "S003-01", "S004-37", "S004-38"}
    for row in rows:
        at_door = any(one.is_at_door for one in tests.get(row, ()))
        assert at_door or row in DEVIATIONS or row in open_rows, row
