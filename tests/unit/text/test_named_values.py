"""`OwnWords`: which choices and ids the words of a person name in another form."""

from typing import Any

import pytest

from agent.text.own_words import OwnWords

STATES = ["open", "closed", "archived"]


@pytest.mark.parametrize(
    ("words", "value", "is_chosen"),
    [
        ("Close issue 42 and mark it as a duplicate", "closed", True),
        ("Update acme/api: close it", "closed", True),
        ("Archive it, please", "archived", True),
        ("Close issue 42", "open", False),
        ("Close the comments; the issue stays open", "closed", False),
        ("Do not close it", "closed", False),
        ("Close none of them", "closed", False),
        ("Should we close it?", "closed", False),
        ("The archives are old", "archived", False),
        ("", "closed", False),
        ("Close it", True, False),
        ("Close it", "", False),
    ],
)
def test_a_choice_is_made_by_a_command(words: str, value: Any, is_chosen: bool) -> None:
    assert OwnWords(words).choose(value, STATES) == is_chosen


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("Publication is next week", "public"),
        ("the administrators know", "administrator"),
        ("Do not delete it", "deleted"),
        ("Send the minutes to the board, the staff all know", "all_staff"),
    ],
)
def test_a_word_with_another_ending_chooses_nothing(words: str, value: str) -> None:
    assert not OwnWords(words).choose(value, [value, "other"])


@pytest.mark.parametrize(
    ("words", "value", "is_held"),
    [
        ("Turn the kitchen light off, and mail bo@ours.example", "light.kitchen", True),
        ("Turn the kitchen light off", "kitchen_light", True),
        ("Turn off the `kitchen light`.", "light.kitchen", True),
        ("Restart sensor 12 now", "sensor_12", True),
        ("Turn the kitchen light off", "light.cellar", False),
        ("Turn the kitchen light off", "kitchen.off", False),
        ("Turn the kitchen light off", "https://kitchen.light", False),
        ("Turn the kitchen light off", "kitchen", False),
        ("mail bo@ours.example", "ours.example", False),
        ("mail bo@ours.example", "example-ours", False),
        ("the light kitchen-sink", "light.kitchen", False),
        ("Delete release 1.2", "2.1", False),
        ("Remove build 3.1 of app", "1.3", False),
        ("Delete the log of 2024-07-11", "11-07-2024", False),
        ("Restart 12 sensor 7", "sensor_12", False),
        ("archive user bob. admin stays", "admin.bob", False),
        ("not prod, db is fine", "db-prod", False),
        ("the prod\ndb is fine", "db-prod", False),
    ],
)
def test_an_id_is_held_by_its_words_side_by_side(words: str, value: str, is_held: bool) -> None:
    assert OwnWords(words).hold_id(value) == is_held
