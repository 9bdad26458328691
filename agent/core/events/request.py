"""What is made of a request before it is planned: guarded, understood, and joined by what is remembered."""

from typing import Literal

from pydantic import Field

from agent.core.events.envelope import EventBody
from agent.core.models import ChatMessage, Frozen, RouteKind


class InputGuarded(EventBody):
    """The guard stage: the prompt as the rest of the run will see it."""

    type = "input.guarded"
    prompt: str
    removed_characters: int = 0
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] = Field(default_factory=dict, description="what stands for a value taken out of it")


class RequestUnderstood(EventBody):
    """The understand stage: how this request will be carried out, and why.

    `language` is the request's; `question` is in English where it was `translated`, and then the answer is to be
    translated back. `fallback_reason` says why a request in another language was not translated."""

    type = "request.understood"
    route: RouteKind
    reason: str
    question: str
    language: str = "en"
    skill: str | None = None
    translated: bool = False
    translate_answer: bool = False
    fallback_reason: str | None = None
    duration: float = 0.0


class MemoryItem(Frozen):
    """A remembered text that may matter to this request; `score` is the cosine it was found by."""

    id: str = ""
    text: str
    source: str
    score: float | None = None
    tainted: bool = False


class MemoryRetrieved(EventBody):
    """The retrieve stage: earlier turns of the conversation, and remembered items, as models may see them.

    `embedder` made the vectors of the search, which was to be `requested`; empty where nothing was searched."""

    type = "memory.retrieved"
    history: tuple[ChatMessage, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    source: str = "none"
    requested: Literal["", "endpoint", "local"] = ""
    embedder: str = ""
    fallback_reason: str | None = None
    placeholders: dict[str, str] = Field(default_factory=dict, description="what stands for a value taken out of them")
    tainted: bool = Field(default=False, description="whether an earlier answer rests on something from outside")
