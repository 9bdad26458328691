"""What a plan is made from, for the planner and for the rules alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.core.events import EarlierResult, MemoryItem
from agent.core.models import ChatMessage, Plan, PlanStep, Room
from agent.tools.catalogue import Catalogue

AnswerForm = Literal["text", "json", "empty", "none"]
"""How a planner's reply may answer: as text after a line ANSWER, within the JSON object, by an empty plan after which a
completion writes the answer, or not at all."""


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """A step that succeeded before a replan, with its result."""

    step: PlanStep
    text: str
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class PlanningRequest:
    """What a plan is made from."""

    question: str
    room: Room
    catalogue: Catalogue
    history: tuple[ChatMessage, ...] = ()
    memories: tuple[MemoryItem, ...] = ()
    completed: tuple[CompletedStep, ...] = ()
    replan_reason: str | None = None
    previous: Plan | None = None
    used_ids: frozenset[str] = frozenset()
    """Ids of every step of earlier plans, so that new ones never take a used name."""
    failed: tuple[PlanStep, ...] = ()
    """Steps of the previous plan that did not serve their purpose."""
    original: str = ""
    """The user's own words: before a translation, and with nothing taken out for a command."""
    context: Mapping[str, str] = field(default_factory=dict)
    """What the caller's system says of the request: service, priority, severity, status."""
    redo: frozenset[str] = frozenset()
    """Tools whose results did not do: they are called again, more broadly."""
    topics: frozenset[str] = frozenset()
    """The topics of the request; the room may require further tools for them."""
    happened: tuple[PlanStep, ...] = ()
    """Calls that changed something, although a judge thought little of what they returned: not to be made again."""
    tainted: bool = False
    needs_completion: bool = False
    answer_form: AnswerForm = "none"
    may_ask: bool = False
    """Whether somebody is there who can answer a question."""
    instructions: str = ""
    """What the caller's system messages say about the answer."""
    answer_language: str = ""
    """The language of the answer, where the model is to write another than English."""
    ground: str = ""
    """What the gateway knows without being asked: date, files, collections, servers (`agent.execution.ground`)."""
    earlier_results: tuple[EarlierResult, ...] = ()
    """What the run before this one had found when it asked the user."""
