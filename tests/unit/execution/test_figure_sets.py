"""How many invented figures are found, and how many true ones are marked, on labelled answers in four languages."""

import pytest

from agent.answers.figures import find_unexplained_figures
from tests.support.figure_sets import LANGUAGES, FigureCase, iter_figure_cases

CASES = 140
"""Five of each kind a language."""


def _is_found(case: FigureCase) -> bool:
    invented = "".join(filter(str.isalnum, case.invented))
    for figure in find_unexplained_figures(case.answer, case.evidence):
        digits = "".join(filter(str.isalnum, figure))
        if digits in invented or invented in digits:
            return True
    return False


@pytest.mark.parametrize("language", LANGUAGES)
def test_invented_figures_are_found_and_true_ones_are_not_marked(language: str) -> None:
    pairs = list(iter_figure_cases(language, 3, CASES))
    missed = [false.answer for _, false in pairs if not _is_found(false)]
    marked = [true.answer for true, _ in pairs if find_unexplained_figures(true.answer, true.evidence)]
    print(
        f"{language}: found {1 - len(missed) / CASES:.3f} of {CASES}, marked {len(marked) / CASES:.3f} of the true ones"
    )
    assert len(missed) <= 0.03 * CASES, missed
    assert len(marked) < 0.02 * CASES, marked
