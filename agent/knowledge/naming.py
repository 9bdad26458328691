"""What the sets of vectors of collections are called."""

import hashlib


def vector_set(owner: str, collection: str) -> str:
    """The name of a collection's set of vectors. Another owner's collection of the same name has another set."""
    digest = hashlib.blake2b(f"{owner}\x00{collection}".encode("utf-8", "replace"), digest_size=12)
    return f"collection-{digest.hexdigest()}"
