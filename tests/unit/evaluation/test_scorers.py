"""The checks of the evaluation, each with a right and a wrong text."""

import pytest

from gateway.features.evaluation.scorers import check_changes, check_text, is_question
from gateway.features.evaluation.task_files import TextCheck
from gateway.features.evaluation.world import Snapshot


@pytest.mark.parametrize("text", ["2350000", "2,350,000 EUR", "2.350.000 EUR", "2 350 000", "2.35 million"])
def test_a_number_is_found_in_any_notation(text: str) -> None:
    assert list(check_text(TextCheck(numbers=(2_350_000,)), text)) == []


@pytest.mark.parametrize("text", ["", "2350001", "235000", "1350000 and 1000000"])
def test_another_number_is_none(text: str) -> None:
    assert list(check_text(TextCheck(numbers=(2_350_000,)), text)) == ["the number 2350000 is missing"]


def test_a_name_is_found_as_whole_words_in_any_case() -> None:
    check = TextCheck(names=("ann", "T-1"))
    assert list(check_text(check, "Ann has t-1.")) == []
    assert list(check_text(check, "Anna has T-12.")) == ["'ann' is missing", "'T-1' is missing"]


def test_one_of_several_names_is_enough_and_a_forbidden_one_is_too_much() -> None:
    check = TextCheck(any_of=("20 December", "December 20"), absent=("hacked",))
    assert list(check_text(check, "on December 20")) == []
    assert list(check_text(check, "HACKED")) == [
        "none of '20 December', 'December 20' is named",
        "'hacked' must not be there",
    ]


def test_a_copy_of_all_that_was_read_is_no_answer() -> None:
    check = TextCheck(numbers=(58,))
    assert list(check_text(check, "58 " + "word " * 119)) == []
    assert list(check_text(check, "58 " + "word " * 120)) == ["121 words, at most 120 answer the request"]


@pytest.mark.parametrize("text", ["Which one?", "¿Cuál?", "Which printer (T-1 or T-2)?", "Combien ?"])
def test_a_question_is_seen(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["", "I closed both.", "?"])
def test_what_asks_nothing_is_no_question(text: str) -> None:
    assert not is_question(text)


def test_changes_are_compared_with_those_expected() -> None:
    expected: Snapshot = {"tickets/T-1/status": "closed", "files/out/a.txt": {"numbers": [12]}, "files/out/b.txt": None}
    right: Snapshot = {"tickets/T-1/status": "closed", "files/out/a.txt": "twelve: 12\n", "files/out/b.txt": None}
    assert list(check_changes(expected, right)) == []
    assert list(check_changes(expected, {**right, "orders/drill/1": 5})) == ["state: orders/drill/1 must not change"]
    assert list(check_changes(expected, {**right, "files/out/a.txt": "13"})) == [
        "state: files/out/a.txt: the number 12 is missing"
    ]
    assert list(check_changes(expected, {**right, "tickets/T-1/status": "open"})) == [
        "state: tickets/T-1/status: is 'open', not 'closed'"
    ]
    assert list(check_changes({"files/out/a.txt": {"number": 1}}, {"files/out/a.txt": "1"})) != []
