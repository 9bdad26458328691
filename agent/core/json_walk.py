"""Walks the texts of a JSON tree."""

from collections.abc import Collection, Iterator, Mapping


def iter_texts(node: object, but: Collection[str] = ()) -> Iterator[str]:
    """Yields every text in a tree in order, including field names that are not in `but`. Skips other values. Recursive:
    the doors limit the depth of trees.
    """
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for part in node:
            yield from iter_texts(part, but)
    elif isinstance(node, Mapping):
        for name, part in node.items():
            if name not in but:
                yield str(name)
            yield from iter_texts(part, but)
