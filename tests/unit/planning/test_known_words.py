"""Whether the values of a call are known: by their words, and dates by the day they mean."""

import pytest

from agent.planning.known_words import KnownWords, is_known

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
