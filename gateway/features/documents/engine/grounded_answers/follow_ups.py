"""Follow-up questions that the passages could answer: the headings of those that the answer does not cite."""

import re
from collections.abc import Sequence

from agent.text.terms import extract_terms, fold
from gateway.features.documents.engine.grounded_answers.evidence_checker import EvidenceChecker
from gateway.features.documents.engine.grounded_answers.models import Quote, list_headings

MAX_FOLLOW_UPS = 3
HEADING_CHARS = 80
_NUMBERING = re.compile(r"^[\s#*_]*(?:\d+(?:\.\d+)*[.)]?\s+)?|[\s#*_:]+$")


def suggest_follow_ups(question: str, quotes: Sequence[Quote], checker: EvidenceChecker) -> tuple[str, ...]:
    """Selects at most `MAX_FOLLOW_UPS` questions, those of the more relevant passages first."""
    used = {quote.number for quote in quotes}
    question_terms = set(extract_terms(question))
    for number in used:
        question_terms |= {
            term for heading in list_headings(checker.chunks[number - 1])[-1:] for term in extract_terms(heading)
        }
    questions: dict[str, str] = {}
    for passage in checker.passages:
        heading = _NUMBERING.sub("", next(reversed(list_headings(passage.chunk)), ""))
        is_new = passage.number not in used and not set(extract_terms(heading)) <= question_terms
        if is_new and 2 < len(heading) <= HEADING_CHARS:
            questions.setdefault(fold(heading), f"What do the documents say about {heading}?")
    return tuple(questions.values())[:MAX_FOLLOW_UPS]
