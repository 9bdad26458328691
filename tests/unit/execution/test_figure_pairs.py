"""How many invented figures of sentences written by hand are found, and how many true ones are marked."""

import pytest

from agent.answers.figures import find_unexplained_figures
from tests.support.everyday_figure_pairs import EVERYDAY_PAIRS
from tests.support.figure_answers import read_answers
from tests.support.figure_pairs import PAIRS, FigurePair

SETS = pytest.mark.parametrize("pairs", [PAIRS, EVERYDAY_PAIRS], ids=["kinds", "everyday"])


@SETS
def test_true_figures_are_not_marked(pairs: list[FigurePair]) -> None:
    marked = [pair.true for pair in pairs if find_unexplained_figures(pair.true, pair.evidence)]
    assert len(marked) <= 0.02 * len(pairs), marked


@SETS
def test_invented_figures_are_found(pairs: list[FigurePair]) -> None:
    missed = [pair.invented for pair in pairs if not find_unexplained_figures(pair.invented, pair.evidence)]
    assert len(missed) <= 0.05 * len(pairs), missed


@pytest.mark.parametrize(
    ("name", "most_marked", "most_missed"), [("figure_answers", 0.04, 0.07), ("figure_relations", 0.08, 0.05)]
)
def test_answers_that_count_and_derive(name: str, most_marked: float, most_missed: float) -> None:
    pairs = read_answers(name)
    marked = [pair.true for pair in pairs if find_unexplained_figures(pair.true, pair.evidence)]
    missed = [pair.invented for pair in pairs if not find_unexplained_figures(pair.invented, pair.evidence)]
    assert len(marked) <= most_marked * len(pairs), marked
    assert len(missed) <= most_missed * len(pairs), missed


@pytest.mark.parametrize(
    ("evidence", "true", "invented"),
    [
        ("floor 23", "It is on the twenty-third floor.", "It is on the twenty-seventh floor."),
        ("platz 38", "Er belegte den achtunddreißigsten Platz.", "Er belegte den siebzehnten Platz."),
        ("2026-09-21", "Det är den tjugoförsta september.", "Det är den tjugofemte september."),
        ("rang 95", "Il est quatre-vingt-quinzième.", "Il est quatre-vingt-seizième."),
        ("antal 340", "Trehundrafyrtio personer kom.", "Trehundrafemtio personer kom."),
        ("tel +46701234567", "Ring 070-123 45 67.", "Ring 070-123 45 76."),
        ("tel 070-1234567", "Ring +46 70 123 45 67.", "Ring +46 70 321 45 67."),
        ("DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0310 00"),
        ("2.5e-6 C", "It is 2.5 \u00d7 10\u207b\u2076 C.", "It is 2.5 \u00d7 10\u207b\u2079 C."),
        ("sheet 120x80", "It measures 120 by 80 cm.", "It measures 120 by 85 cm."),
        ("1 in 8 tenants", "12.5 % of them do.", "17.5 % of them do."),
        ("visiteurs 2023 : 1 130 000", "1,13 million de personnes en 2023.", "1,4 million de personnes en 2023."),
        ('"versions": ["3.1.0", "3.1.4"]', "The latest one is v3.1.4.", "The latest one is v3.1.5."),
        ("version 2.18.0", "Version 2.18 is out.", "Version 2.19 is out."),
        (
            "pi\u00e8ces : 426",
            "Il compte quatre cent vingt-six pi\u00e8ces.",
            "Il compte quatre cent soixante-deux pi\u00e8ces.",
        ),
        ("1 650 000", "Un million six cent cinquante mille ventes.", "Un million deux cent cinquante mille ventes."),
        ("m\u00e5n -4,5, ons 3,5", "Det blir -4,5 grader.", "Det blir -5,4 grader."),
        ("12,17 \u20ac netto", "Es sind 12,17 \u20ac.", "Es sind 17 \u20ac."),
        ("inscrits : 21", "Vingt et une personnes viennent.", "Trente et une personnes viennent."),
        ("visitors 512340", "About half a million visitors came.", "About three million visitors came."),
        ("Umsatz (Mio. \u20ac) 18,6", "Es waren 18.600.000 \u20ac.", "Es waren 16.800.000 \u20ac."),
        ("| Mio. |\n| 12,4 |\n| 15,5 |\n| 18,6 |", "Es sind 46,5 Millionen.", "Es sind 47,5 Millionen."),
        ("kl. 13:00-14:45", "Det p\u00e5g\u00e5r kl. 13.00\u201314.45.", "Det p\u00e5g\u00e5r kl. 13.00\u201315.25."),
        ("time 3:28:18", "3 hours, 28 minutes and 18 seconds", "3 hours, 38 minutes and 18 seconds"),
        ("2026-09-14T15:00", "The call is at three o'clock.", "The call is at five o'clock."),
        ("15:00", "M\u00f6tet b\u00f6rjar klockan tre.", "M\u00f6tet b\u00f6rjar klockan fem."),
        ("15:00", "Es beginnt um drei Uhr.", "Es beginnt um f\u00fcnf Uhr."),
        ("15:00", "Elle commence \u00e0 trois heures.", "Elle commence \u00e0 cinq heures."),
        ("net 1,250.00, vat 250.00, gross 1,500.00, due_days 30", "The rate is 20 %.", "The rate is 25 %."),
        ("duration: 95 s", "It took 1 min 35 s.", "It took 1 min 53 s."),
        ("time 3:51:12", "Segertiden var 3 h 51 min 12 s.", "Segertiden var 3 h 15 min 12 s."),
        ("| A | 7 990 kr | 187 g |\n| B | 10 490 kr | 201 g |", "B kostar 2 500 kr mer.", "B kostar 2 300 kr mer."),
        (
            "a,stock,sold\n2026-W46,16742,1127\n2026-W47,16210,980",
            "16210, that is 532 less.",
            "16210, that is 632 less.",
        ),
        ("400x300x250 mm", "40 x 30 x 25 cm", "40 x 36 x 25 cm"),
        ("4,2 x 3,6 m", "Golvet \u00e4r 15,12 m\u00b2.", "Golvet \u00e4r 16,42 m\u00b2."),
        ("revenue 48.7 million EUR (last year 44.1)", "It rose by 10.4 %.", "It rose by 16.8 %."),
        ("won in 1:11:24, second 1:12:09", "She won by 45 seconds.", "She won by 65 seconds."),
        ("2026-11-29T15:15/2026-11-29T16:45", "M\u00f6tet slutar 16.45.", "M\u00f6tet slutar 17.05."),
        ("area 536 km\u00b2", "Das sind 53.600 Hektar.", "Das sind 56.300 Hektar."),
        ("t\u00e9l. 04 72 55 18 36", "Appelez le 04.72.55.18.36.", "Appelez le 04.72.55.18.63."),
        ("phone (415) 555-0132", "Call 415.555.0132.", "Call 415.555.0123."),
        (
            "It leaves on 18 November and arrives the next day.",
            "It arrives on November 19.",
            "It arrives on November 21.",
        ),
        ("Avg\u00e5r 18 november, framme dagen efter.", "Framme 19 november.", "Framme 22 november."),
        ("Abfahrt 18. November, Ankunft am Folgetag.", "Ankunft am 19. November.", "Ankunft am 21. November."),
        (
            "D\u00e9part le 18 novembre, arriv\u00e9e le lendemain.",
            "Arriv\u00e9e le 19 novembre.",
            "Arriv\u00e9e le 21 novembre.",
        ),
        (
            "dons : 1,92 million d'euros, subventions : 845 000 euros",
            "Le total est de 2,765 millions d'euros.",
            "Le total est de 2,675 millions d'euros.",
        ),
        ("0,45 \u20ac par km", "Cela fait 45 centimes.", "Cela fait 54 centimes."),
        (
            "You get 25 days of annual leave and 8 public holidays.",
            "That is 33 days off a year.",
            "That is 35 days off a year.",
        ),
        ("drei\u00dfig Arbeitstage, zus\u00e4tzlich f\u00fcnf Tage", "Es sind 35 Tage.", "Es sind 38 Tage."),
        ("The fee rises from 60 to 72 euros (41 yes, 11 no, 57 of 143).", "It rises by 20%.", "It rises by 25%."),
        ("a dividend of USD 2.75 per share (2.50)", "The dividend rises by 10%.", "The dividend rises by 15%."),
        (
            "12 840 b\u00e9n\u00e9ficiaires (11 675 en 2024)",
            "La hausse est d'environ 10 %.",
            "La hausse est d'environ 14 %.",
        ),
        ("Net debt fell from 310 to 268 million.", "It fell by $42 million.", "It fell by $52 million."),
        ("38,5 Stunden an f\u00fcnf Tagen", "Am Tag sind es 7,7 Stunden.", "Am Tag sind es 7,3 Stunden."),
        ("CI: 1,847 passed, 3 failed, 22 skipped", "In all, 1,872 tests ran.", "In all, 1,902 tests ran."),
        ("12 May, 14 June, 5 July: 14 boys, 15 girls, 12 dogs", "In all, 41 came.", "In all, 31 came."),
        ("12 Rosen, 7 Tulpen, 15 Nelken; 44 Kunden", "Das sind zusammen 34 Blumen.", "Das sind zusammen 38 Blumen."),
        ("UVP 2.799,00 \u20ac. 1.087 Bewertungen", "\u00dcber 1.000 K\u00e4ufer.", "\u00dcber 2.000 K\u00e4ufer."),
        ("prix 49.9, stock 8321", "Dix lampes co\u00fbtent 499 euros.", "Dix lampes co\u00fbtent 489 euros."),
    ],
)
def test_a_kind_of_figure(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert find_unexplained_figures(invented, evidence)
