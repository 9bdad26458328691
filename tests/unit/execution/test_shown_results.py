"""Whether an answer holds a result that people must see as it is."""

from time import perf_counter

import pytest

from agent.answers.additions import _holds

CODE = "```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("result", "answer", "holds"),
    [
        (f"Made:\n\n{CODE}", f"Here it is.\n{CODE}", True),
        (f"Made:\n\n{CODE}", "Here it is: x = 2", False),
        (f"{CODE}\n\nTests:\n\n````\n```\ny\n```\n````", f"{CODE}\n```\ny\n```", True),
        (f"{CODE}\n\nTests:\n\n```\ny = 2\n```", CODE, False),
        ("no block", "there is no block here", True),
        ("```\n```", "an answer", False),
        ("```python\nx = 1", "x = 1", False),
    ],
)
def test_the_blocks_of_a_result_are_looked_for_in_the_answer(result: str, answer: str, holds: bool) -> None:
    assert _holds(answer, result) is holds


@pytest.mark.parametrize("piece", ["```a\n", "````\n```\n", "```\n", "`", "```" + " " * 50 + "\n"])
def test_a_result_full_of_fences_takes_no_time(piece: str) -> None:
    started = perf_counter()
    _holds("an answer", piece * (1_000_000 // len(piece)))
    assert perf_counter() - started < 2
