"""What is computed of a list before a small model answers from it."""

import json

import pytest

from agent.run_context.list_figures import describe_list_figures

SPENDING = [
    {"id": 1, "shop": "Frischmarkt", "category": "groceries", "amount": -83.45, "cleared": True},
    {"id": 2, "shop": "Regiobahn", "category": "transport", "amount": -39.0, "cleared": True},
    {"id": 3, "shop": "Frischmarkt", "category": "groceries", "amount": -169.7, "cleared": False},
    {"id": 4, "shop": "Havel", "category": "income", "amount": 2650, "cleared": True},
]
GROCERIES = "2 entries with category groceries; amount: sum -253.15, least -169.7, most -83.45"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SPENDING),
        json.dumps({"total": 4, "items": SPENDING}),
        "\n".join(json.dumps(entry, indent=2) for entry in SPENDING),
    ],
    ids=["a list", "a list in an object", "objects one after the other"],
)
@pytest.mark.parametrize("question", ["What did we spend on groceries?", "How much for grocery shopping?"])
def test_the_entries_that_the_question_names_are_added_up(text: str, question: str) -> None:
    lines = describe_list_figures(text, question).split("\n")
    assert lines[0] == ("4 entries in all; amount: sum 2357.85, least -169.7, most 2650; cleared: 3 true, 1 false")
    assert lines[1].startswith(GROCERIES)
    assert len(lines) == 2


def test_identifiers_are_not_added_up() -> None:
    assert "id:" not in describe_list_figures(json.dumps(SPENDING), "What is it?")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "12 rolls", "[1, 2, 3, 4]", json.dumps(SPENDING[:2]), '{"a": 1}', "[{" * 2_000, '{"a": [null, {}]}'],
)
def test_other_results_have_no_figures(text: str) -> None:
    assert describe_list_figures(text, "What did we spend on groceries?") == ""


@pytest.mark.parametrize("number", ["1" + "0" * 400, "NaN", "Infinity", "4000123412341234"])
def test_numbers_that_nobody_adds_up_are_left_out(number: str) -> None:
    text = f'[{{"n": {number}}}, {{"n": 2}}, {{"n": 3}}]'
    assert describe_list_figures(text, "How many?") == "3 entries in all; n: sum 5, least 2, most 3"


def test_words_of_all_values_leave_room_for_those_that_tell_entries_apart() -> None:
    dated = [{"on": f"2026-11-{day:02}", "category": "leisure", "amount": 1} for day in range(1, 12)]
    entries = [*dated, *({"on": "2026-11-20", "category": "groceries", "amount": 2} for _ in range(3))]
    lines = describe_list_figures(json.dumps(entries), "What went on groceries in November 2026?").split("\n")
    assert lines[1:] == ["3 entries with category groceries; amount: sum 6, least 2, most 2"]


def test_the_largest_groups_come_first() -> None:
    entries = [{"shop": f"branch{number}", "kind": "coffee"} for number in range(9)] + [{"shop": "far", "kind": "ink"}]
    question = "What did branch1, branch2, branch3, branch4, branch5, branch6 and branch7 spend on coffee?"
    lines = describe_list_figures(json.dumps(entries), question).split("\n")
    assert lines[1] == "9 entries with kind coffee"


def test_entries_that_alone_have_a_named_value_are_a_group() -> None:
    entries = [{"amount": 5, "tag": "travel"}, {"amount": 3}, {"amount": 2, "tag": "travel"}]
    lines = describe_list_figures(json.dumps(entries), "How much went on travel?").split("\n")
    assert lines[1:] == ["2 entries with tag travel; amount: sum 7, least 2, most 5"]
