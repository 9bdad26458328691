"""`RunOrigin`: where a run comes from, besides its request. It is recorded in `run.created`."""

from dataclasses import dataclass, field
from typing import Final

from agent.core.events import GivenPlan
from agent.core.models import JsonObject


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Where a run comes from: what its door, its conversation or an earlier run says of it."""

    hidden: bool = False
    """Whether no list shows the run."""
    one_off: bool = False
    """Whether the run adds nothing to its conversation."""
    own_conversation: bool = False
    """Whether this gateway made the id of the conversation."""
    tainted: bool = False
    """Whether the conversation relies on untrusted content."""
    prompt_addresses: tuple[str, ...] | None = None
    """The user's addresses in a prompt that is not the user's words; None if it is."""
    wire_request: JsonObject = field(default_factory=dict)
    """The door's own data, stored with the run and returned in its own protocol."""
    given: GivenPlan | None = None
    """The plan to carry out; None: the run makes one."""
    withheld: JsonObject = field(default_factory=dict)
    """Data for a tool of the run, shown to no reader of the log. It is stored as it is, so the caller keeps secrets of
    the gateway out of it."""


PLAIN: Final = RunOrigin()
"""The origin of a run of a conversation's next message."""
