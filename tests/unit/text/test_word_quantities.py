"""Shares, spans of time and numbers that the evidence says in words."""

import time

import pytest

from agent.text.values import KnownValues
from agent.text.word_quantities import find_word_quantities


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Two thirds agreed.", "67 % agreed."),
        ("Zwei Drittel stimmten zu.", "66,7 % stimmten zu."),
        ("Två tredjedelar röstade.", "67 % röstade."),
        ("La subvention couvre trois quarts.", "Elle couvre 75 %."),
        ("Il baisse d'un cinquième.", "Il baisse de 20 %."),
        ("half an hour", "It takes 30 minutes."),
        ("a quarter of an hour", "It takes 15 minutes."),
        ("a year and a half", "It runs for 18 months."),
        ("one and a half years", "It runs for 1.5 years."),
        ("anderthalb Jahre", "Das sind 18 Monate."),
        ("zweieinhalb Stunden", "Das sind 150 Minuten."),
        ("ein halbes Jahr", "Das sind 6 Monate."),
        ("ett och ett halvt år", "Det är 18 månader."),
        ("ett kvartal", "Det är 3 månader."),
        ("un an et demi", "Il dure 18 mois."),
        ("une demi-heure", "Elle dure 30 minutes."),
        ("un trimestre", "Le délai est de 3 mois."),
        ("a fortnight", "That is 14 days."),
        ("two decades", "That is 20 years."),
        ("a hundred and five abstained", "105 abstained."),
        ("cent cinq se sont abstenus", "105 se sont abstenus."),
    ],
)
def test_words_of_the_evidence_hold_a_value(evidence: str, claim: str) -> None:
    for by_language in (True, False):
        assert KnownValues(evidence, by_language=by_language).find_missing(claim) == []


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [
        ("Two thirds agreed.", "76 % agreed."),
        ("a year and a half", "It runs for 16 months."),
        ("a hundred and five abstained", "115 abstained."),
        ("dix pour cent des six cents élèves", "106 élèves."),
        ("the half that I like", "It takes 30 minutes."),
    ],
)
def test_another_value_is_missing(evidence: str, claim: str) -> None:
    assert KnownValues(evidence, by_language=True).find_missing(claim)


@pytest.mark.parametrize("word", ["half a ", "one third ", "a ", "cent ", "a hundred and "])
def test_a_long_text_takes_time_in_line_with_its_length(word: str) -> None:
    start = time.process_time()
    find_word_quantities(word * (200_000 // len(word)))
    assert time.process_time() - start < 8
