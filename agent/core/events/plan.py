"""A plan: refused, proposed, and put to a person, as single calls are."""

from typing import Literal

from pydantic import Field

from agent.core.events.envelope import EventBody
from agent.core.models import Effect, Frozen, JsonObject, Mode, Plan


class PlanRejected(EventBody):
    """A planner's reply that could not become a plan, with every problem found."""

    type = "plan.rejected"
    problems: tuple[str, ...]
    excerpt: str = ""


class PlanProposed(EventBody):
    """A validated plan. `requested` and `effective` differ when the rule planner had to take over."""

    type = "plan.proposed"
    plan: Plan
    requested: Mode
    effective: Mode
    fallback_reason: str | None = None
    replan_reason: str | None = None
    final: bool = Field(
        default=False, description="no other plan can be made: the request fixed it, or no model could find another"
    )
    tainted: bool = Field(default=False, description="made after text from outside had been read")
    asked_for: bool = Field(default=False, description="a person changed the plan, or said how")
    adjusted: tuple[str, ...] = Field(default=(), description="what the room's required tools changed in the plan")
    duration: float = 0.0


class ApprovalItem(Frozen):
    """One thing a person is asked to allow: a tool or skill with its arguments, and whether it changes something."""

    step_id: str
    tool: str
    args: JsonObject = Field(default_factory=dict)
    intent: str = ""
    effect: Effect = "read"
    changes: bool = False


class ApprovalRequested(EventBody):
    """A person is to decide before the run goes on: about the plan in force, or about one call (`call_id`).

    The decision is bound to `digest`: the SHA-256 of the items with their plan's version and the descriptions of the
    tools they name. `expires_at` is UTC seconds."""

    type = "approval.requested"
    approval_id: str
    digest: str
    plan_version: int
    reason: str
    items: tuple[ApprovalItem, ...]
    call_id: str | None = None
    expires_at: float


class ApprovalDecided(EventBody):
    """What became of a request for approval. `answered`: a person said something else than yes or no, which the
    planner is told; `expired`: nobody decided in time, or a tool has changed meanwhile. `plan_version` is the plan
    that was approved: the one asked about, or the person's edit of it."""

    type = "approval.decided"
    approval_id: str
    decision: Literal["approved", "rejected", "answered", "expired"]
    by: str
    reason: str = ""
    plan_version: int = 0
    edited: bool = False
