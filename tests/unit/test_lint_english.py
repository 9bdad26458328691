"""The count of words that a native engineer would not write."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.lint_english import check_module, compare


def find_rules(text: str) -> list[str]:
    return [place.rule for place in check_module(Path("module.py"), ast.parse(text))]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("found = 1", "variable found"),
        ("for told in (): ...", "variable told"),
        ('raise ValueError("it is no file")', "text: is no"),
        ('"""Is told what stands in it."""', "docstring: stands in"),
        ('def f():\n    """Returns the key."""', "docstring opens with Returns"),
        ('x = f"{name} is not there any more"', "text: any more"),
    ],
)
def test_a_pattern_is_counted(text: str, rule: str) -> None:
    assert rule in find_rules(text)


def test_right_english_is_not_counted() -> None:
    text = """
def find_run(found_at: int) -> str:
    \"\"\"The run of an id. There is no run twice, it is no longer told apart.\"\"\"
    return "there is no run of this id, and a dash stands in for it"
"""
    assert find_rules(text) == []


def test_counts_may_only_fall() -> None:
    allowed = Counter({"text: told": 3})
    assert list(compare({"text: told": 3}, allowed)) == []
    assert "4 places, 3 allowed" in next(compare({"text: told": 4}, allowed))
    assert list(compare({"text: told": 2}, allowed)) == []
    assert "1 places, 0 allowed" in next(compare({"variable found": 1, "text: told": 3}, allowed))
