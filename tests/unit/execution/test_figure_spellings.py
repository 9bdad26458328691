"""Figures as people write them in four languages: the true one is explained, the invented one is found."""

import pytest

from agent.answers.figures import find_unexplained_figures
from agent.text.numbers import find_numbers

CASES = [
    ("share: 0.5", "It takes ½ of the budget.", "It takes ¾ of the budget."),
    ("anteil: 0.625", "Das sind ⅝ davon.", "Das sind ⅞ davon."),
    ("hours: 1.5", "Il faut 1½ heure.", "Il faut 1¾ heure."),
    ("units: 1500000", "About 1.5m units were sold.", "About 1.7m units were sold."),
    (
        "units: 1500000",
        "About one and a half million units were sold.",
        "About two and a half million units were sold.",
    ),
    ("antal: 2500000", "Det är två och en halv miljon.", "Det är tre och en halv miljon."),
    ("n: 2500000", "Cela fait deux millions et demi.", "Cela fait trois millions et demi."),
    ("anzahl: 12500000", "Es sind zwölf und eine halbe Million.", "Es sind dreizehn und eine halbe Million."),
    ("revenue 2400 (millions)", "Revenue was 2.4 billion.", "Revenue was 3.1 billion."),
    ("umsatz 2,3 (in Mrd.)", "Der Umsatz lag bei 2300 Mio.", "Der Umsatz lag bei 2700 Mio."),
    ("founded 1987", "It was founded in '87.", "It was founded in '89."),
    ("gebaut: 1987-05-02", "Baujahr \u201987.", "Baujahr \u201989."),
    ("speed 100 km/h", "That is about 62 mph.", "That is about 68 mph."),
    ("vind: 15 m/s", "Det blåser 54 km/tim.", "Det blåser 61 km/tim."),
    ("version 3.11.4", "Version 3.11.4 is installed.", "Version 3.11.9 is installed."),
    ("host 10.0.3.7", "Der Rechner ist 10.0.3.7.", "Der Rechner ist 10.0.3.8."),
    ("umsatz: 2300000000", "Der Umsatz lag bei 2,3 Mrd. €.", "Der Umsatz lag bei 2,8 Mrd. €."),
    ("hyra: 12500", "Hyran är 12,5 tkr.", "Hyran är 12,8 tkr."),
    ("ca: 2300", "Le budget est de 2,3 k€.", "Le budget est de 2,9 k€."),
    ("start: 14:30", "It starts at half past two.", "It starts at half past four."),
    ("start: 14:45", "It starts at a quarter to three.", "It starts at quarter past five."),
    ("zeit: 16:30", "Beginn ist um halb fünf.", "Beginn ist um halb sechs."),
    ("zeit: 4:15 pm", "Beginn ist um Viertel nach vier.", "Beginn ist um Viertel vor vier."),
    ("tid: 14.30", "Klockan halv tre.", "Klockan halv fyra."),
    ("tid: 14:45", "Kvart i tre.", "Kvart över två."),
    ("heure: 14h30", "À deux heures et demie.", "À quatre heures et demie."),
    ("heure: 11:45", "Avant midi moins le quart.", "Avant midi et demi."),
    ("arrives 09:10", "It lands at ten past nine.", "It lands at twenty past nine."),
    ("closes 18:50", "It closes at ten to seven.", "It closes at five to seven."),
    ("zeit: 09:10", "Beginn ist zehn nach neun.", "Beginn ist um zehn vor neun."),
    ("tid: 18:50", "Vi stänger klockan tio i sju.", "Vi stänger klockan fem i sju."),
    ("boxes 60", "That makes five dozen boxes.", "That makes eight dozen boxes."),
    ("kartons: 24", "Es sind zwei Dutzend.", "Es sind drei Dutzend."),
    ("antal 40", "Det är två tjog.", "Det är fyra tjog."),
    ("n: 400", "Quatre centaines de gens sont là.", "Huit centaines de gens sont là."),
    ("boxes 60", "That makes 5 dozen boxes.", "That makes 8 dozen boxes."),
    ("5 dozen boxes", "There are 60 boxes.", "There are 62 boxes."),
    ("boxes 60", "That makes 5 dozen boxes.", "That makes 5.1 dozen boxes."),
    ("zeit: 17:45", "Beginn ist um dreiviertel sechs.", "Beginn ist um drei viertel acht."),
    ("zeit: 17:15", "Beginn ist um viertel sechs.", "Beginn ist um viertel acht."),
    ("vikt: 3 hg", "Det väger 300 g.", "Det väger 450 g."),
    ("dauer: 90 min", "Es dauert 1 ½ Stunden.", "Es dauert 3 ½ Stunden."),
    ("n: 92", "Quatre-vingt-douze personnes.", "Quatre-vingt-treize personnes."),
]


@pytest.mark.parametrize(("evidence", "true", "invented"), CASES)
def test_a_true_figure_is_explained_and_an_invented_one_is_found(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert len(find_unexplained_figures(invented, evidence)) == 1


def test_the_numbers_of_an_answers_own_headings_are_no_claims() -> None:
    assert find_unexplained_figures("## 1.2.1 Scope\nText.\n\n1.2.2 Terms\n- 1.2.3 More", "scope") == []


def test_a_length_is_no_million() -> None:
    assert find_unexplained_figures("The wall is 1.5m high.", "wall: 1.5") == []
    assert find_unexplained_figures("The wall is 1.5m high.", "wall: 1.7") == ["1.5"]


def test_a_time_in_words_of_the_evidence_is_known() -> None:
    assert find_unexplained_figures("It starts at 16:30.", "Beginn ist um halb fünf.") == []
    assert find_unexplained_figures("It starts at 17:30.", "Beginn ist um halb fünf.") == ["17:30"]


def test_halves_that_are_no_times_are_left_alone() -> None:
    for text in (
        "A half two of them ate.",
        "Eine halbe fünf.",
        "Det tar fyra och en halv timme.",
        "quatre heures et demie",
        "The crew went from ten to seven.",
        "It heals after ten to twelve weeks.",
        "Prices rose by five to ten %.",
    ):
        assert find_unexplained_figures(text, "nothing") == []


def test_a_word_of_a_figure_is_no_figure_of_its_own() -> None:
    assert [one.text for one in find_numbers("5 dozen and a dozen, 3 ½ Dutzend")] == ["5 dozen", "dozen", "3 ½ Dutzend"]
