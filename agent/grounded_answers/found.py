"""What `search_knowledge` returned, as passages for the tailor."""

from collections.abc import Iterable
from urllib.parse import quote

from pydantic import JsonValue, ValidationError

from agent.core.models import JsonObject
from agent.search.models import RetrievedContext

RESULTS = "results"
"""Where the passages stand in the tool's result."""


def is_found(value: JsonValue) -> bool:
    """Whether a tool's result is a list of passages, be it empty."""
    results = value.get(RESULTS) if isinstance(value, dict) else None
    return isinstance(results, list) and all(isinstance(one, dict) and "chunk_id" in one for one in results)


def passages_of(values: Iterable[JsonValue]) -> tuple[RetrievedContext, ...]:
    """The passages of several searches, each chunk once, in the order they were found."""
    found: dict[str, RetrievedContext] = {}
    for value in values:
        results = value.get(RESULTS) if isinstance(value, dict) else None
        for one in results if isinstance(results, list) else ():
            passage = _passage(one) if isinstance(one, dict) else None
            if passage is not None:
                found.setdefault(passage.chunk_id, passage)
    return tuple(found.values())


def clarifying(values: Iterable[JsonValue]) -> str:
    """What to ask the user, where every search found nothing and one of them has a question."""
    asked = ""
    for value in values:
        if not isinstance(value, dict) or value.get(RESULTS):
            return ""
        told = value.get("clarify")
        asked = asked or (told if isinstance(told, str) else "")
    return asked


def linked(passages: Iterable[RetrievedContext], base: str | None) -> tuple[RetrievedContext, ...]:
    """The passages, those of local and uploaded files with the address at which this gateway gives their bytes.

    `base` is the gateway's address for browsers; without one they have no address."""
    return tuple(
        passage.model_copy(update={"source_url": f"{base}/v1/documents/{quote(passage.source_id, safe='')}/file"})
        if base and passage.source_url is None and passage.metadata.get("source_type") == "local"
        else passage
        for passage in passages
    )


def _passage(one: JsonObject) -> RetrievedContext | None:
    """A passage; None for what is none."""
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
