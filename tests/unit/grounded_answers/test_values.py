"""Numbers, dates and times are compared by their value, however they are written."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.grounded_answers.values import Held, mentions


def agrees(claim: str, text: str) -> bool:
    held = Held(text)
    found = mentions(claim)
    assert found, f"{claim!r} claims no value"
    return all(held.holds(mention) for mention in found)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("1,000", "1000"), ("1000", "1 000"), ("1.000", "1000"), ("1\u202f000 kr", "1,000"), ("5 %", "5%"),
        ("5%", "5 percent"), ("5 procent", "5 %"), ("1,5", "1.5"), ("0.50", "0,5"), ("1,234.56", "1.234,56"),
        ("1.5 million", "1,500,000"), ("1.5 million", "in millions: 1.5"), ("3k", "3000"),
        ("twenty-eight days", "28 days"), ("28 days", "twenty-eight days"), ("two weeks", "2 weeks"),
        ("två veckor", "two weeks"), ("1 week", "one week"), ("3rd", "3"), ("10 kg", "10kg"), ("-5 degrees", "at -5"),
        ("5 March 2024", "2024-03-05"), ("March 5, 2024", "05.03.2024"), ("den 5 mars 2024", "5 March 2024"),
        ("in March 2024", "on 5 March 2024"), ("in 2024", "on 5 March 2024"), ("5 March", "2024-03-05"),
        ("14:30", "2:30 pm"), ("2 pm", "14:00"), ("1.2.3", "version 1.2.3"), ("10 to 15 days", "10\u201315 days"),
        ("5 100 people", "room 5 holds 100 people"),
    ],
)  # fmt: skip
def test_the_same_value(claim: str, text: str) -> None:
    assert agrees(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("99", "28"), ("1,000", "1"), ("100", "1000"), ("28", "128"), ("28", "2.8"), ("5 %", "5 days"), ("1.5", "15"),
        ("5 March 2024", "5 March 2023"), ("5 March 2024", "March 2024"), ("14:30", "2:30"), ("-5", "10-5"),
        ("1.2.3", "1.2.4"), ("two", "one of them"), ("1.5 million", "1.5 days"), ("0", "1 000"),
    ],
)  # fmt: skip
def test_another_value(claim: str, text: str) -> None:
    assert not agrees(claim, text)


@pytest.mark.parametrize("text", ["one of the rules", "the sex of the applicant", "INC", "no number here", "may I?"])
def test_what_claims_no_value(text: str) -> None:
    assert mentions(text) == []


@given(st.integers(0, 10**12), st.sampled_from([",", "\u00a0", "\u202f", "'"]))
def test_a_number_is_itself_however_its_thousands_are_grouped(number: int, mark: str) -> None:
    grouped = f"{number:,}".replace(",", mark)
    assert agrees(f"it is {grouped} in all", f"it is {number} in all")
    assert agrees(f"it is {number} in all", f"it is {grouped} in all")


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_another_number_is_another(claimed: int, held: int) -> None:
    assert agrees(f"it is {claimed} in all", f"it is {held:,} in all") == (claimed == held)


@given(st.dates(dt.date(1500, 1, 1), dt.date(2199, 12, 31)))
def test_a_date_is_itself_in_every_spelling(day: dt.date) -> None:
    assert agrees(day.isoformat(), f"on {day:%d %B %Y}")
    assert agrees(f"{day:%B} {day.day}, {day.year}", day.isoformat())
    assert agrees(f"{day.day}.{day.month}.{day.year}", day.isoformat())


@given(st.text(max_size=300))
def test_nothing_a_text_may_hold_breaks_it(text: str) -> None:
    for mention in mentions(text):
        assert text[mention.start : mention.end].strip()
        assert Held(text).holds(mention)
