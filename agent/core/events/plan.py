"""Events of a plan: rejected, proposed, and approved by a person. Approvals of single calls are here too."""

from typing import Literal

from pydantic import Field

from agent.core.events.envelope import EventBody
from agent.core.events.label import StepLabel
from agent.core.models import ArgumentRole, Effect, FrozenModel, JsonObject, Mode, Plan

TaintSource = Literal[
    "conversation", "history", "unknown_answers", "attachment", "room", "results", "recipe", "reply", "ground"
]
"""Untrusted text in a planner's prompt: of a stored conversation; of the messages a client sent; of those the answers
that this gateway does not know; attached to the request; results of this run; a recipe's; around the plan in the
planner's reply; names of files and texts of servers."""


class PlanRejected(EventBody):
    """A planner's reply that is not a valid plan, with every problem found."""

    type = "plan.rejected"
    problems: tuple[str, ...]
    excerpt: str = ""


class InputRequested(EventBody):
    """The planner needs something that only the user knows. The run ends with the question as its answer."""

    type = "input.requested"
    question: str


class ClientToolCall(FrozenModel):
    """A call that the client is asked to make. `call_id` is the id that its result must name."""

    call_id: str
    step_id: str
    attempt: int
    tool: str
    args: JsonObject = Field(default_factory=dict)
    feedback: str | None = None
    tainted: bool = False


class ClientToolsCalled(EventBody):
    """Steps of the plan are calls of the client's own tools. The run ends with them as its answer; the request that
    brings the results starts the run that goes on.
    """

    type = "client_tools.called"
    calls: tuple[ClientToolCall, ...]


class PlanProposed(EventBody):
    """A validated plan. `requested` and `effective` differ if the rule planner took over."""

    type = "plan.proposed"
    plan: Plan
    requested: Mode
    effective: Mode
    fallback_reason: str | None = None
    replan_reason: str | None = None
    final: bool = Field(
        default=False, description="no other plan is possible: the request fixed it, or no model found another"
    )
    tainted: bool = Field(default=False, description="made after untrusted text was read")
    tainted_by: tuple[TaintSource, ...] = Field(default=(), description="the untrusted text that was in the prompt")
    labels: tuple[StepLabel, ...] = Field(
        default=(), description="what of the steps is not the user's; a step of a tainted plan without a label is not"
    )
    asked_for: bool = Field(default=False, description="a person changed the plan or said how")
    is_round: bool = Field(default=False, description="the next round of the same plan, made with the results so far")
    adjusted: tuple[str, ...] = Field(default=(), description="what the room's required tools changed in the plan")
    decided_changes: tuple[str, ...] = Field(
        default=(), description="the tools of changes that a reply decided on, also of one that was rejected"
    )
    refused_calls: tuple[str, ...] = Field(
        default=(), description="the tools that invalid plans called; this plan calls none"
    )
    need: str = Field(default="", description="what the request needs, in a small model's word, such as `lookup`")
    approval_reason: str = Field(
        default="", description="why a person must approve the plan if it changes something, whatever the room says"
    )
    read_claims: dict[str, str] = Field(
        default_factory=dict,
        description="the tools that only read, as the foreign server says that is named and that is not trusted",
    )
    follows: str = Field(default="", description="the earlier message whose words the searches of this one use")
    explanation: str = Field(
        default="", description="what the planner said to a person's reply that left this plan as it was"
    )
    duration: float = 0.0

    def get_label(self, step_id: str) -> StepLabel | None:
        """The label of a step, or None if it has none."""
        return next((label for label in self.labels if label.step_id == step_id), None)

    def is_from_outside(self, step_id: str) -> bool:
        """Whether untrusted text may have chosen the step's tool or one of its literal arguments."""
        label = self.get_label(step_id)
        return self.tainted and (label is None or not label.is_trusted)


class ApprovalItem(FrozenModel):
    """One thing a person is asked to approve: a tool or skill with its arguments, and whether it changes something."""

    step_id: str
    tool: str
    args: JsonObject = Field(default_factory=dict)
    intent: str = ""
    effect: Effect = "read"
    changes: bool = False
    read_claim: str = Field(
        default="", description="the foreign server, not trusted, that says that the tool only reads from it"
    )
    sources: dict[str, str] = Field(
        default_factory=dict, description="where the value of each argument comes from, for arguments of single calls"
    )
    roles: dict[str, ArgumentRole] = Field(
        default_factory=dict, description="what the arguments say, for arguments of single calls"
    )
    shown: str = Field(default="", description="Markdown in which the tool shows what the call would do")
    shown_sha256: str = Field(default="", description="of the Markdown before redaction; the approval is bound to it")


class ApprovalRequested(EventBody):
    """A person must decide before the run continues: about the current plan, or about one call (`call_id`).

    The decision is bound to `digest`, the SHA-256 of the items, their plan's version and the descriptions of the tools
    they name. `tools` are the SHA-256 of each of these descriptions, by name; empty in logs of earlier versions.
    `expires_at` is UTC seconds.
    """

    type = "approval.requested"
    approval_id: str
    digest: str
    plan_version: int
    reason: str
    items: tuple[ApprovalItem, ...]
    tools: dict[str, str] = Field(default_factory=dict)
    call_id: str | None = None
    expires_at: float


class ApprovalDecided(EventBody):
    """The outcome of an approval request. `answered`: the reply was neither yes nor no, and the planner gets it.
    `expired`: nobody decided in time, or a tool has changed since. `plan_version` is the approved plan: the one in the
    request, or the person's edit of it.
    """

    type = "approval.decided"
    approval_id: str
    decision: Literal["approved", "rejected", "answered", "expired"]
    by: str
    reason: str = ""
    plan_version: int = 0
    edited: bool = False
