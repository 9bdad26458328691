"""The input of planning, the same for the planner model and for the rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import takewhile
from typing import Final, Literal, NamedTuple

from agent.core.events import EarlierResult, MemoryItem
from agent.core.models import ChatMessage, JsonObject, Plan, PlanStep, Room
from agent.tools.catalogue import Catalogue

MAX_FAILURES: Final = 5
"""Different calls that fail one after the other until a run is answered."""
AnswerForm = Literal["text", "empty", "none"]
"""How a reply may answer: as text after a line ANSWER, by an empty plan followed by a completion, or not at all."""
NOTHING: Final = "nothing"
"""What a request needs that is answered by writing alone, in the word of a model that is asked."""
ACTION: Final = "action"
"""What a request needs that wants something to be changed, sent or saved."""


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """A step that succeeded before a replan, with its result."""

    step: PlanStep
    text: str
    tainted: bool = False


class NextCall(NamedTuple):
    """A call to make in the next round."""

    tool: str
    args: JsonObject
    part: str = ""
    """The open part that it is for."""


@dataclass(frozen=True, slots=True)
class RoundCall:
    """One call of an earlier round: the round's number from 0, the tool, its inputs, and its result or error."""

    number: int
    tool: str
    args: JsonObject
    text: str
    failed: bool = False
    missing: tuple[str, ...] = ()
    """The steps that the planner named when it planned the round, those for later too."""
    part: str = ""
    """The one of them that the call is for."""
    may_have_happened: bool = False
    """Whether it failed without a result, and may have changed something."""
    list_step: str = ""
    """The id of the step that made it, if that made several calls."""
    selected: str = ""
    """The entries of its result that the request asks about; "" if it is not a list, or asks about all of them."""


@dataclass(frozen=True, slots=True)
class EarlierPlans:
    """What the earlier plans of a run leave to the next one."""

    last: Plan | None = None
    replan_reason: str | None = None
    """Why the last one is replaced; None before a first plan and before the next round."""
    completed: Mapping[str, CompletedStep] = field(default_factory=dict)
    """The steps of the last plan that succeeded, by their ids."""
    failed: tuple[PlanStep, ...] = ()
    """Steps of the last plan that did not succeed."""
    happened: tuple[PlanStep, ...] = ()
    """Calls that changed something but whose results were rejected. They are never repeated."""
    used_ids: frozenset[str] = frozenset()
    """Ids of all their steps. A new step never reuses one."""
    redo: frozenset[str] = frozenset()
    """Tools with insufficient results. They are called again with broader arguments."""

    @property
    def next_version(self) -> int:
        """The version of the next plan; the first one has 0."""
        return self.last.version + 1 if self.last is not None else 0


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """How the planner may answer, and what every answer to the request has to follow."""

    form: AnswerForm = "none"
    needs_completion: bool = False
    """Whether a completion writes the answer even from a single result, as a persona or a schema requires."""
    instructions: str = ""
    """Instructions for the answer from the caller's system messages."""
    language: str = ""
    """The language in which the model writes the answer; empty for English."""


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """What the earlier rounds of a run leave open, and what the next one may do."""

    open_parts: tuple[str, ...] = ()
    """What the planner said was missing before, and what no call that succeeded was made for."""
    untried_parts: frozenset[str] = frozenset()
    """Those of them for which a call failed, once, or has to be made with what is known now."""
    has_changed: bool = False
    """Whether the last round changed something, and none of its calls failed."""
    has_read_outside: bool = False
    """Whether a result so far holds text from outside, which may have chosen the next calls."""
    may_change: frozenset[str] | None = None
    """Tools that the request wants to change something with, as earlier rounds found; None if they did not ask."""
    need: str = ""
    """What the model said that the request needs, in one word; "" if it was not asked."""
    doubt: str = ""
    """What the last answer held without evidence; a tool is called for it before the next one."""
    asks_about_changes: bool = False
    """Whether a person is asked about each plan that changes something."""
    may_call: bool = True
    """Whether the planner may plan another round."""


NO_EARLIER_PLANS: Final = EarlierPlans()
NO_ROUNDS: Final = RoundProgress()


@dataclass(frozen=True, slots=True)
class PlanningRequest:
    """The input of planning."""

    question: str
    room: Room
    catalogue: Catalogue
    history: tuple[ChatMessage, ...] = ()
    memories: tuple[MemoryItem, ...] = ()
    original: str = ""
    """The user's words, before translation and with the command word."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Facts from the caller's system about the request: service, priority, severity, status."""
    topics: frozenset[str] = frozenset()
    """Topics of the request, for which the room may require further tools."""
    ground: str = ""
    """Facts in every prompt: date, files, collections, servers (`agent.execution.ground`)."""
    named_days: tuple[str, ...] = ()
    """The days that the request names in words such as "tomorrow", as dates."""
    zone: tzinfo | None = None
    """Where times of day are meant."""
    replies: tuple[str, ...] = ()
    """What a person answered to the questions of this run."""
    earlier_results: tuple[EarlierResult, ...] = ()
    """Results of the previous run, if it ended with a question to the user."""
    answer: AnswerRules = AnswerRules()
    may_ask: bool = False
    """Whether a person can answer a question."""
    checks_answers: bool = False
    """Whether an answer that was chosen before any call is questioned."""
    earlier_plans: EarlierPlans = NO_EARLIER_PLANS
    find_problems: Callable[[Plan], list[str]] | None = None
    """Finds what else is wrong with a plan of new steps; None if there is nothing to check."""
    decides_in_rounds: bool = False
    """Whether the planner decides on one batch of calls at a time and sees the results before it goes on. The model's
    profile may change after this request was built for it."""
    rounds: tuple[RoundCall, ...] = ()
    """The calls of earlier rounds with their results, oldest first."""
    progress: RoundProgress = NO_ROUNDS

    @property
    def is_first_decision(self) -> bool:
        """Whether nothing was decided yet for a request that may need no tool, and the model is one to be
        questioned."""
        is_new = not (self.rounds or self.progress.open_parts) and self.earlier_plans.replan_reason is None
        return is_new and self.checks_answers and not self.topics and bool(self.catalogue.list_names())

    @property
    def last_calls(self) -> tuple[RoundCall, ...]:
        """The calls of the last round."""
        last = max((call.number for call in self.rounds), default=0)
        return tuple(call for call in self.rounds if call.number == last)

    @property
    def goes_in_circles(self) -> bool:
        """Whether the newest calls of the run all failed, so that it is answered: a small model only goes on."""
        failures = takewhile(lambda call: call.failed, reversed(self.rounds))
        return len({call.list_step or (call.tool, str(call.args)) for call in failures}) >= MAX_FAILURES

    @property
    def made_calls(self) -> list[tuple[str, JsonObject]]:
        """The tools and inputs of the calls of all rounds, as a list of its own."""
        return [(call.tool, call.args) for call in self.rounds]

    @property
    def last_turn(self) -> tuple[str, ...]:
        """The texts of the newest two messages before the request, without instructions and results."""
        spoken = [message.content for message in self.history if message.role in ("user", "assistant")]
        return tuple(spoken[-2:])
