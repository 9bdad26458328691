"""How a CSV file is written: frames, lines above the table, quotes."""

import time

import pytest

from agent.text.delimited import is_rule


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("---", True),
        ("+----+---+\n", True),
        ("|:---|---:|", True),
        (" ----+--- ", True),
        ("| - | - |", False),
        ("--- x", False),
        ("", False),
    ],
)
def test_a_rule_is_only_drawn(line: str, expected: bool) -> None:
    assert is_rule(line) == expected


def test_a_long_line_of_dashes_is_read_at_once() -> None:
    start = time.process_time()
    assert not is_rule("-" * 20_000 + "x")
    assert time.process_time() - start < 0.5
