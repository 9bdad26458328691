"""The life of a run: accepted, held by a worker, let go of or waiting, and over."""

from typing import Literal

from pydantic import Field

from agent.core.errors import AgentFailure
from agent.core.events.envelope import EventBody
from agent.core.models import AgentRequest, Completeness, Room


class RunCreated(EventBody):
    """A door's request was accepted. `hidden` runs (background prompts of a chat page) are not listed."""

    type = "run.created"
    request: AgentRequest
    room: Room
    owner: str
    key: str | None = Field(default=None, description="id of the API key that pays for it")
    hidden: bool = False
    tainted: bool = Field(default=False, description="whether the prompt itself came from outside")


class RunClaimed(EventBody):
    """A worker took the run; its epoch stands in the envelope."""

    type = "run.claimed"
    worker: str
    resumed: bool = False


class RunSuspended(EventBody):
    """The owner let go of an unfinished run (drain, full disk); it can be claimed at once."""

    type = "run.suspended"
    reason: str


class RunWaiting(EventBody):
    """The run waits for a person, and nobody holds it meanwhile."""

    type = "run.waiting"
    approvals: tuple[str, ...]


class CancelRequested(EventBody):
    """The run is to stop: a person's signal reached its owner, or its wall time is spent."""

    type = "run.cancel_requested"
    reason: str = "cancelled by the caller"
    by: Literal["caller", "budget"] = "caller"


class RunSucceeded(EventBody):
    """The run ended with an answer, complete, partial or aborted."""

    type = "run.succeeded"
    terminal = True
    completeness: Completeness = "complete"
    reason: str = ""


class RunFailed(EventBody):
    """The run ended without an answer."""

    type = "run.failed"
    terminal = True
    failure: AgentFailure


class RunCancelled(EventBody):
    """The run was stopped on request; what was known stands in the answer."""

    type = "run.cancelled"
    terminal = True
    reason: str
