"""Whether the values of a call are known: by their words, and dates by the day they mean."""

import pytest

from agent.planning.rounds.known_words import KnownWords, is_known

REQUEST = KnownWords(
    ["Mia stays one night longer, until 15 February 2027, and leaves at 10:30.", "Ab dem 3. M\u00e4rz frei"]
)


@pytest.mark.parametrize(
    "value",
    ["2027-02-15", "15.02.2027", "2027-02-15T10:30", "February 15, 2027", "2027-03-03", "2027-02", "longer", ""],
)
def test_a_date_is_known_in_any_form(value: str) -> None:
    assert is_known(value, REQUEST, REQUEST)


@pytest.mark.parametrize(
    "value", ["2026-02-15", "2027-02-16", "2027-02-15T11:45", "2027-03-04", "2027-04", "2027-02-15 at Oak", "shorter"]
)
def test_another_date_or_what_stands_beside_it_is_not(value: str) -> None:
    assert not is_known(value, REQUEST, REQUEST)


def test_a_number_is_no_date() -> None:
    assert not is_known(20270215, REQUEST, REQUEST)


@pytest.mark.parametrize(
    ("text", "number", "is_held"),
    [
        ("each of the hours from 8 to 17", 9, True),
        ("rooms 101-105", 103, True),
        ("Zimmer 3 bis 9", 9, True),
        ("rooms 101-105", 106, False),
        ("10 to 5", 7, False),
        ("on 2026-12-31", 20, False),
    ],
)
def test_a_number_within_a_span_is_known(text: str, number: int, is_held: bool) -> None:
    words = KnownWords([text], counted=[text])
    assert is_known(number, words, words) is is_held


@pytest.mark.parametrize(("value", "stands"), [("}},{", False), ("*", False), ("\U0001f44d", True), ("", True)])
def test_signs_without_a_word_stand_there_only_as_they_are(value: str, stands: bool) -> None:
    words = KnownWords(["React with \U0001f44d to the last message"])
    assert is_known(value, words, words) is stands


@pytest.mark.parametrize(
    ("text", "value", "stands"),
    [
        ("Set the unit to percent", "%", True),
        ("Alert me when it is greater than 80", ">", True),
        ("React with a thumbs up to her message", "\U0001f44d\U0001f3fd", True),
        ("React to her message", "\u2764\ufe0f", True),
        ("Delete the last file, right away", "*", False),
        ("Take the left bracket", "}},{", False),
    ],
)
def test_a_sign_may_be_named_in_words_and_an_emoji_is_chosen_freely(text: str, value: str, stands: bool) -> None:
    words = KnownWords([text])
    assert is_known(value, words, words) is stands
