"""References to earlier results in a step's arguments, found, resolved and renamed.

`{"$from": "s1", "path": "output.items[0]"}` in plans; `$s1.output.items[0]` or `${s1}` where a model writes them
into text. `$5` is money. A whole-value reference keeps the type, otherwise it is spliced as text: a whole result as the
text that people are shown of it.
`{"$literal": "..."}` is a text in which nothing is a reference.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.errors import ReferenceMissingError
from agent.core.events import StepOutput
from agent.core.models import JsonObject

_PATH = r"(?:\.[A-Za-z_][\w-]*|\[\d+\])*"
_ID = r"[A-Za-z][A-Za-z0-9_-]*"
_REFERENCE = re.compile(rf"\$\{{(?P<braced>{_ID})(?P<bpath>{_PATH})\}}|\$(?P<bare>s\d+)\b(?P<path>{_PATH})")
_PATH_PART = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]")
SPLICE_CHARS = 8_000
"""Spliced output is data in somebody's prompt: capped as everything a skill reads."""

_WRAPPER_FIELD = "result"
"""MCP sends objects only; its servers put a text, a number or a list under this name to send it."""
_ECHO_FIELDS = frozenset({"expression", "query", "input"})
"""Fields of a result that only repeat what was asked."""
_RESULT_FIELDS = ("output", "result", "value")
"""What planners call a whole result that has no field of that name."""

Lookup = Callable[[str], StepOutput]


@dataclass(frozen=True, slots=True)
class Reference:
    """A step's id and a path into its result; the empty path is the whole value."""

    step_id: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedArgs:
    """Arguments with every reference filled in, and whether anything in them came from outside."""

    args: JsonObject
    tainted: bool
    used: tuple[str, ...]


def quote_literal(text: str) -> JsonValue:
    """A text as an argument that is taken as it stands: what a user wrote may look like a reference (`${HOME}`)."""
    return {"$literal": text} if list_references(text) else text


def is_literal(value: JsonValue) -> bool:
    """Whether an argument is such a text."""
    return isinstance(value, dict) and list(value) == ["$literal"]


def find_references(args: JsonValue) -> frozenset[str]:
    """The ids of the steps that `args` refer to."""
    return frozenset(reference.step_id for reference in list_references(args))


def list_references(value: JsonValue) -> list[Reference]:
    """Every reference in a value, in order."""
    if isinstance(value, str):
        return [_parse_match(match) for match in _REFERENCE.finditer(value)]
    if isinstance(value, list):
        return [found for item in value for found in list_references(item)]
    if isinstance(value, dict):
        if is_literal(value):
            return []
        whole = _parse_whole_reference(value)
        if whole is not None:
            return [whole]
        return [found for item in value.values() for found in list_references(item)]
    return []


def resolve_references(args: JsonObject, lookup: Lookup, *, texts: Collection[str] = ()) -> ResolvedArgs:
    """Fill in every reference; `lookup` gives a step's output, KeyError for one that has none. `texts` names the
    arguments that take nothing but text: a whole result goes in as its text.

    Raises `ReferenceMissingError` naming what is there when a path leads nowhere."""
    resolver = _Resolver(lookup)
    filled = {key: resolver.fill(value, as_said=key in texts) for key, value in args.items()}
    return ResolvedArgs(filled, resolver.tainted, tuple(dict.fromkeys(resolver.used)))


def rename_references(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """The value with references to the steps of `names` pointing at their new ids."""
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
                return self._get(whole, as_said=as_said)
            return {key: self.fill(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        match = _REFERENCE.fullmatch(value.strip())
        if match is not None:
            return self._get(_parse_match(match), as_said=as_said)
        return _REFERENCE.sub(lambda found: format_spliced_text(self._get(_parse_match(found), as_said=True)), value)

    def _get(self, reference: Reference, *, as_said: bool) -> JsonValue:
        try:
            output = self._lookup(reference.step_id)
        except KeyError:
            raise ReferenceMissingError(
                f"step {reference.step_id!r} has no result to refer to", agent_id="references"
            ) from None
        self.used.append(reference.step_id)
        self.tainted = self.tainted or output.tainted
        value = resolve_path(output, reference)
        return _displayed_value(output, value) if as_said else value


def resolve_path(output: StepOutput, reference: Reference) -> JsonValue:
    """The value at the reference's path. `output` is the step's value, `text` its text; both may be left out."""
    parts = _split_path(reference)
    value: JsonValue = output.value if output.value is not None else output.text
    if parts and parts[0] == "text" and not (isinstance(value, dict) and "text" in value):
        return output.text
    named = parts[0] if parts else None
    if named in _RESULT_FIELDS and not (isinstance(value, dict) and named in value):
        parts = parts[1:]
    if not parts or not _get_child(value, parts[0])[0]:
        value = _unwrap_result(value)
    if parts == ["text"] and isinstance(value, str):
        return value
    for part in parts:
        found, value = _get_child(value, part)
        if not found:
            raise ReferenceMissingError(
                f"step {reference.step_id!r} has nothing at {reference.path!r}: {_describe_content(value)}",
                agent_id="references",
            )
    return value


def _unwrap_result(value: JsonValue) -> JsonValue:
    """A result without the object that it was only sent in."""
    return value[_WRAPPER_FIELD] if isinstance(value, dict) and list(value) == [_WRAPPER_FIELD] else value


def _displayed_value(output: StepOutput, value: JsonValue) -> JsonValue:
    """What stands for `value` in a text: of a whole result its one plain field besides what was asked, or the text
    that people are shown; of a part of it the part."""
    if not isinstance(value, dict | list) or value != _unwrap_result(output.value):
        return value
    told = {name: value[name] for name in value if name not in _ECHO_FIELDS} if isinstance(value, dict) else {}
    plain = [one for name, one in told.items() if name in _RESULT_FIELDS and not isinstance(one, dict | list)]
    return plain[0] if len(told) == len(plain) == 1 else output.text or value


def format_spliced_text(value: JsonValue) -> str:
    """A value spliced into text, at most 8,000 characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SPLICE_CHARS else text[:SPLICE_CHARS] + " [cut]"


def _get_child(value: JsonValue, part: str | int) -> tuple[bool, JsonValue]:
    """Whether there is something at `part`, and it; else the value itself."""
    if isinstance(value, dict):
        return (True, value[part]) if isinstance(part, str) and part in value else (False, value)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return True, value[part]
    return False, value


def _parse_whole_reference(value: Mapping[str, JsonValue]) -> Reference | None:
    """The reference an object is; None for an ordinary object."""
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
    return match[0] if name is None else f"${{{name}{reference.path}}}"


def _split_path(reference: Reference) -> list[str | int]:
    """A path as names and indices. One that cannot be read is refused: its readable part is another value."""
    path = reference.path.strip().removeprefix("$")
    dotted = path if not path or path.startswith((".", "[")) else f".{path}"
    if not re.fullmatch(_PATH, dotted):
        raise ReferenceMissingError(
            f"the path {reference.path!r} into step {reference.step_id!r} cannot be read; "
            "write names and indices as in output.items[0]",
            agent_id="references",
        )
    return [name or int(index) for name, index in _PATH_PART.findall(dotted)]


def _describe_content(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "it holds " + (", ".join(list(value)[:10]) or "nothing")
    if isinstance(value, list):
        return f"it holds a list of {len(value)}"
    return "it holds a plain value"
