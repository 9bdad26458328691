"""What goes into the tailor: the question, the passages that were found, and how the answer is to sound and look."""

from typing import Literal

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject, SourceCitation, TailorOutput
from agent.search.models import RetrievedContext

Persona = Literal["Technical", "Executive", "General"]
PERSONAS: tuple[Persona, ...] = ("Technical", "Executive", "General")


class TailorInput(FrozenModel):
    """A question with its passages, best first. Passage `n` of the prompt is `context_chunks[n - 1]`."""

    user_query: str
    context_chunks: tuple[RetrievedContext, ...]
    persona: Persona = "General"
    formatting_instructions: str | None = None
    clarify: str = Field(default="", description="what to ask where the passages don't say")
    topics: tuple[str, ...] = Field(default=(), description="what is compared; each gets its own part of the answer")


def place_name(chunk: RetrievedContext) -> str:
    """The document and page of a chunk, as people know them."""
    name = document_name(chunk)
    pages = numbers_in(chunk.metadata, "pages")
    return f"{name}, page {pages[0]}" if pages else name


def document_name(chunk: RetrievedContext) -> str:
    """The document of a chunk, as people know it."""
    return str(chunk.metadata.get("source") or chunk.metadata.get("title") or chunk.source_id)


def place_words(chunk: RetrievedContext) -> str:
    """Title, headings and name of the place a chunk stands at: names found there need not be said again."""
    path = chunk.metadata.get("heading_path")
    headings = [str(heading) for heading in path] if isinstance(path, list) else []
    return " / ".join((str(chunk.metadata.get("title") or ""), *headings, document_name(chunk)))


def headings_of(chunk: RetrievedContext) -> tuple[str, ...]:
    """The headings above a chunk, outermost first."""
    path = chunk.metadata.get("heading_path")
    return tuple(str(heading) for heading in path) if isinstance(path, list) else ()


def numbers_in(metadata: JsonObject, key: str) -> tuple[int, ...]:
    """The whole numbers of a list in the metadata."""
    found = metadata.get(key)
    if not isinstance(found, list):
        return ()
    return tuple(number for number in found if isinstance(number, int) and not isinstance(number, bool))


__all__ = [
    "PERSONAS",
    "Persona",
    "SourceCitation",
    "TailorInput",
    "TailorOutput",
    "document_name",
    "headings_of",
    "numbers_in",
    "place_name",
    "place_words",
]
