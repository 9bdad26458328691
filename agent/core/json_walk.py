"""Walks the texts and the values of a JSON tree. Recursive: the doors limit the depth of trees."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice


def iter_texts(node: object, but: Collection[str] = ()) -> Iterator[str]:
    """Yields every text in a tree in order, including field names that are not in `but`. Skips other values."""
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


def iter_leaves(node: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yields every value that is neither a list nor an object, with its path."""
    if isinstance(node, Mapping):
        for name, part in node.items():
            yield from iter_leaves(part, (*path, str(name)))
    elif isinstance(node, list):
        for at, part in enumerate(node):
            yield from iter_leaves(part, (*path, at))
    else:
        yield path, node


def iter_nodes(node: object) -> Iterator[object]:
    """Yields the tree and every value in it, lists and objects too."""
    yield node
    parts = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    for part in parts:
        yield from iter_nodes(part)


def has_more_nodes(node: object, most: int) -> bool:
    """Whether a tree has more than `most` values, itself included. Looks at no more than that."""
    return sum(1 for _ in islice(iter_nodes(node), most + 1)) > most
