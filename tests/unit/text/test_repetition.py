"""Loops at the end of a text, and texts that only look like one."""

import random

import pytest

from agent.text.repetition import find_loop

SENTENCE = "The sum is (19 * 430) + (7 * 451) + (4 * 32) and so on. "


@pytest.mark.parametrize(
    "unit",
    ["x" * 3, SENTENCE, "I am not sure. Let me think again.\n", "".join(map(str, range(120))), "数え直します。"],
    ids=["characters", "sentence", "line", "long unit", "japanese"],
)
def test_a_text_that_only_repeats_itself_is_a_loop_from_its_second_unit_on(unit: str) -> None:
    start = "Here is the answer: "
    text = start + unit * (2_500 // len(unit) + 25)
    at = find_loop(text)
    assert len(start) <= at < len(text) - 2_000 + len(unit), "what was written before the loop is outside of it"


def test_a_loop_that_was_cut_within_its_unit_is_found() -> None:
    assert find_loop((SENTENCE * 60)[:-17]) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word " * 300,
        "-" * 1_500,
        "".join(f"| row {number} | 0 | 0 | 0 |\n" for number in range(400)),
        "".join(f"{number}. Check the valve.\n" for number in range(400)),
        SENTENCE * 60 + "So the sum is 17.",
        "".join(random.Random(3).choices("abcdefgh ", k=6_000)),
    ],
    ids=["empty", "short", "rule", "table", "list", "ended", "noise"],
)
def test_other_texts_are_not(text: str) -> None:
    assert find_loop(text) == -1


@pytest.mark.parametrize(("times", "is_loop"), [(7, False), (9, True)])
def test_whole_sentences_need_fewer_repetitions(times: int, *, is_loop: bool) -> None:
    unit = (
        "He has a small book that he cannot read. So he took a small step forward and has read the book. Now he has a "
    )
    unit += "small problem, and nobody knows what it is. "
    assert (find_loop("A joke: " + unit * times) >= 0) is is_loop
