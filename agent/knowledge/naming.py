"""What collections and their sets of vectors may be called, and which of the sets are in use."""

import hashlib
from typing import NamedTuple

from agent.core.errors import BadRequestError

NAME_CHARS = 200
"""Characters of a collection's name."""


class VectorSets(NamedTuple):
    """The set that searches ask, and the one that is being made to take its place; empty where none is."""

    serving: str
    remaking: str = ""


def vector_set(owner: str, collection: str, space: str = "") -> str:
    """The name of a collection's first set of vectors, or of the one that was made anew for this space. Another
    owner's collection of the same name has another set."""
    name = "collection-" + _digest(f"{owner}\x00{collection}")
    return f"{name}-{_digest(space)}" if space else name


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def refuse_unusable(name: str) -> None:
    """`BadRequestError` for what cannot be a collection's name: it stands in paths, and in lines of reports."""
    if not name.strip(" .") or len(name) > NAME_CHARS or not name.isprintable() or "/" in name or "\\" in name:
        raise BadRequestError(
            f"a collection's name has 1 to {NAME_CHARS} printable characters and no slashes, not {name[:NAME_CHARS]!r}",
            param="collection",
        )
