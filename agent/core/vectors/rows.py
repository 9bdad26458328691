"""What the drivers of an `ExactIndex`'s rows share: the columns of an item, and what is refused."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.codec import whole
from agent.core.errors import ConflictError, NotFoundError, VectorSpaceError
from agent.core.vectors.port import Entry, Item, Space

ITEM = "id, owner, payload, scope, at"


def check_dimension(name: str, space: Space | None, dimension: int) -> None:
    """Refuse what does not belong into the set."""
    if space is None:
        raise NotFoundError(f"the set of vectors {name!r} has not been opened", agent_id="memory")
    if space.dimension != dimension:
        raise VectorSpaceError(
            f"a vector of {dimension} numbers does not belong to {name!r}, made by {space}", agent_id="memory"
        )


def check_owners(owners: Mapping[str, str], entries: Sequence[Entry]) -> int:
    """How many entries replace one; `ConflictError` where the one is another owner's."""
    for entry in entries:
        if owners.get(entry.id, entry.owner) != entry.owner:
            raise ConflictError(f"the id {entry.id!r} is taken", agent_id="memory")
    return len({entry.id for entry in entries} & set(owners))


def as_text(entry: Entry) -> str:
    """The payload as stored."""
    return whole(json.dumps(entry.payload, ensure_ascii=False))


def as_item(row: Sequence[Any]) -> Item:
    """A row of `ITEM`."""
    return Item(str(row[0]), str(row[1]), json.loads(row[2]), str(row[3]), float(row[4]))
