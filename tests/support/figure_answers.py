"""Answers of a sentence or two to results with several figures: one is given as it is, in other words, or computed.

Unlike the pairs in `figure_pairs`, the same results are asked about several times, many answers compute without saying
so, and some inventions are below what is looked for: counts under ten in words, fractions in words.
"""

import re
from pathlib import Path

from tests.support.figure_pairs import FigurePair

_ANSWERS = Path(__file__).parent / "data" / "figure_answers.txt"
_CHOICE = re.compile(r"\{(?P<true>[^{}|]*)\|(?P<invented>[^{}|]*)\}")


def read_answers() -> list[FigurePair]:
    """The pairs of the file: a line with `# ` is the results that the lines below it answer."""
    pairs: list[FigurePair] = []
    evidence = ""
    for line in _ANSWERS.read_text(encoding="utf-8").splitlines():
        text = line.replace("\\n", "\n")
        if text.startswith("# "):
            evidence = text[2:]
            continue
        true, invented = (_CHOICE.sub(rf"\g<{name}>", text) for name in ("true", "invented"))
        pairs.append(FigurePair("", evidence, true, invented))
    return pairs
