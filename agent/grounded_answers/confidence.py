"""How much stands behind an answer, from 0 to 1. A computed figure for comparing answers, and no probability.

    confidence = (0.5 * coverage + 0.5 * relevance) * agreement * kept

`coverage` is the share of the question's content words that stand in the quotes or at their places (title, headings);
`relevance` the mean relevance of the cited passages, each once; `agreement` 1, or 0.6 where the passages disagree;
`kept` the share of what was written that passed its checks. An answer without a citation has 0.
"""

from collections.abc import Sequence

from agent.grounded_answers.grounding import Ground, Verdict
from agent.grounded_answers.passages import Quote
from agent.text.terms import extract_query_terms, extract_terms

DISAGREEMENT = 0.6


def confidence(
    question: str, verdicts: Sequence[Verdict], ground: Ground, *, disagree: bool, kept: float = 1.0
) -> float:
    """The confidence in an answer, rounded to hundredths."""
    quotes = {quote for verdict in verdicts for group in verdict.quotes for quote in group}
    if not quotes:
        return 0.0
    coverage = covered(question, quotes, ground)
    cited = {quote.number for quote in quotes}
    relevance = sum(ground.chunks[number - 1].relevance_score for number in cited) / len(cited)
    agreement = DISAGREEMENT if disagree else 1.0
    return round(min(1.0, max(0.0, (0.5 * coverage + 0.5 * relevance) * agreement * kept)), 2)


def covered(question: str, quotes: set[Quote], ground: Ground) -> float:
    """The share of the question's content words that stand in the quotes or at their places."""
    wanted = set(extract_query_terms(question))
    held: set[str] = set()
    for quote in quotes:
        passage = ground.passages[quote.number - 1]
        held |= set(extract_terms(passage.chunk.content[quote.start : quote.end])) | passage.place_terms
    return len(wanted & held) / len(wanted) if wanted else 0.0
