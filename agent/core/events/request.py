"""Events before planning: a request is guarded, understood and joined with memories."""

from typing import Literal

from pydantic import Field, JsonValue

from agent.core.events.envelope import EventBody
from agent.core.events.label import TextLabel
from agent.core.models import ChatMessage, FrozenModel, JsonObject, RouteKind, TaskPlan, UserIntent


class InputGuarded(EventBody):
    """The guard stage: the prompt as the rest of the run sees it."""

    type = "input.guarded"
    prompt: str
    removed_characters: int = 0
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] = Field(default_factory=dict, description="placeholders for values removed from it")


class RequestUnderstood(EventBody):
    """The understand stage: how this request will be carried out, and why.

    `language` is the request's language. If `translated`, `question` is in English and the answer is translated back.
    `fallback_reason` says why a request in another language was not translated.
    """

    type = "request.understood"
    route: RouteKind
    reason: str
    question: str
    language: str = "en"
    skill: str | None = None
    translated: bool = False
    translate_answer: bool = False
    fallback_reason: str | None = None
    profile: JsonObject | None = None
    """How the engine works with the model: what it decides in, and where that was chosen."""
    duration: float = 0.0


class IntentClassified(EventBody):
    """What the router of a room read in a request. Without `task_plan` nothing was dispatched: `reason` says why, and
    the user is asked, or the planner takes over.
    """

    type = "intent.classified"
    intents: tuple[UserIntent, ...] = ()
    task_plan: TaskPlan | None = None
    question: str = ""
    reason: str = ""
    changing: tuple[int, ...] = Field(default=(), description="the intents that may change something, counted from 0")
    step_ids: tuple[str, ...] = Field(default=(), description="the step that was made for each intent")
    duration: float = 0.0


class MemoryItem(FrozenModel):
    """A remembered text that may be relevant to this request. `score` is its cosine similarity."""

    id: str = ""
    text: str
    source: str
    score: float | None = None
    tainted: bool = False


class EarlierResult(FrozenModel):
    """The result of a step of the run before, which ended with a question to the user."""

    tool: str
    intent: str = ""
    text: str
    tainted: bool = False


class ConfirmedValue(FrozenModel):
    """A value that a person confirmed for an argument of a tool, by approving a call or a plan that showed it."""

    tool: str
    argument: str
    value: JsonValue = None


class MemoryRetrieved(EventBody):
    """The retrieve stage: earlier turns of the conversation and remembered items, as models may see them.

    `embedder` made the vectors of the search and `requested` is the configured one; both are empty without a search.
    """

    type = "memory.retrieved"
    history: tuple[ChatMessage, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    source: str = "none"
    requested: Literal["", "endpoint", "local"] = ""
    embedder: str = ""
    fallback_reason: str | None = None
    placeholders: dict[str, str] = Field(default_factory=dict, description="placeholders for values removed from them")
    earlier_results: tuple[EarlierResult, ...] = Field(
        default=(), description="what the run had found whose question this request answers"
    )
    tainted: bool = Field(default=False, description="whether an earlier answer relies on untrusted content")
    labels: tuple[TextLabel, ...] = Field(
        default=(), description="of the messages in `history` that the client sent, in their order"
    )
    prompt_label: TextLabel | None = Field(default=None, description="of the prompt, if text is attached to it")
    read_servers: tuple[str, ...] = Field(
        default=(), description="the servers whose reads a person allowed before in this conversation, likewise"
    )
    confirmed: tuple[ConfirmedValue, ...] = Field(
        default=(), description="what a person confirmed before in this conversation, if its id names its owner"
    )
