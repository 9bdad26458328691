"""The confidence in an answer, from 0 to 1: a computed figure for comparing answers, not a probability.

    confidence = (0.5 * coverage + 0.5 * relevance) * kept

`coverage` is the share of the question's content words in the quotes or in their titles and headings; `relevance` the
mean relevance of the cited passages; `kept` the share of the claims that passed their checks. An answer without a
citation has 0.
"""

from collections.abc import Sequence

from agent.text.terms import extract_query_terms, extract_terms
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker


def compute_confidence(
    question: str, units: Sequence[CheckedUnit], checker: EvidenceChecker, *, kept: float = 1.0
) -> float:
    """The confidence in an answer, rounded to hundredths."""
    quotes = {quote for one in units for quote in one.list_quotes()}
    if not quotes:
        return 0.0
    wanted = set(extract_query_terms(question))
    covered_terms: set[str] = set()
    for quote in quotes:
        passage = checker.passages[quote.number - 1]
        covered_terms |= set(extract_terms(passage.chunk.content[quote.start : quote.end])) | passage.place_terms
    coverage = len(wanted & covered_terms) / len(wanted) if wanted else 0.0
    cited = {quote.number for quote in quotes}
    relevance = sum(checker.chunks[number - 1].relevance_score for number in cited) / len(cited)
    return round(min(1.0, max(0.0, (0.5 * coverage + 0.5 * relevance) * kept)), 2)
