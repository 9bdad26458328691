"""How many invented figures of sentences written by hand are found, and how many true ones are marked."""

import pytest

from agent.answers.figures import find_unexplained_figures
from tests.support.everyday_figure_pairs import EVERYDAY_PAIRS
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
    ],
)
def test_a_kind_of_figure(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert find_unexplained_figures(invented, evidence)
