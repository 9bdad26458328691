"""Numbers behind words that round them: how far the value may lie from what the text says."""

import pytest

from agent.text.values import KnownValues


@pytest.mark.parametrize(
    "claim",
    [
        "At least 48,000 came.",
        "Upwards of 48,000 came.",
        "In excess of **48,000** came.",
        "An estimated 48,000 came.",
        "Close to 49,000 came.",
        "Fewer than 49,000 came.",
        "Nearly 50,000 came.",
        "48,000+ came.",
        "Some 48,000-odd came.",
        "48,000 or so came.",
        "Between 48,000 and 49,000 came.",
        "> 48,000 came",
        "Forty-eight thousand came.",
        "48-49 thousand came.",
        "Es kamen knapp 49.000.",
        "Es kamen beinahe 50.000.",
        "Es kamen mindestens 48.000 Besucher.",
        "Es kamen höchstens 49.000 Besucher.",
        "Det kom fler än 48 000.",
        "Det kom närmare 50 000.",
        "Det kom c:a 48 000.",
        "Il y en a eu à peu près 48 000.",
        "Il y en a eu au moins 48 000.",
        "Il y en a eu jusqu'à 49 000.",
    ],
)
def test_a_rounded_number_agrees_with_what_it_rounds(claim: str) -> None:
    assert KnownValues("visitors: 48213", by_language=True).find_missing(claim) == []


@pytest.mark.parametrize(
    "claim",
    [
        "At least 49,000 came.",
        "More than 49,000 came.",
        "Fewer than 48,000 came.",
        "Nearly 60,000 came.",
        "At most 90,000 came.",
        "Between 49,000 and 50,000 came.",
        "Es kamen mindestens 51.000 Besucher.",
        "Det kom färre än 47 000.",
        "Il y en a eu moins de 47 000.",
        "Forty-seven thousand came.",
    ],
)
def test_a_bound_on_the_wrong_side_is_missing(claim: str) -> None:
    assert KnownValues("visitors: 48213", by_language=True).find_missing(claim)


def test_a_limit_is_not_a_rounded_number() -> None:
    known = KnownValues("25 days of leave, 2023", by_language=True)
    assert [one.text for one in known.find_missing("Up to 30 days in 2020.")] == ["30 days", "2020"]
    assert known.find_missing("Under 2024 var det minst 25 dagar.")


@pytest.mark.parametrize("by_language", [True, False])
def test_a_share_is_a_rounded_percentage(by_language: bool) -> None:
    known = KnownValues('{"rate": 0.3333, "fee": 0.0786}', by_language=by_language)
    assert known.find_missing("33 % or 33.3 %, and a fee of 7.9 %.") == []
    assert known.find_missing("34 % or 33.4 %.")


@pytest.mark.parametrize("number", ["1E100", "-1E100", "9" * 39, "1e-100", "0"])
@pytest.mark.parametrize("words", ["", "nearly ", "at most ", "more than ", "about "])
def test_no_number_is_too_long_to_compare(words: str, number: str) -> None:
    claim = f"{words}{number}"
    KnownValues("0, in thousands", by_language=True).find_missing(claim)
    assert KnownValues(claim, by_language=True).find_missing(number) == []
