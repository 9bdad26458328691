"""Passages in a few words, for tests of grounded answers."""

from agent.core.models import SourceCitation, TailorOutput
from gateway.features.documents.engine.grounded_answers import EvidenceChecker, TailorInput, quote_passages
from gateway.features.documents.engine.search.models import RetrievedContext

HOLIDAYS = (
    "## Holidays\n\nEvery employee has 28 days of paid holiday a year. "
    "Holidays are approved by the head of the department."
)
TRAVEL = (
    "## Travel\n\nTrain tickets are booked by the travel desk. Flights under 600 kilometres are not paid for. "
    "Anna Svensson has led the desk since 5 March 2024.\n\n"
    "| Item | Price |\n| --- | --- |\n| Train | 900 |\n| Bus | 1,040 |"
)


def passage(
    text: str, number: int = 1, *, source: str = "handbook.md", score: float = 0.9, **metadata: object
) -> RetrievedContext:
    """A passage `c<number>` of a document."""
    return RetrievedContext.model_validate(
        {
            "chunk_id": f"c{number}",
            "content": text,
            "source_id": f"doc-{source}",
            "relevance_score": score,
            "metadata": {"source": source, "title": "Staff handbook", **metadata},
        }
    )


HANDBOOK = (
    passage(HOLIDAYS, 1, pages=[1], heading_path=["Holidays"]),
    passage(TRAVEL, 2, pages=[2], heading_path=["Travel"], score=0.7),
)


def make_checker(*chunks: RetrievedContext, question: str = "What are the rules?") -> EvidenceChecker:
    """A checker of answers from these passages; from the handbook's without any."""
    return EvidenceChecker(chunks or HANDBOOK, question)


def quote(question: str, *chunks: RetrievedContext, **request: object) -> TailorOutput:
    """The answer without a model from these passages; from the handbook without any."""
    body = {"user_query": question, "context_chunks": chunks or HANDBOOK, **request}
    return quote_passages(TailorInput.model_validate(body), run_id="run_" + "0" * 32).output


def is_exact(one: SourceCitation, *chunks: RetrievedContext) -> bool:
    """Whether the words of a citation stand, character by character, at its place."""
    chunk = next(chunk for chunk in chunks or HANDBOOK if chunk.chunk_id == one.chunk_id)
    return chunk.content[one.offset : one.offset + len(one.text_snippet)] == one.text_snippet != ""
