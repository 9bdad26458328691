"""Reads the results of `search_knowledge` as passages."""

from collections.abc import Iterable
from itertools import zip_longest
from urllib.parse import quote

from pydantic import JsonValue, ValidationError

from agent.core.models import JsonObject
from gateway.features.documents.engine.search.models import RetrievedContext

RESULTS = "results"
"""The field of the tool's result that holds the passages."""


def has_passages(value: JsonValue) -> bool:
    """Whether a tool's result is a list of passages, which may be empty."""
    results = value.get(RESULTS) if isinstance(value, dict) else None
    return isinstance(results, list) and all(isinstance(one, dict) and "chunk_id" in one for one in results)


def read_passages(values: Iterable[JsonValue]) -> tuple[RetrievedContext, ...]:
    """The passages of several searches, the best of each first, each chunk once with its highest relevance."""
    searches: list[list[JsonValue]] = []
    for value in values:
        results = value.get(RESULTS) if isinstance(value, dict) else None
        searches.append(results if isinstance(results, list) else [])
    passages: dict[str, RetrievedContext] = {}
    for rank in zip_longest(*searches):
        for one in rank:
            passage = _parse_passage(one) if isinstance(one, dict) else None
            if passage is not None:
                earlier = passages.setdefault(passage.chunk_id, passage)
                if passage.relevance_score > earlier.relevance_score:
                    passages[passage.chunk_id] = passage
    return tuple(passages.values())


def read_clarifying_question(values: Iterable[JsonValue]) -> str:
    """The question to the user if every search found nothing and one has a question."""
    question = ""
    for value in values:
        if not isinstance(value, dict) or value.get(RESULTS):
            return ""
        clarify = value.get("clarify")
        question = question or (clarify if isinstance(clarify, str) else "")
    return question


def add_file_links(passages: Iterable[RetrievedContext], base: str | None) -> tuple[RetrievedContext, ...]:
    """The passages; those of local and uploaded files with the address of the file at this gateway.

    `base` is the gateway's address for browsers; without one they get no address."""
    return tuple(
        passage.model_copy(update={"source_url": f"{base}/v1/documents/{quote(passage.source_id, safe='')}/file"})
        if base and passage.source_url is None and passage.metadata.get("source_type") == "local"
        else passage
        for passage in passages
    )


def _parse_passage(one: JsonObject) -> RetrievedContext | None:
    """A passage, or None if the value is malformed."""
    metadata = one.get("metadata")
    page = one.get("page")
    place: JsonObject = dict(metadata) if isinstance(metadata, dict) else {}
    place |= {"collection": one.get("collection"), "source": one.get("source")}
    if "pages" not in place and isinstance(page, int) and page > 0:
        place["pages"] = [page]
    try:
        return RetrievedContext.model_validate(
            {
                "chunk_id": one.get("chunk_id"),
                "content": one.get("text"),
                "source_id": one.get("source_id"),
                "source_url": one.get("source_url"),
                "relevance_score": one.get("relevance_score"),
                "metadata": place,
            }
        )
    except ValidationError:
        return None
