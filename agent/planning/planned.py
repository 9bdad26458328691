"""`Planned`: a plan as its source made it, before it is recorded."""

from dataclasses import dataclass, field

from agent.core.errors import ModelUnreachableError
from agent.core.events import EventBody, EventDraft, TaintSource
from agent.core.models import Mode, Plan
from agent.llm.port import ModelReply


@dataclass(frozen=True, slots=True)
class Rejection:
    """An unusable reply and its problems."""

    problems: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and its origin. If the planner answers, `answer` holds the text and the plan is one completion. If it asks
    the user, `question` is set."""

    plan: Plan
    requested: Mode
    effective: Mode
    fallback_reason: str | None = None
    rejected: tuple[Rejection, ...] = field(default=())
    adjusted: tuple[str, ...] = field(default=())
    answer: ModelReply | None = None
    question: str = ""
    is_embedded: bool = False
    """Whether the plan stands inside other text of the reply: it may be a quotation."""
    ground: str = ""
    """The ground in the model's prompt."""
    approval_reason: str = ""
    """Why a person must approve the plan before it changes something."""
    tainted_by: tuple[TaintSource, ...] = ()
    """The untrusted text that the plan's source knows it to come from."""
    recorded: tuple[EventBody | EventDraft, ...] = ()
    """The events that propose a plan which was made before, with what is done of it. They are recorded as they are."""
    decided_changes: tuple[str, ...] = ()
    """The tools with which the request asks to change something: those that a reply called for it, usable or not, and
    those that the model named when it was asked."""
    refused_calls: tuple[str, ...] = ()
    """The tools that the model called in plans that were refused, if this plan by rules calls nothing."""
    need: str = ""
    """What the model said that the request needs, in one word."""
    follows: str = ""
    """The earlier message whose words the searches of this one use."""
    repeats_model: bool = False
    """Whether a plan by rules repeats calls of an earlier reply of the model: they may hold all that it has read."""
    unreachable: ModelUnreachableError | None = None
    """The error of an unreachable model. A completion would not reach the model either."""


def build_ruled(plan: Plan) -> Planned:
    """A plan by rules that is not a fallback, because no planner was requested."""
    return Planned(plan=plan, requested="rules", effective="rules")
