"""Names of collections and of their vector sets."""

import hashlib
from typing import NamedTuple

from agent.core.errors import BadRequestError

MAX_NAME_CHARS = 200
"""Characters of a collection's name."""


class VectorSets(NamedTuple):
    """The vector set that serves searches, and the one that is being rebuilt to replace it (empty: none)."""

    serving: str
    remaking: str = ""


def make_vector_set_name(owner: str, collection: str, space: str = "") -> str:
    """The name of a collection's first vector set, or of the one rebuilt for a vector space.

    Collections of different owners have different sets.
    """
    name = "collection-" + _hash_name(f"{owner}\x00{collection}")
    return f"{name}-{_hash_name(space)}" if space else name


def _hash_name(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def validate_collection_name(name: str) -> None:
    """Raises `BadRequestError` for an unusable collection name: names appear in paths and in lines of reports."""
    if not name.strip(" .") or len(name) > MAX_NAME_CHARS or not name.isprintable() or "/" in name or "\\" in name:
        raise BadRequestError(
            f"a collection's name has 1 to {MAX_NAME_CHARS} printable characters and no slashes, "
            f"not {name[:MAX_NAME_CHARS]!r}",
            param="collection",
        )
