"""The life of a run: created, claimed by a worker, suspended or waiting, and ended."""

from typing import ClassVar, Final, Literal

from pydantic import Field, JsonValue

from agent.core.events.envelope import EventBody
from agent.core.failures import AgentFailure
from agent.core.models import AgentRequest, Completeness, FrozenModel, JsonObject, Plan, Room, RunStatus


class GivenPlan(FrozenModel):
    """The plan that a run starts with instead of making one: a fork of an earlier run, or a trial of its plan.

    The run takes over how `from_run` guarded and understood the request, and the results of the steps in `taken`.
    `outputs` are results that a person wrote, by step. `final` forbids another plan.
    """

    plan: Plan
    from_run: str
    taken: tuple[str, ...] = ()
    outdated: tuple[str, ...] = Field(default=(), description="those in `taken` whose inputs differ by now")
    outputs: dict[str, JsonValue] = Field(default_factory=dict)
    approval_reason: str = Field(default="", description="why a person must approve the plan before it changes things")
    final: bool = False
    client_results: dict[str, str] = Field(
        default_factory=dict,
        description="results of the calls of the client's tools that `from_run` ended with, by the call's id; then the "
        "run takes over all plans, steps and approvals of that run",
    )


class RunCreated(EventBody):
    """A request was accepted. `hidden` runs, such as background prompts of a chat page, are not listed."""

    type = "run.created"
    withheld_fields: ClassVar[frozenset[str]] = frozenset({"withheld"})
    request: AgentRequest
    room: Room
    owner: str
    key: str | None = Field(default=None, description="id of the API key that is charged")
    hidden: bool = False
    one_off: bool = Field(
        default=False,
        description="the request's messages replace the conversation for this run; nothing is added to it",
    )
    tainted: bool = Field(default=False, description="whether the prompt or its conversation is untrusted")
    prompt_addresses: tuple[str, ...] | None = Field(
        default=None,
        description="of a prompt that is not the user's words, the addresses that the user wrote; null: it is",
    )
    wire_request: JsonObject = Field(
        default_factory=dict, description="what a door returns of the request in its own protocol (/v1/responses)"
    )
    given: GivenPlan | None = Field(default=None, description="the plan to carry out, if the run does not make one")
    may_skip_approval: bool = Field(
        default=True, description="whether calls that the request names with their arguments count as approved"
    )
    own_conversation: bool = Field(
        default=False, description="whether this gateway made the conversation's id, so that nobody else knows it"
    )
    scopes: tuple[str, ...] | None = Field(
        default=None, description="scopes of the caller's key or token; null for the machine's owner"
    )
    tools: tuple[str, ...] | None = Field(
        default=None, description="the list of tools of the caller's key or token; null without one"
    )
    unshared: tuple[str, ...] = Field(
        default=(),
        description="the caller's own sources that nobody else reads, where the room's policy depends on it",
    )
    approval_exempt: tuple[str, ...] = Field(
        default=(), description="the tools whose effects need nobody's approval: memory and drafts"
    )
    withheld: JsonObject = Field(
        default_factory=dict, description="what a tool of the run needs and readers of the log are not shown"
    )

    @property
    def lane(self) -> Literal["runs", "batch"]:
        """The lane of the queue: runs of the service tier `flex` wait until no other work is there for their slots."""
        return "batch" if self.request.options.get("service_tier") == "flex" else "runs"


class RunClaimed(EventBody):
    """A worker claimed the run. The new epoch is in the envelope."""

    type = "run.claimed"
    worker: str
    resumed: bool = False


class RunSuspended(EventBody):
    """The worker released an unfinished run (drain, full disk). It can be claimed at once."""

    type = "run.suspended"
    reason: str


class RunWaiting(EventBody):
    """The run waits for a person. No worker holds it meanwhile."""

    type = "run.waiting"
    approvals: tuple[str, ...]


CANCELLED_BY_CALLER: Final = "cancelled by the caller"
"""The reason of a cancellation for which nobody gave one."""


class CancelRequested(EventBody):
    """The run must stop: a person cancelled it, or its time budget is spent."""

    type = "run.cancel_requested"
    reason: str = CANCELLED_BY_CALLER
    by: Literal["caller", "budget"] = "caller"


class RunSucceeded(EventBody):
    """The run ended with an answer: complete, partial or aborted."""

    type = "run.succeeded"
    terminal = True
    completeness: Completeness = "complete"
    reason: str = ""
    awaits_input: bool = Field(
        default=False, description="the answer is a question to the user, or calls to the client"
    )

    @property
    def status(self) -> RunStatus:
        """The run's status: a run that did not do all that was asked did not succeed."""
        if self.awaits_input:
            return "awaiting_input"
        return "succeeded" if self.completeness == "complete" else "partial"


class RunFailed(EventBody):
    """The run ended without an answer. `written` is what readers had seen of one when its model failed."""

    type = "run.failed"
    terminal = True
    failure: AgentFailure
    written: str = ""


class RunCancelled(EventBody):
    """The run was stopped on request. The answer has what was known by then."""

    type = "run.cancelled"
    terminal = True
    reason: str
