"""Spans of a text, and what is put in their place."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic import JsonValue

_Place = tuple[dict[str, JsonValue] | list[JsonValue], str | int]


class Span(NamedTuple):
    """`text[start:end]`, and why."""

    start: int
    end: int
    why: str
    kind: str = ""
    """Where it is narrower than what was looked for."""


def replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """`text` with each `[start, end)` replaced. Where spans overlap, the one that starts first, the longer one first,
    is replaced, and the others' rest is left out: nothing of any of them stays."""
    parts: list[str] = []
    at = 0
    for start, end, instead in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            parts += [text[at:start], instead]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def mapped(value: JsonValue, change: Callable[[str, str], str]) -> JsonValue:
    """A JSON tree with every text in it changed, names too. `change` gets the text and the name it stands under (empty
    for names themselves). Deep trees are no danger: this does not call itself."""
    root: list[JsonValue] = [value]
    waiting: list[tuple[_Place, str]] = [((root, 0), "")]
    while waiting:
        (container, key), under = waiting.pop()
        held = container[key]  # type: ignore[index]
        made: JsonValue
        if isinstance(held, str):
            made = change(held, under)
        elif isinstance(held, dict):
            made = {change(name, ""): part for name, part in held.items()}
            waiting += [((made, changed), name) for changed, name in zip(made, held, strict=False)]
        elif isinstance(held, list):
            made = list(held)
            waiting += [((made, number), under) for number in range(len(made))]
        else:
            continue
        container[key] = made  # type: ignore[index]
    return root[0]
