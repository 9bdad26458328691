"""JSON trees: every text in one."""

from collections.abc import Collection, Iterator, Mapping


def texts_of(node: object, but: Collection[str] = ()) -> Iterator[str]:
    """Every text in a tree, in its order, the names of its fields too unless they are among `but`. Other values are
    passed over. Trees are no deeper than the doors let them be: this calls itself."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for part in node:
            yield from texts_of(part, but)
    elif isinstance(node, Mapping):
        for name, part in node.items():
            if name not in but:
                yield str(name)
            yield from texts_of(part, but)
