"""Answers of a sentence or two to results with several figures: one is given as it is, in other words, or computed.

Unlike the pairs in `figure_pairs`, the same results are asked about several times, many answers compute without saying
so, and some inventions are below what is looked for: counts under ten in words, fractions in words. In the second file
nearly every other figure is computed from records: totals, differences, shares, changes, spans of time, multiples.
The third holds what an assistant in an office is asked: tables, mails, contracts, reports and results of tools, whose
dates, quantities and scales are written in many ways.
"""

import re
from pathlib import Path

from tests.support.figure_pairs import FigurePair

_DATA = Path(__file__).parent / "data"
_CHOICE = re.compile(r"\{(?P<true>[^{}|]*)\|(?P<invented>[^{}|]*)\}")


def read_answers(name: str = "figure_answers") -> list[FigurePair]:
    """The pairs of a file, `figure_answers`, `figure_relations` or `figure_desk`.

    A line with `# ` is the results that the lines below it answer."""
    pairs: list[FigurePair] = []
    evidence = ""
    for line in (_DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        text = line.replace("\\n", "\n")
        if text.startswith("# "):
            evidence = text[2:]
            continue
        true, invented = (_CHOICE.sub(rf"\g<{name}>", text) for name in ("true", "invented"))
        pairs.append(FigurePair("", evidence, true, invented))
    return pairs
