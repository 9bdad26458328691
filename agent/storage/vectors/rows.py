"""Shared by the drivers of an `ExactIndex`'s rows: the columns of an item, and checks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.errors import ConflictError, NotFoundError, VectorSpaceError
from agent.core.surrogates import replace_surrogates
from agent.core.vector_space import VectorSpace
from agent.storage.vectors.port import Entry, Item

ITEM_COLUMNS = "id, owner, payload, scope, at"


def check_dimension(name: str, space: VectorSpace | None, dimension: int) -> None:
    """Raises if the set is unknown or has another dimension."""
    if space is None:
        raise NotFoundError(f"the set of vectors {name!r} has not been opened", agent_id="memory")
    if space.dimension != dimension:
        raise VectorSpaceError(
            f"a vector of {dimension} numbers does not fit {name!r}, made by {space}", agent_id="memory"
        )


def check_owners(owners: Mapping[str, str], entries: Sequence[Entry]) -> int:
    """Counts the entries that replace an existing one. Raises `ConflictError` if that belongs to another owner."""
    for entry in entries:
        if owners.get(entry.id, entry.owner) != entry.owner:
            raise ConflictError(f"the id {entry.id!r} belongs to another owner", agent_id="memory")
    return len({entry.id for entry in entries} & set(owners))


def encode_payload(entry: Entry) -> str:
    """The payload as stored."""
    return replace_surrogates(json.dumps(entry.payload, ensure_ascii=False))


def parse_item(row: Sequence[Any]) -> Item:
    """Converts a row of `ITEM_COLUMNS`."""
    return Item(str(row[0]), str(row[1]), json.loads(row[2]), str(row[3]), float(row[4]))
