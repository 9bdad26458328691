"""Every requirement id that a test names is explained in `tests/rows.yaml`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TESTS = Path(__file__).parents[1]


def find_row_ids() -> Iterator[tuple[str, object]]:
    """Yields file and id of each argument of `pytest.mark.row`; None for one that is not written as a text."""
    for path in sorted(TESTS.rglob("test_*.py")) + sorted(TESTS.rglob("*contract*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.row":
                for argument in node.args:
                    yield path.name, argument.value if isinstance(argument, ast.Constant) else None


def read_rows() -> dict[str, Any]:
    rows: dict[str, Any] = yaml.safe_load((TESTS / "rows.yaml").read_text("utf-8"))
    return rows


def test_every_row_a_test_names_is_listed() -> None:
    used, listed = set(find_row_ids()), read_rows()
    assert len({row for _, row in used}) > 150, "the markers are found"
    assert sorted(f"{name}: {row}" for name, row in used if row not in listed) == []


def test_every_row_is_listed_once_and_says_in_one_line_what_it_means() -> None:
    ids = re.findall(r"^(S\w+-\d+):", (TESTS / "rows.yaml").read_text("utf-8"), re.MULTILINE)
    rows = read_rows()
    assert len(ids) == len(set(ids)) == len(rows)
    assert [row for row, meaning in rows.items() if not isinstance(meaning, str) or "\n" in meaning] == []
    assert ids == sorted(ids), "in order, so that a row is found"
