"""Values of a claim are compared with those of other texts by what they mean, however they are written."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text.codes import find_codes
from agent.text.dates import find_dates, find_times
from agent.text.numbers import find_numbers
from agent.text.values import KnownValues, find_values


def agrees(claim: str, text: str) -> bool:
    """Whether every value of the claim stands in the text; the claim has to state one."""
    assert find_values(claim, is_claim=True), f"{claim!r} states no value"
    return not KnownValues(text).find_missing(claim)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("1,000", "1000"), ("1000", "1 000"), ("1.000", "1000"), ("1\u202f000 kr", "1,000"), ("1'000", "1000"),
        ("12,34,567", "1234567"), ("1,234.56", "1.234,56"), ("1,5", "1.5"), ("0.50", "0,5"), ("864.00", "864"),
        ("5 %", "5%"), ("5%", "5 percent"), ("5 procent", "5 %"), ("5 Prozent", "5%"), ("12.5 %", "a ratio of 0.125"),
        ("1.5 million", "1,500,000"), ("1.5 million", "in millions: 1.5"), ("3k", "3000"), ("3M", "3,000,000"),
        ("2,5 Mio. Euro", "2.500.000 €"), ("3 MSEK", "3 000 000 kr"), ("1.2e3", "1200"),
        ("twenty-eight days", "28 days"), ("28 days", "twenty-eight days"), ("two weeks", "2 weeks"),
        ("två veckor", "two weeks"), ("1 week", "one week"), ("three hundred", "300"), ("femtiotvå", "52"),
        ("fünfundzwanzig Tage", "25 Tage"), ("3rd", "3"), ("1½ hours", "90 minutes"), ("half a million", "500,000"),
        ("10 kg", "10kg"), ("7-day", "7 days"), ("24h", "24 hours"), ("2 weeks", "14 days"), ("1.5 km", "1500 m"),
        ("€ 500", "500 EUR"), ("500 SEK", "500 kr"), ("-5 degrees", "at -5"), ("\u22125", "-5"),
        ("10 to 15 days", "10\u201315 days"), ("5 100 people", "room 5 holds 100 people"), ("151", "151,2870"),
        ("151 and 2870", "Ann,151,2870,NO"), ("the sum is 1,234", 'Ann,"1,234",NO'),
    ],
)  # fmt: skip
def test_the_same_number(claim: str, text: str) -> None:
    assert agrees(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("99", "28"), ("1,000", "1"), ("100", "1000"), ("28", "128"), ("28", "2.8"), ("1.5", "15"), ("0", "1 000"),
        ("5 %", "5 days"), ("500 SEK", "500 EUR"), ("10 kg", "10 km"), ("50 percentage points", "50 %"),
        ("-5", "10-5"), ("-12.58", "12.58"), ("two", "one of them"), ("1.5 million", "1.5 days"), ("7", "INC-17"),
    ],
)  # fmt: skip
def test_another_number(claim: str, text: str) -> None:
    assert not agrees(claim, text)


@pytest.mark.parametrize(
    ("claim", "text", "same"),
    [
        ("63.32", "63.3224", True), ("63.3", "63.3224", True), ("63", "63.3224", True), ("64", "63.3224", False),
        ("63.33", "63.3224", False), ("63.3224", "63.32", False), ("1.5 million", "1,540,000", True),
        ("1.5 million", "1,560,000", False), ("about 1,200", "1187", True), ("1,200", "1187", False),
        ("ca. 60 %", "58 %", True), ("6,3 kr", "6.32 kr", True),
    ],
)  # fmt: skip
def test_a_claim_may_round_to_the_decimals_it_shows(claim: str, text: str, *, same: bool) -> None:
    assert agrees(claim, text) is same


def test_a_fall_may_be_written_without_its_sign() -> None:
    known = KnownValues("-12.58 %")
    assert [mention.text for mention in known.find_missing("It fell by 12.58 %.")] == ["12.58 %"]
    assert known.find_missing("It fell by 12.58 %.", ignore_sign=True) == []


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("5 March 2024", "2024-03-05"), ("March 5, 2024", "05.03.2024"), ("den 5 mars 2024", "5 March 2024"),
        ("5. März 2024", "2024/03/05"), ("5 de marzo de 2024", "5 March 2024"), ("le 5 mars 2024", "Mar 5, 2024"),
        ("in March 2024", "on 5 March 2024"), ("in 2024", "on 5 March 2024"), ("5 March", "2024-03-05"),
        ("in April", "2024-04-30"), ("the 5th", "on 5 March"), ("2026-10-09", "9 October (plan of 2026)"),
        ("01/02/2024", "1 February 2024"), ("01/02/2024", "January 2, 2024"), ("2024-03", "5 March 2024"),
        ("2024-03-05", "at 2024-03-05T14:30:00Z"), ("14:30", "2024-03-05T14:30:00Z"), ("5.3.24", "5 March 2024"),
        ("14:30", "2:30 pm"), ("2 pm", "14:00"), ("kl. 14.30", "at 14:30"), ("14 Uhr", "14:00"), ("14h30", "14:30"),
    ],
)  # fmt: skip
def test_the_same_date_or_time(claim: str, text: str) -> None:
    assert agrees(claim, text)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("5 March 2024", "5 March 2023"), ("5 March 2024", "March 2024"), ("5 March 2024", "6 March 2024"),
        ("5 March 2024", "5 March"), ("in April", "5 March"), ("14:30", "2:30"), ("31 March", "30 March"),
    ],
)  # fmt: skip
def test_another_date_or_time(claim: str, text: str) -> None:
    assert not agrees(claim, text)


@pytest.mark.parametrize(
    ("claim", "text", "same"),
    [
        ("INC-1042", "see inc 1042", True), ("INC-1042", "see INC-1043", False), ("v2.18", "v2.18 is out", True),
        ("v2.18", "v2.19 is out", False), ("1.2.3", "version 1.2.3", True), ("1.2.3", "version 1.2.4", False),
        ("10.0.3.7", "the host 10.0.3.7", True), ("A4", "in A4 format", True), ("Q3", "Q2 and Q4", False),
        ("call +46 8 123 45 67", "Tel. +46-8-1234567", True), ("a@b.se", "write to a@b.se.", True),
        ("a@b.se", "write to a@c.se", False), ("https://x.se/a1", "at https://x.se/a1.", True),
        ("https://x.se/a1", "at https://x.se/a2", False),
    ],
)  # fmt: skip
def test_codes_and_addresses_are_compared_by_their_letters_and_digits(claim: str, text: str, *, same: bool) -> None:
    assert agrees(claim, text) is same


@pytest.mark.parametrize(
    "text",
    ["one of the rules", "the sex of the applicant", "no number here", "may I?", "`x = 7`", "As told. [1] [2, 3]",
     "1. First\n2. Second"],
)  # fmt: skip
def test_what_states_no_value(text: str) -> None:
    assert find_values(text, is_claim=True) == []


def test_mentions_say_where_they_stand_and_what_they_are() -> None:
    text = "Fees of 1.234,50 € (up 3 %) are due by 5 March 2024 at 14:30 for INC-1042."
    values = find_values(text)
    assert [text[mention.start : mention.end] for mention in values] == [mention.text for mention in values]
    fee, rise = find_numbers(text)[:2]
    assert fee.unit is not None
    assert rise.unit is not None
    assert (fee.value, fee.unit.name, rise.unit.dimension) == (Decimal("1234.50"), "EUR", "%")
    assert [date.readings[0].iso for date in find_dates(text)] == ["2024-03-05"]
    assert [time.value.iso for time in find_times(text)] == ["14:30"]
    assert [code.key for code in find_codes(text)] == ["inc1042"]


@given(st.integers(0, 10**12), st.sampled_from([",", "\u00a0", "\u202f", "'", "."]))
def test_a_number_is_itself_however_its_thousands_are_grouped(number: int, mark: str) -> None:
    grouped = f"{number:,}".replace(",", mark)
    assert agrees(f"it is {grouped} in all", f"it is {number} in all")
    assert agrees(f"it is {number} in all", f"it is {grouped} in all")


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_another_number_is_never_taken_for_it(claimed: int, known: int) -> None:
    assert agrees(f"it is {claimed} in all", f"it is {known:_} in all".replace("_", " ")) == (claimed == known)


# Not three decimals: 25.000 may be twenty-five thousand.
@given(st.decimals(-(10**6), 10**6, places=4), st.integers(0, 2))
def test_a_rounded_number_agrees_with_the_exact_one(exact: Decimal, decimals: int) -> None:
    assert agrees(f"it is {exact:.{decimals}f} in all", f"it is {exact} in all")


@given(st.dates(dt.date(1500, 1, 1), dt.date(2199, 12, 31)))
def test_a_date_is_itself_in_every_spelling(day: dt.date) -> None:
    assert agrees(day.isoformat(), f"on {day:%d %B %Y}")
    assert agrees(f"{day:%B} {day.day}, {day.year}", day.isoformat())
    assert agrees(f"{day.day}.{day.month}.{day.year}", day.isoformat())


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader_and_each_text_holds_its_own_values(text: str) -> None:
    known = KnownValues(text)
    for mention in find_values(text, is_claim=True):
        assert text[mention.start : mention.end].strip()
        assert known.contains(mention), mention


@given(st.text("0123456789 .,x×·^eE⁰¹²³⁶⁺⁻-+½%", max_size=12))  # noqa: RUF001 - signs of powers
def test_no_spelling_of_figures_is_an_error(text: str) -> None:
    find_values(f"{text} 5 × 10{text}", is_claim=True)  # noqa: RUF001 - as above


@pytest.mark.parametrize("text", ["5 × 10⁻ m", "3 x 10⁺⁺", "2·10⁻⁻⁶"])  # noqa: RUF001 - as above
def test_a_power_that_is_none_leaves_its_numbers(text: str) -> None:
    assert [mention.value for mention in find_numbers(text)] == [Decimal(text[0]), Decimal(10)]


@pytest.mark.parametrize(
    ("claim", "text", "same"),
    [
        ("070-174 06 21", "+46 70 174 06 21", True),
        ("+46 70 174 06 21", "070-174 06 21", True),
        ("070-174 06 21", "the serial number 00000000", False),
        ("00000000", "room 5", False),
    ],
)
def test_a_telephone_number_has_a_prefix_or_not(claim: str, text: str, same: bool) -> None:
    assert agrees(claim, text) is same
