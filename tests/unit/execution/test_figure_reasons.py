"""A figure follows from others for a reason: a word for the factor, one dimension, records that are counted."""

import json

import pytest

from agent.answers.figures import find_unexplained_figures

WHEEL = (
    "Rad Fjordlinie 500: 16,8 kg, Rahmen 52 cm, 27 Gänge, Reichweite 125 km, Motor 85 Nm. UVP 3.499,00 €, "
    "jetzt 2.799,00 €. 1.087 Bewertungen, Ø 4,7. Lieferzeit 3-5 Werktage."
)
WASHER = "Capacité 9 kg, 1 400 tr/min, 74 dB, 85 x 60 x 59,5 cm, 529,00 € au lieu de 629,00 €, garantie 5 ans."


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("You save $300.", "Old price $600, new price $480."),
        ("Sie sparen 350 Euro.", "Preis bisher 700 Euro, jetzt 620 Euro"),
        ("The gap between them is 2,400.", "Sales A 1,200, B 1,750"),
        ("Revenue fell by 450,000.", "Revenue 2024: 900,000; 2025: 780,000"),
        ("Garage är 550 kr dyrare.", "Bilplats kostar 650 kr, garage 1 100 kr"),
        ("This year the price is 480 EUR.", "The price is 40 EUR."),
        ("This year the price is 480 EUR.", "The price is 40 EUR, notice one month."),
        ("The year saw 1,200 sales.", "100 sales in the shop"),
        ("The couple paid 300 EUR.", "The fee is 150 EUR"),
        ("You must return it in 28 days.", "You have 14 days"),
        ("The annual return is 24%.", "2% interest a month"),
        ("The halving of the term gives 8%.", "The rate is 16%"),
    ],
)
def test_half_or_double_of_a_figure_explains_no_difference(answer: str, evidence: str) -> None:
    assert find_unexplained_figures(answer, evidence)


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("Both tickets cost 84 €.", "A ticket is 42 €."),
        ("Half of it is 620 kr.", "Totalt 1 240 kr"),
        ("Die Jahresmiete beträgt 14.880 €.", "Miete 1.240 € im Monat"),
        ("Sur un an, le loyer fait 10 440 €.", "loyer mensuel 870 €"),
        ("That comes to $747.", "What do 3 tickets cost?\nWhat do 3 tickets cost?\n2026-11-29\nA ticket is $249."),
        ("That is 14,880 €.", "What is it a year?\nWhat is it a year?\n2026-11-29\nrent 1,240 € a month"),
        ("Per year 1,440 EUR.", "120 EUR a month"),
        ("The monthly fee is 50 EUR.", "Annual fee 600 EUR"),
        ("That makes 14,880 a year.", '{"rent_monthly": 1240}'),
        ("The round trip is 300 km.", "150 km one way"),
        ("For two people it is 90 EUR.", "45 EUR"),
    ],
)
def test_a_factor_that_the_sentence_or_the_request_names_does(answer: str, evidence: str) -> None:
    assert find_unexplained_figures(answer, evidence) == []


@pytest.mark.parametrize(
    ("evidence", "true", "invented"),
    [
        (WHEEL, "Sie sparen 20 Prozent.", "Sie sparen 30 Prozent."),
        (WASHER, "Soit une baisse d'environ 16 %.", "Soit une baisse d'environ 26 %."),
        (WASHER, "Vous économisez 100 €.", "Vous économisez 120 €."),
    ],
)
def test_amounts_of_money_explain_before_other_figures(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert find_unexplained_figures(invented, evidence)


def test_the_share_of_records_with_a_text_is_known() -> None:
    states = ("shipped", "shipped", "shipped", "open", "open")
    orders = json.dumps([{"id": name, "state": state} for name, state in zip("abcde", states, strict=True)])
    assert find_unexplained_figures("60% of the orders are shipped.", orders) == []
    assert find_unexplained_figures("80% of the orders are shipped.", orders) == ["80"]
    table = "| id | priority |\n|---|---|\n| T-1 | high |\n| T-2 | low |\n| T-3 | high |\n| T-4 | medium |"
    assert find_unexplained_figures("Half of the tickets (50%) are high.", table) == []
    assert find_unexplained_figures("Most of the tickets (75%) are high.", table) == ["75"]


@pytest.mark.parametrize(
    ("answer", "marked"),
    [
        ("67% are open.", []),
        ("67% are not closed.", []),
        ("33% of customers churned.", ["33"]),
        ("67% of the work is done in Berlin.", ["67"]),
    ],
)
def test_a_share_of_records_names_their_text(answer: str, marked: list[str]) -> None:
    assert find_unexplained_figures(answer, "name,status\nA,open\nB,open\nC,closed in part") == marked


def test_a_value_that_repeats_its_text_counts_once() -> None:
    text = "2026-11-18 02:30 INFO 48 210 lignes à traiter\n2026-11-18 02:52 ERREUR ligne 31 337\n02:53 durée 1350 s"
    evidence = f"{text}\n{json.dumps(text)}"
    assert find_unexplained_figures("Il reste 16 873 lignes.", evidence) == []
    assert find_unexplained_figures("Il reste 62 674 lignes.", evidence) == ["62 674"]  # twice 31 337
