"""Passages in a few words, for tests of the tailor."""

from agent.grounded_answers import Ground, SourceCitation, TailorInput, TailorOutput, write_by_rules
from agent.search.models import RetrievedContext

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


def ground(*chunks: RetrievedContext, question: str = "What are the rules?") -> Ground:
    """The ground of an answer from these passages; the handbook's without any."""
    return Ground(chunks or HANDBOOK, question)


def answered(question: str, *chunks: RetrievedContext, **wanted: object) -> TailorOutput:
    """The answer by rules from these passages; from the handbook without any."""
    body = {"user_query": question, "context_chunks": chunks or HANDBOOK, **wanted}
    return write_by_rules(TailorInput.model_validate(body), run_id="run_" + "0" * 32).output


def stands(one: SourceCitation, *chunks: RetrievedContext) -> bool:
    """Whether a citation's words stand, character by character, where it says."""
    chunk = next(chunk for chunk in chunks or HANDBOOK if chunk.chunk_id == one.chunk_id)
    return chunk.content[one.offset : one.offset + len(one.text_snippet)] == one.text_snippet != ""
