"""Answers of a sentence or two to results with several figures: one is given as it is, in other words, or computed.

Unlike the pairs in `figure_pairs`, the same results are asked about several times, many answers compute without saying
so, and some inventions are below what is looked for: counts under ten in words, fractions in words. In the second file
nearly every other figure is computed from records: totals, differences, shares, changes, spans of time, multiples.
The third holds what an assistant in an office is asked: tables, mails, contracts, reports and results of tools, whose
dates, quantities and scales are written in many ways. The sums take two or three steps: a net amount with its tax,
nights at a price with a tax a night, a bill less what was paid. Their second half is held: only its rates are
looked at.
"""

import re
from pathlib import Path

from agent.answers.figures import find_unexplained_figures
from tests.support.figure_pairs import FigurePair

_DATA = Path(__file__).parent / "data"
_CHOICE = re.compile(r"\{(?P<true>[^{}|]*)\|(?P<invented>[^{}|]*)\}")


def read_answers(name: str = "figure_answers") -> list[FigurePair]:
    """The pairs of a file: `figure_answers`, `figure_relations`, `figure_desk`, `figure_sums` or `figure_sums_held`.

    A line with `# ` is the results that the lines below it answer. A line with `+ ` goes on from the true sentence
    above it."""
    pairs: list[FigurePair] = []
    evidence = ""
    for line in (_DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        text = line.replace("\\n", "\n")
        if text.startswith("# "):
            evidence = text[2:]
            continue
        before = f"{pairs[-1].before}{pairs[-1].true} " if text.startswith("+ ") else ""
        true, invented = (_CHOICE.sub(rf"\g<{name}>", text.removeprefix("+ ")) for name in ("true", "invented"))
        pairs.append(FigurePair("", evidence, true, invented, before))
    return pairs


def list_marked(pair: FigurePair, sentence: str) -> list[str]:
    """The figures that are marked in a sentence of a pair where it stands, behind the sentences before it."""
    return [one for one in find_unexplained_figures(pair.before + sentence, pair.evidence) if one in sentence]
