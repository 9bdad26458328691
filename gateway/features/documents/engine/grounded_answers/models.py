"""The input of a grounded answer: a question, its passages, and the form of the answer."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject
from gateway.features.documents.engine.search.models import RetrievedContext

Persona = Literal["Technical", "Executive", "General"]
PERSONAS: tuple[Persona, ...] = ("Technical", "Executive", "General")


class TailorInput(FrozenModel):
    """A question with its passages, best first. Passage `n` of the prompt is `context_chunks[n - 1]`."""

    user_query: str
    context_chunks: tuple[RetrievedContext, ...]
    persona: Persona = "General"
    formatting_instructions: str | None = None
    clarify: str = Field(default="", description="the question to the user if nothing was found")
    topics: tuple[str, ...] = Field(default=(), description="the sides of a comparison; each gets its own section")
    is_closest: bool = Field(
        default=False, description="the passages are about the subject, but none has the asked word"
    )
    follows: str = Field(default="", description="the earlier message whose words were searched with this one's")


@dataclass(frozen=True, slots=True)
class Quote:
    """The words `content[start:end]` of passage `number`."""

    number: int
    start: int
    end: int


def get_document_name(chunk: RetrievedContext) -> str:
    """The name of a chunk's document for people."""
    return str(chunk.metadata.get("source") or chunk.metadata.get("title") or chunk.source_id)


def format_place(chunk: RetrievedContext) -> str:
    """The document and the page of a chunk: `manual.pdf, page 3`."""
    name = get_document_name(chunk)
    pages = list_numbers(chunk.metadata, "pages")
    return f"{name}, page {pages[0]}" if pages else name


def list_headings(chunk: RetrievedContext) -> tuple[str, ...]:
    """The headings above a chunk, outermost first."""
    path = chunk.metadata.get("heading_path")
    return tuple(str(heading) for heading in path) if isinstance(path, list) else ()


def describe_surroundings(chunk: RetrievedContext) -> str:
    """Title, headings, document name and pages of a chunk, which a claim may repeat without citing them."""
    pages = [f"page {page}" for page in list_numbers(chunk.metadata, "pages")]
    return " / ".join((str(chunk.metadata.get("title") or ""), *list_headings(chunk), get_document_name(chunk), *pages))


def list_numbers(metadata: JsonObject, key: str) -> tuple[int, ...]:
    """The integers of a list in the metadata."""
    values = metadata.get(key)
    if not isinstance(values, list):
        return ()
    return tuple(number for number in values if isinstance(number, int) and not isinstance(number, bool))
