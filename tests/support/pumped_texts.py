"""Texts that make a regular expression slow, if any do: each part that it may repeat, many times, and then a misfit.

A pattern takes longer than its text if it tries many ways to share out one run, or one run again from each place.
"""

import random
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

Tree: TypeAlias = Any
"""A part of a parsed pattern, which has no types: pairs of an operation and its arguments."""

_parser: Any = import_module("re._parser")  # without types; the tree of a pattern has no public reader

MISFITS = ("\x00", "!")
_COMMON = ("a", "0", " ", "\n", "-", ".", "<", "(", '"', "\u00a0", "\xe9", "A", "_", "\u4e2d", "\x9d", "#", ":")
_LONG = 60
"""Repetitions from which on a part counts as long."""
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_ASSERTIONS = frozenset({"ASSERT", "ASSERT_NOT"})
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}


class PumpedText(NamedTuple):
    """A text by its parts: what it begins with, what is repeated, and what does not fit at the end."""

    head: str
    unit: str
    misfit: str

    def write(self, chars: int) -> str:
        """The text with so many characters of repetitions."""
        return self.head + (self.unit * (chars // len(self.unit) + 1))[:chars] + self.misfit


def iter_pumped_texts(pattern: re.Pattern[Any]) -> Iterator[PumpedText]:
    """Texts made of what the pattern repeats and of what stands before that."""
    maker = _Maker(random.Random(1))
    runs: dict[tuple[str, str], None] = {}
    for before, body in _iter_long_repeats(_parser.parse(pattern.pattern, pattern.flags), []):
        head, unit = maker.write(before), maker.write(body) or "a"
        runs |= dict.fromkeys([("", unit), (head, unit), ("", head + unit), ("", head or unit), ("", unit[0])])
    for head, unit in runs:
        yield from (PumpedText(head, unit, misfit) for misfit in MISFITS)


def _iter_long_repeats(tree: Tree, before: list[Tree]) -> Iterator[tuple[list[Tree], Tree]]:
    """Yields each part that may be repeated often, with what stands before it."""
    path = list(before)
    for operation, value in tree:
        name = str(operation)
        if name in _REPEATS and value[1] >= _LONG:
            yield list(path), value[2]
        for inner in _list_inner(name, value):
            yield from _iter_long_repeats(inner, path)
        path.append((operation, value))


def _list_inner(name: str, value: Tree) -> list[Tree]:
    if name in _REPEATS:
        return [value[2]]
    if name == "SUBPATTERN":
        return [value[3]]
    if name in _ASSERTIONS:
        return [value[1]]
    if name == "BRANCH":
        return list(value[1])
    return [value] if name == "ATOMIC_GROUP" else []


class _Maker:
    """Writes texts that parts of patterns match, assertions aside."""

    def __init__(self, random_source: random.Random) -> None:
        self._random = random_source

    def write(self, tree: Tree) -> str:
        return "".join(self._write_part(str(operation), value) for operation, value in tree)

    def _write_part(self, name: str, value: Tree) -> str:
        if name == "LITERAL":
            return chr(value)
        if name == "NOT_LITERAL":
            return next(char for char in _COMMON if ord(char) != value)
        if name == "IN":
            return self._random.choice(_list_members(value))
        if name == "ANY":
            return self._random.choice("a 0")
        if name in _REPEATS:
            return "".join(self.write(value[2]) for _ in range(min(value[0], _LONG)))
        if name in _ASSERTIONS:
            return ""
        inner = _list_inner(name, value)
        return self.write(self._random.choice(inner)) if inner else ""


def _list_members(items: Tree) -> list[str]:
    """Characters of a set, or out of the usual ones those that are not in it if it is negated."""
    own = [chr(value) for name, value in items if str(name) == "LITERAL"]
    own += [chr(value[0]) for name, value in items if str(name) == "RANGE"]
    is_negated = any(str(name) == "NEGATE" for name, _ in items)
    return [char for char in (*own, *_COMMON) if _is_member(char, items) != is_negated] or ["\u0101"]


def _is_member(char: str, items: Tree) -> bool:
    for operation, value in items:
        name = str(operation)
        if name == "LITERAL" and ord(char) == value:
            return True
        if name == "RANGE" and value[0] <= ord(char) <= value[1]:
            return True
        if name == "CATEGORY":
            *_, negation, kind = ("", *str(value).removeprefix("CATEGORY_").split("_"))
            if _CATEGORIES[kind](char) != (negation == "NOT"):
                return True
    return False
