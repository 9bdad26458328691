"""`Editor`, who edits rooms, and `RoomView`, a room as it is shown to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.core.models import LOCAL_OWNER, Room

RoomOrigin = Literal["shipped", "file", "managed"]
"""`shipped` rooms are read only, `file` rooms are edited by people, `managed` rooms by programs too."""
Right = Literal["refused", "ask", "allowed"]
"""Whether an editor may add what is a privilege: no; once a person has allowed exactly this; or without asking."""


def allow_asked(right: Right) -> Right:
    """The right of an editor once a person has allowed what was asked."""
    return "allowed" if right == "ask" else right


@dataclass(frozen=True, slots=True)
class Editor:
    """Who edits. `owner` is whose rooms are seen and edited; None is the operator, who sees and edits all.

    `may_connect`: MCP servers may be added and removed. Tools may do so only where a person is asked about it.
    `programs`: MCP servers may be programs. Starting one is a privilege of the machine's owner. `pairings`: a stored
    credential may be sent to an address for the first time. `from_outside`: what is set may come from external text,
    which the room remembers. Only editors that may connect servers take that back.
    """

    owner: str | None
    name: str
    may_connect: bool = True
    programs: Right = "refused"
    from_outside: bool = False
    pairings: Right = "refused"

    @property
    def new_owner(self) -> str:
        """The owner of rooms that are created."""
        return LOCAL_OWNER if self.owner is None else self.owner

    def label(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields to set, with the mark of texts from outside if they may be such."""
        return {**fields, "from_outside": True} if self.from_outside else dict(fields)


@dataclass(frozen=True, slots=True)
class RoomView:
    """A room as it is listed. `room` is what is served now; None if its text was never usable. `error` says why the
    text is not served. `text` is its YAML, `version` changes with every byte of it; shipped rooms have none.
    """

    room_id: str
    origin: RoomOrigin
    room: Room | None
    version: str = ""
    text: str = ""
    error: str = ""

    @property
    def title(self) -> str:
        """The room's name, or else its id."""
        return (self.room.name if self.room is not None else "") or self.room_id

    def is_visible_to(self, editor: Editor) -> bool:
        """Whether the editor sees the room. One whose owner is unknown is visible to the operator's callers only."""
        if editor.owner is None:
            return True
        return editor.owner == LOCAL_OWNER if self.room is None else self.room.is_visible_to(editor.owner)
