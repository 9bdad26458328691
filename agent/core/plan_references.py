"""Finds, resolves and renames references to earlier results in a step's arguments.

Plans use `{"$from": "s1", "path": "output.items[0]"}`. Models also write `$s1.output.items[0]` or `${s1}` into text;
`$5` is an amount of money. A reference that is the whole argument keeps its type. Within a text it becomes text; a
whole result becomes its display text. In `{"$literal": "..."}` nothing is a reference.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent.core.errors import ReferenceMissingError
from agent.core.events import StepOutput
from agent.core.json_texts import read_json_text, write_text
from agent.core.models import JsonObject

_PATH = r"(?:\.[A-Za-z_][\w-]*|\[\d+\])*"
_ID = r"[A-Za-z][A-Za-z0-9_-]*"
_REFERENCE = re.compile(rf"\$\{{(?P<braced>{_ID})(?P<bpath>{_PATH})\}}|\$(?P<bare>s\d+)\b(?P<path>{_PATH})")
_PATH_PART = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]")
SPLICE_CHARS = 8_000
"""Characters. Spliced output is data in a later prompt, so it has the same limit as everything that a skill reads."""

ITEM: Final = "item"
"""The name that references to an item of a list step have in place of a step's id."""
_WRAPPER_FIELD = "result"
"""MCP sends objects only. Servers put a text, a number or a list under this name."""
_WRAPPER_FIELDS = (_WRAPPER_FIELD, "data")
"""Names under which servers put the whole of what they found."""
_ECHO_FIELDS = frozenset({"expression", "query", "input"})
"""Fields of a result that repeat the call's input."""
_RESULT_FIELDS = ("output", "result", "value")
"""Names that planners use for a whole result."""

Lookup = Callable[[str], StepOutput]


@dataclass(frozen=True, slots=True)
class Reference:
    """A step's id and a path into its result. The empty path is the whole value."""

    step_id: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedArgs:
    """Arguments with resolved references, and whether any of them holds external text."""

    args: JsonObject
    tainted: bool
    used: tuple[str, ...]


def quote_literal(text: str) -> JsonValue:
    """A text as an argument without references. A user's text may look like a reference, such as `${HOME}`."""
    return {"$literal": text} if list_references(text) else text


def quote_texts(value: JsonValue, known: Collection[str]) -> JsonValue:
    """A value in which texts that refer to none of the steps `known` are literals: `${HOME}` in a program."""
    if isinstance(value, str):
        return value if known and find_references(value) & set(known) else quote_literal(value)
    if isinstance(value, list):
        return [quote_texts(item, known) for item in value]
    if isinstance(value, dict) and not is_literal(value) and _parse_whole_reference(value) is None:
        return {key: quote_texts(item, known) for key, item in value.items()}
    return value


def is_literal(value: JsonValue) -> bool:
    """Whether an argument is a `$literal` text."""
    return isinstance(value, dict) and list(value) == ["$literal"]


def find_references(args: JsonValue) -> frozenset[str]:
    """The ids of the steps that `args` refer to."""
    return frozenset({reference.step_id for reference in list_references(args)})


def list_references(value: JsonValue) -> list[Reference]:
    """Every reference in a value, in order."""
    if isinstance(value, str):
        return [_parse_match(match) for match in _REFERENCE.finditer(value)]
    if isinstance(value, list):
        return [reference for item in value for reference in list_references(item)]
    if isinstance(value, dict):
        if is_literal(value):
            return []
        whole = _parse_whole_reference(value)
        if whole is not None:
            return [whole]
        return [reference for item in value.values() for reference in list_references(item)]
    return []


def list_literals(value: JsonValue) -> list[JsonValue]:
    """The parts of a value that are written in the plan itself: its plain values, and the texts around references."""
    if isinstance(value, str):
        references = list_references(value)
        return [part for part in _REFERENCE.split(value)[:: _REFERENCE.groups + 1] if part] if references else [value]
    if isinstance(value, list):
        return [references for item in value for references in list_literals(item)]
    if isinstance(value, dict):
        if is_literal(value):
            return [value["$literal"]]
        return [] if _parse_whole_reference(value) else [one for item in value.values() for one in list_literals(item)]
    return [value]


def resolve_references(args: JsonObject, lookup: Lookup, *, texts: Collection[str] = ()) -> ResolvedArgs:
    """Resolves every reference. `lookup` returns a step's output and raises KeyError if there is none. `texts` names
    the arguments that accept text only: there, a whole result becomes its display text.

    Raises `ReferenceMissingError` if a path does not exist; the message lists the fields that do."""
    resolver = _Resolver(lookup)
    filled = {key: resolver.fill(value, as_said=key in texts) for key, value in args.items()}
    return ResolvedArgs(filled, resolver.tainted, tuple(dict.fromkeys(resolver.used)))


def set_apart_outside_values(value: JsonValue, lookup: Lookup) -> tuple[JsonValue, dict[str, str]]:
    """A value in which references to results from outside stay as names, and the results by these names. All others
    are resolved. For a model that does what the value says: it must not take a result for a part of its task.

    Raises `ReferenceMissingError` as `resolve_references` does."""
    values: dict[str, str] = {}

    def fill(match: re.Match[str]) -> str:
        resolver, reference = _Resolver(lookup), _parse_match(match)
        text = format_spliced_text(resolver.resolve(reference, as_said=True))
        if not resolver.tainted:
            return text
        name = _format_reference(reference)
        values[name] = text
        return name

    def fill_in(part: JsonValue) -> JsonValue:
        if isinstance(part, str):
            return _REFERENCE.sub(fill, part)
        if isinstance(part, list):
            return [fill_in(item) for item in part]
        if isinstance(part, dict):
            return part["$literal"] if is_literal(part) else {key: fill_in(item) for key, item in part.items()}
        return part

    return fill_in(unify_references(value)), values


def rename_references(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """The value with the step ids of its references replaced by those in `names`."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: _rename_match(match, names), value)
    if isinstance(value, list):
        return [rename_references(item, names) for item in value]
    if isinstance(value, dict):
        if is_literal(value):
            return value
        whole = _parse_whole_reference(value)
        if whole is not None:
            return {**value, "$from": names.get(whole.step_id, whole.step_id)}
        return {key: rename_references(item, names) for key, item in value.items()}
    return value


def unify_references(value: JsonValue) -> JsonValue:
    """The value with all references in one form, to compare what models write in several: `$s1`, `${s1}`, an object."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: _format_reference(_parse_match(match)), value)
    if isinstance(value, list):
        return [unify_references(item) for item in value]
    if isinstance(value, dict) and not is_literal(value):
        whole = _parse_whole_reference(value)
        if whole is not None:
            return _format_reference(whole)
        return {key: unify_references(item) for key, item in value.items()}
    return value


def _format_reference(reference: Reference) -> str:
    return f"${{{reference.step_id}{_begin_path(reference)}}}"


def describe_references(value: JsonValue, names: Mapping[str, str], other: str) -> JsonValue:
    """The value with each reference in words, for people: `the result of step 2 (search_files): title of entry 1`.

    `names` calls the result of each step by its id, `other` that of any other step. A `$literal` is its text.
    """
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: f"[{_describe(_parse_match(match), names, other)}]", value)
    if isinstance(value, list):
        described = [describe_references(item, names, other) for item in value]
        is_of_results = all(isinstance(item, dict) and _parse_whole_reference(item) for item in value)
        return ", ".join(map(str, described)) if value and is_of_results else described
    if isinstance(value, dict):
        if is_literal(value):
            return value["$literal"]
        whole = _parse_whole_reference(value)
        if whole is not None:
            return _describe(whole, names, other)
        return {key: describe_references(item, names, other) for key, item in value.items()}
    return value


def _describe(reference: Reference, names: Mapping[str, str], other: str) -> str:
    try:
        parts = split_path(reference)
    except ReferenceMissingError:
        parts = [repr(reference.path)]
    fields = parts[1:] if parts[:1] and parts[0] in _RESULT_FIELDS else parts
    words = " of ".join(f"entry {part + 1}" if isinstance(part, int) else part for part in reversed(fields))
    name = names.get(reference.step_id, other)
    return f"{name}: {words}" if words else name


class _Resolver:
    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.tainted = False
        self.used: list[str] = []

    def fill(self, value: JsonValue, *, as_said: bool = False) -> JsonValue:
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            if is_literal(value):
                return value["$literal"]
            whole = _parse_whole_reference(value)
            if whole is not None:
                return self.resolve(whole, as_said=as_said)
            return {key: self.fill(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        match = _REFERENCE.fullmatch(value.strip())
        if match is not None:
            return self.resolve(_parse_match(match), as_said=as_said)
        return _REFERENCE.sub(lambda found: format_spliced_text(self.resolve(_parse_match(found), as_said=True)), value)

    def resolve(self, reference: Reference, *, as_said: bool) -> JsonValue:
        """The value of a reference. Raises `ReferenceMissingError`."""
        try:
            output = self._lookup(reference.step_id)
        except KeyError:
            raise ReferenceMissingError(
                f"step {reference.step_id!r} has no result to refer to", agent_id="references"
            ) from None
        self.used.append(reference.step_id)
        self.tainted = self.tainted or output.tainted
        value = resolve_path(output, reference)
        return _get_display_value(output, value) if as_said else value


def resolve_path(output: StepOutput, reference: Reference) -> JsonValue:
    """The value at the reference's path. The path may start with `output` (the value) or `text` (the text). It leads
    into a text that is JSON as into an object."""
    parts = split_path(reference)
    value: JsonValue = output.value if output.value is not None else output.text
    read = read_json_text(value)
    if parts and parts[0] == "text" and not _leads_into(read, parts, is_text=isinstance(value, str)):
        return output.text
    if parts and parts[0] in _RESULT_FIELDS and not _leads_into(read, parts, is_text=isinstance(value, str)):
        parts = parts[1:]
    if not parts or not _get_child(read, parts[0])[0]:
        value = _unwrap_result(value)
        if not parts or (parts == ["text"] and isinstance(value, str)):
            return value
    for part in parts:
        exists, value = _get_child(value, part)
        if not exists:
            raise ReferenceMissingError(
                f"step {reference.step_id!r} has nothing at {reference.path!r}: {_describe_content(value)}",
                agent_id="references",
            )
    return value


def _leads_into(read: JsonValue, parts: list[str | int], *, is_text: bool) -> bool:
    """Whether the first name of a path is that of a field, and does not stand for the whole result. For a text, which
    may be a file that has such a field, it stands for the whole wherever the rest of the path fits that."""
    if not (isinstance(read, dict) and parts[0] in read):
        return False
    return not (is_text and (len(parts) == 1 or _get_child(read, parts[1])[0]))


def find_lists(value: JsonValue) -> dict[str, list[JsonValue]]:
    """The lists of an object by their paths, also those of objects within it; not those within lists."""
    lists: dict[str, list[JsonValue]] = {}
    waiting = [("", value)]  # no recursion: foreign servers decide how deep their results are
    while waiting:
        path, one = waiting.pop()
        one = read_json_text(one)
        if isinstance(one, list):
            lists[path] = one
        elif isinstance(one, dict):
            waiting += [(f"{path}.{name}", child) for name, child in reversed(one.items())]
    return lists


def find_rivals(value: JsonValue) -> list[str]:
    """The paths of what an object holds beside its only list and may be meant in its place: objects, also around the
    list if they hold more than a result, and values that are missing. [] for a list."""
    path = ""
    while isinstance(value := read_json_text(value), dict):
        children = {name: read_json_text(child) for name, child in value.items()}
        objects = [name for name, child in children.items() if isinstance(child, dict)]
        has_list = any(isinstance(child, list) for child in children.values())
        if has_list or len(objects) != 1 or objects[0] not in _WRAPPER_FIELDS:
            rivals = [name for name, child in children.items() if child is None or isinstance(child, dict)]
            return [f"{path}.{name}" for name in rivals]
        path, value = f"{path}.{objects[0]}", children[objects[0]]
    return []


def _unwrap_result(value: JsonValue) -> JsonValue:
    """The content of a result that MCP wrapped in an object."""
    return value[_WRAPPER_FIELD] if isinstance(value, dict) and list(value) == [_WRAPPER_FIELD] else value


def _get_display_value(output: StepOutput, value: JsonValue) -> JsonValue:
    """The text form of a whole result: its only plain field besides the repeated input, or its display text.
    Returns a part of a result unchanged."""
    if not isinstance(value, dict | list) or value != _unwrap_result(output.value):
        return value
    visible_fields = (
        {name: value[name] for name in value if name not in _ECHO_FIELDS} if isinstance(value, dict) else {}
    )
    plain = [one for name, one in visible_fields.items() if name in _RESULT_FIELDS and not isinstance(one, dict | list)]
    return plain[0] if len(visible_fields) == len(plain) == 1 else output.text or value


def format_spliced_text(value: JsonValue) -> str:
    """Formats a value for use within a text. At most `SPLICE_CHARS` characters."""
    text = write_text(value)
    return text if len(text) <= SPLICE_CHARS else text[:SPLICE_CHARS] + " [cut]"


def _get_child(value: JsonValue, part: str | int) -> tuple[bool, JsonValue]:
    """`(True, child)` if the value has a child at `part`, else `(False, value)`."""
    value = read_json_text(value)
    if isinstance(value, dict):
        return (True, value[part]) if isinstance(part, str) and part in value else (False, value)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return True, value[part]
    return False, value


def _parse_whole_reference(value: Mapping[str, JsonValue]) -> Reference | None:
    """The reference that an object stands for, or None for an ordinary object."""
    step_id = value.get("$from")
    if not isinstance(step_id, str) or not value.keys() <= {"$from", "path"}:
        return None
    path = value.get("path")
    return Reference(step_id.removeprefix("$"), path if isinstance(path, str) else "")


def _parse_match(match: re.Match[str]) -> Reference:
    return Reference(match["braced"] or match["bare"], match["bpath"] or match["path"] or "")


def _rename_match(match: re.Match[str], names: Mapping[str, str]) -> str:
    reference = _parse_match(match)
    name = names.get(reference.step_id)
    return match[0] if name is None else _format_reference(Reference(name, reference.path))


def split_path(reference: Reference) -> list[str | int]:
    """Splits a path into names and indices. Raises `ReferenceMissingError` if any part is unreadable, because the rest
    of the path would point to another value."""
    dotted = _begin_path(reference)
    if not re.fullmatch(_PATH, dotted):
        raise ReferenceMissingError(
            f"the path {reference.path!r} into step {reference.step_id!r} cannot be read; "
            "write names and indices as in output.items[0]",
            agent_id="references",
        )
    return [name or int(index) for name, index in _PATH_PART.findall(dotted)]


def _begin_path(reference: Reference) -> str:
    """The path as it follows a step's id: from `.` or `[` on."""
    path = reference.path.strip().removeprefix("$")
    return path if not path or path.startswith((".", "[")) else f".{path}"


def _describe_content(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "it holds " + (", ".join(list(value)[:10]) or "nothing")
    if isinstance(value, list):
        return f"it holds a list of {len(value)}"
    return "it holds a plain value"
