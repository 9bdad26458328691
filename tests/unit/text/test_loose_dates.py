"""Dates in forms that may be other numbers, and hours with a name."""

import pytest

from agent.text.dates import find_dates
from agent.text.values import KnownValues


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Frist: 15.3.", "Die Frist ist der 15. März."),
        ("Die Frist endet am 15. März.", "Die Frist endet am 15.03."),
        ("Frist 2024-03-15", "Am 15.3. war Abgabe."),
        ("Mån 12/2 kl 18:30", "Måndag den 12 februari kl. 18.30"),
        ("Deadline: 15/3 and 30/6", "The deadlines are March 15 and June 30."),
        ("tecknat 2/9 2024", "Det tecknades den 2 september 2024."),
        ("12/2026", "December 2026"),
        ("March 2024", "03/2024"),
        ("valid until 03/24", "It is valid until March 2024."),
        ("5-MAR-2024", "It was 5 March 2024."),
        ("05-Mar-24", "It was 5 March 2024."),
        ("5. 3. 2024", "Am 5. März 2024"),
        ("20240305", "It was 5 March 2024."),
        ("DTSTART:20240312T090000Z", "It begins on 12 March 2024 at 09:00."),
        ("le 2 fevrier 2024", "2 February 2024"),
        ("2 maerz 2024", "2 March 2024"),
        ("2024-Q3", "from July 2024 to September 2024"),
        ("closed from noon", "It closes at 12:00."),
        ("open until midnight", "It is open until 24:00."),
        ("fermé à midi", "La mairie ferme à 12 h 00."),
        ("at 1330 hrs", "It is at 13:30."),
        ("Up to 10 may be carried over.", "10 days can be carried over."),
    ],
)
def test_a_short_date_is_read_as_date_or_number(evidence: str, claim: str) -> None:
    assert KnownValues(evidence, by_language=True).find_missing(claim) == []
    assert KnownValues(evidence).find_missing(claim) == []


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Frist: 15.3.", "Die Frist ist der 16. März."),
        ("Frist 2024-03-15", "Am 17.3. war Abgabe."),
        ("12/2", "Det är den 14 februari."),
        ("5-MAR-2024", "It was 6 March 2024."),
        ("20240305", "It was 3 May 2023."),
        ("at 1330 hrs", "It is at 13:45."),
        ("closed from noon", "It closes at 11:00."),
    ],
)
def test_another_date_is_missing(evidence: str, claim: str) -> None:
    assert KnownValues(evidence, by_language=True).find_missing(claim)


def test_may_in_small_letters_is_a_verb() -> None:
    assert find_dates("Up to 10 may stay, and you may 5 times.") == []
    assert [one.readings[0].iso for one in find_dates("10 May, 11 may 2024, 12 mai")] == [
        "--05-10",
        "2024-05-11",
        "--05-12",
    ]
