"""Normalises a parsed reply: resolves aliases, letter case, ids and types of a plan. It never guesses.

An ambiguous reply is rejected with a message that the model can act on.
"""

import difflib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.json_texts import read_json_text
from agent.core.models import JsonObject, Tier
from agent.core.models.written_call import read_written_call
from agent.core.plan_references import find_references
from agent.planning.list_steps import normalise_list_inputs
from agent.planning.reply import list_calls
from agent.planning.reply_schema import COMPLETION
from agent.text.spelling import is_address
from agent.tools.catalogue import Catalogue
from agent.tools.moment_formats import format_moments
from agent.tools.spec import drop_unset_inputs

_STEP_KEYS = {
    "id": "id", "step_id": "id", "step": "id",
    "tool": "tool", "tool_name": "tool", "skill": "tool", "name": "tool", "target": "tool",
    "args": "args", "arguments": "args", "inputs": "args", "input": "args", "parameters": "args", "params": "args",
    "depends_on": "depends_on", "dependencies": "depends_on", "depends": "depends_on", "dependson": "depends_on",
    "after": "depends_on", "needs": "depends_on",
    "intent": "intent", "purpose": "intent", "description": "intent", "goal": "intent",
    "executor": "executor", "action": "action", "reasoning": "reasoning", "thought": "reasoning",
    "tools": "tools", "allowed_tools": "tools", "allowedtools": "tools",
    "tool_call": "tool_call", "status": "status",
    "provider": "provider", "tier": "tier", "effect": "effect", "expected_output": "expected_output",
}  # fmt: skip
_NOT_IN_KEY = re.compile(r"[^a-z_]")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = r"\d{1,300}"
"""`float()` and `int()` fail on thousands of digits."""
COMPLETION_NAMES = frozenset({COMPLETION, "answer", "respond", "litellm", "final_answer", "complete"})


@dataclass(frozen=True, slots=True)
class RawStep:
    """A step of a reply, normalised; not yet checked against the catalogue."""

    id: str
    tool: str
    args: JsonObject
    depends_on: tuple[str, ...]
    intent: str
    tier: Tier | None = None
    tools: tuple[str, ...] | None = None
    """The tools that a skill may call; None if the step names none."""


@dataclass(frozen=True, slots=True)
class RawPlan:
    """A plan of a reply, normalised; not yet validated."""

    goal: str
    language: str
    reasoning: str
    answer_tier: Tier | None
    steps: tuple[RawStep, ...] = field(default_factory=tuple)


def normalise_plan(data: JsonObject, catalogue: Catalogue, *, said: str = "") -> RawPlan:
    """The normalised plan of a parsed reply. Raises `PlanInvalidError` with every problem.

    `said` are the user's words: they show where a text ends that stands for several values."""
    problems: list[str] = []
    mapped = [_map_keys(entry, index, problems) for index, entry in enumerate(list_calls(data), start=1)]
    keyed = [_unfold_call(entry, index, problems) for index, entry in enumerate(mapped, start=1)]
    ids = [_normalise_id(entry.get("id"), index) for index, entry in enumerate(keyed, start=1)]
    from_zero = _has_zero_based_indices(keyed)
    steps = []
    for index, entry in enumerate(keyed):
        tool = _normalise_tool(entry.get("tool"), entry.get("action"), catalogue)
        label = f"step {ids[index]}"
        steps.append(
            RawStep(
                id=ids[index],
                tool=tool,
                args=_normalise_args(entry.get("args"), tool, catalogue, label, problems, said),
                depends_on=_normalise_dependencies(entry.get("depends_on"), ids, label, problems, from_zero=from_zero),
                intent=str(entry.get("intent") or "").strip()[:500],
                tier=_normalise_tier(entry.get("tier")),
                tools=_normalise_skill_tools(entry.get("tools"), tool, catalogue, label, problems),
            )
        )
    if problems:
        raise PlanInvalidError(problems)
    return RawPlan(
        goal=str(data.get("goal") or "").strip()[:1000],
        language=str(data.get("language") or "en").strip()[:16] or "en",
        reasoning=str(data.get("reasoning") or "").strip()[:2000],
        answer_tier=_normalise_tier(data.get("answer_tier")),
        steps=tuple(steps),
    )


def list_called_tools(data: JsonObject, catalogue: Catalogue) -> set[str]:
    """The names of the skills and tools that a parsed reply calls, also in a plan that is not valid; "" for one that is
    no text."""
    entries = enumerate(list_calls(data), start=1)
    keyed = [_unfold_call(_map_keys(entry, index, []), index, []) for index, entry in entries]
    named = [(entry.get("tool"), entry.get("action")) for entry in keyed]
    return {
        _normalise_tool(tool, action, catalogue) if tool is None or isinstance(tool, str) else ""
        for tool, action in named
    }


def _map_keys(entry: Mapping[str, JsonValue], index: int, problems: list[str]) -> dict[str, JsonValue]:
    """A step with canonical keys. Reports unknown keys in `problems`, because their values would be lost."""
    keyed: dict[str, JsonValue] = {}
    for key, value in entry.items():
        target = _STEP_KEYS.get(key)
        if target is None:
            plain = _NOT_IN_KEY.sub("", key.lower().replace("-", "_").replace(" ", "_"))
            target = _STEP_KEYS.get(plain)
        if target is None:
            near = difflib.get_close_matches(plain, _STEP_KEYS, n=1, cutoff=0.6)
            hint = f'; did you mean "{_STEP_KEYS[near[0]]}"?' if near else ""
            problems.append(f'step {index} has an unknown key "{key}"{hint}')
        elif target in keyed:
            problems.append(f'step {index} has "{target}" twice (as "{key}")')
        else:
            keyed[target] = value
    return keyed


def _unfold_call(entry: dict[str, JsonValue], index: int, problems: list[str]) -> dict[str, JsonValue]:
    """Splits a call written in one field into the tool and its arguments. A step's status says nothing here."""
    if "tool_call" not in entry:
        return entry
    tool, args = read_written_call(entry["tool_call"])
    step = {key: value for key, value in entry.items() if key not in ("tool_call", "status")}
    for key, value in (("tool", tool), ("args", args)):
        if value is not None and key in step:
            problems.append(f'step {index} has "{key}" twice (as "tool_call")')
        elif value is not None:
            step[key] = value
    return step


def _normalise_id(value: JsonValue, index: int) -> str:
    if value is None or value == "" or isinstance(value, bool):
        return f"s{index}"
    text = str(value).strip()
    return f"s{text}" if text.isdigit() else _NOT_IN_ID.sub("_", text)


def _normalise_tool(value: JsonValue, action: JsonValue, catalogue: Catalogue) -> str:
    """The tool's name as the catalogue spells it. Unknown names pass: the validator reports them."""
    if value in (None, "") and isinstance(action, str):
        value = action
    text = str(value or "").strip()
    plain = text.lower().replace(" ", "_")
    if plain in COMPLETION_NAMES or (not text and action == COMPLETION):
        return COMPLETION
    if catalogue.get_tool(text) is not None or catalogue.get_skill(text) is not None:
        return text
    own = (spec.name for spec in catalogue.tools if spec.room_name and spec.room_name == text)
    if (registered := next(own, None)) is not None:  # the name inside of this room
        return registered
    wanted = plain.replace("-", "_")
    names = {name: name.lower().replace("-", "_") for name in catalogue.list_names()}
    same = [name for name, spelled in names.items() if spelled == wanted]
    # Lists of a server's tools omit the server's prefix, so a model may omit it too.
    same = same or [name for name, spelled in names.items() if spelled.partition("__")[2] == wanted]
    return same[0] if same and (len(same) == 1 or names[same[0]] == wanted) else text


def _normalise_args(
    value: JsonValue, tool: str, catalogue: Catalogue, label: str, problems: list[str], said: str
) -> JsonObject:
    """The arguments from an object or from name/value pairs, converted to the types of the tool's schema."""
    if value is None or value in ("", [], {}):
        return {}
    if isinstance(value, str):
        return {"task": value} if catalogue.get_skill(tool) else _parse_args_text(value, label, problems)
    if isinstance(value, dict):
        pairs = list(value.items())
        if set(value) == {"name", "value"}:
            pairs = [(str(value["name"]), value["value"])]
    elif isinstance(value, list):
        pairs = _read_pairs(value, label, problems)
    else:
        problems.append(f"{label}: inputs must be a list of name/value pairs, not {json.dumps(value)}")
        return {}
    spec = catalogue.get_tool(tool)
    properties = spec.properties if spec else {}
    args: JsonObject = {}
    for name, item in pairs:
        if name in args:
            problems.append(f'{label} has the input "{name}" twice')
        args[name] = _coerce_type(item, properties.get(name), said)
    if spec is None:
        return args
    listed = normalise_list_inputs(drop_unset_inputs(spec, args), spec)
    return listed if spec.origin == "builtin" else format_moments(spec.input_schema, listed)


def _parse_args_text(value: str, label: str, problems: list[str]) -> JsonObject:
    parsed = read_json_text(value)
    if not isinstance(parsed, dict):
        problems.append(f"{label}: inputs must be a list of name/value pairs")
        return {}
    return parsed


def _read_pairs(value: list[JsonValue], label: str, problems: list[str]) -> list[tuple[str, JsonValue]]:
    """The name and value of each input. Reports a pair with a missing half, such as {"name": "task"}."""
    pairs: list[tuple[str, JsonValue]] = []
    for item in value:
        if isinstance(item, dict) and set(item) >= {"name", "value"} and len(item) == 2:
            pairs.append((str(item["name"]), item["value"]))
        elif isinstance(item, dict) and len(item) == 1 and not set(item) & {"name", "value"}:
            pairs += list(item.items())
        else:
            problems.append(f'{label}: every input must be {{"name": ..., "value": ...}}')
    return pairs


def _coerce_type(value: JsonValue, schema: JsonValue, said: str = "") -> JsonValue:
    """A text converted to the type of its schema, or unchanged if that fails. Pairs carry texts only."""
    if not isinstance(value, str) or not isinstance(schema, dict):
        return value
    text = value.strip()
    forms, kinds = schema.get("anyOf"), schema.get("type")
    if isinstance(kinds, list):  # a text that is a list of references is meant as a list
        is_list = "array" in kinds and text.startswith("[") and bool(find_references(text))
        return _coerce_type(value, {"type": "array"}) if is_list else value
    if isinstance(forms, list) and {"type": "null"} in forms and len(forms) == 2:  # an optional value
        return _coerce_type(value, next(form for form in forms if form != {"type": "null"}), said)
    match schema.get("type"):
        case "integer" if re.fullmatch(rf"[+-]?{_DIGITS}", text):
            return int(text)
        case "number" if re.fullmatch(rf"[+-]?{_DIGITS}(?:\.{_DIGITS})?(?:[eE][+-]?\d{{1,4}})?", text):
            number = float(text) if re.search(r"[.eE]", text) else int(text)
            return number if math.isfinite(number) else value
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "array" | "object" if text.startswith(("[", "{")):
            parsed = read_json_text(text)
            return value if parsed == text else parsed
        case "array" if text and "$" not in text and _holds_texts(schema):  # `$` may refer to a step or an item
            return _split_texts(text, said) or value
        case _:
            return value


def _holds_texts(schema: JsonObject) -> bool:
    """Whether the schema is that of a list of texts."""
    items = schema.get("items")
    return isinstance(items, dict) and items.get("type") == "string"


def _split_texts(text: str, said: str) -> list[JsonValue]:
    """The texts that one text stands for, as a list; [] where nothing shows whether `a, b` is one text or two. Two that
    the user joined by a comma are one, as in "Paris, Texas", unless they are addresses."""
    parts = [part.strip() for part in re.split(r"[,;\n]", text)]
    if len(parts) == 1:
        return [*parts]
    if not all(part and _stands(re.escape(part), said) for part in parts):
        return []
    one = f"(?:{'|'.join(map(re.escape, parts))})"
    is_one = not all(map(_is_name, parts)) and _stands(rf"{one}\s*,\s*{one}", said)
    return [] if is_one else [*parts]


def _stands(pattern: str, said: str) -> bool:
    return re.search(rf"(?<!\w){pattern}(?!\w)", said, re.IGNORECASE) is not None


def _is_name(text: str) -> bool:
    """Whether a text is an address or a mention, which no comma is a part of."""
    return " " not in text and (is_address(text) or text.startswith(("@", "#")))


def _has_zero_based_indices(steps: list[dict[str, JsonValue]]) -> bool:
    """Whether the dependencies are indices that start at 0: one of them is 0, and no step has a numeric id.

    Read as ids, such indices would point to other steps."""
    if any(re.fullmatch(r"s?\d+", str(step.get("id", "")).strip()) for step in steps):
        return False
    return any(str(item).strip() == "0" for step in steps for item in _split_dependencies(step.get("depends_on")))


def _split_dependencies(value: JsonValue) -> list[JsonValue]:
    """The dependencies as a list; accepts a list, a comma-separated text, one value or None."""
    if value is None:
        return []
    if isinstance(value, str):
        return [] if value.strip().lower() in ("none", "null", "[]") else [part.strip() for part in value.split(",")]
    return value if isinstance(value, list) else [value]


def _normalise_dependencies(
    value: JsonValue, ids: list[str], label: str, problems: list[str], *, from_zero: bool
) -> tuple[str, ...]:
    """The ids of the steps that a step depends on. Reports empty entries in `problems`.

    A number means the id `s<number>`, or with `from_zero` an index that starts at 0."""
    dependencies: list[str] = []
    for item in _split_dependencies(value):
        if isinstance(item, bool) or item is None or not isinstance(item, str | int) or str(item).strip() == "":
            problems.append(f"{label}: depends_on holds {json.dumps(item)}, which is not a step id")
            continue
        text = str(item).strip().removeprefix("$")
        if from_zero and text.isdigit() and text not in ids:
            # The second form matches no step, so the validator reports it.
            text = ids[int(text)] if len(text) < 5 and int(text) < len(ids) else f"s{text}"
        text = f"s{text}" if text.isdigit() and text not in ids else text
        dependencies.append(_NOT_IN_ID.sub("_", text))
    return tuple(dict.fromkeys(dependencies))


def _normalise_skill_tools(
    value: JsonValue, skill: str, catalogue: Catalogue, label: str, problems: list[str]
) -> tuple[str, ...] | None:
    """The tools that a skill step names, as the catalogue spells them. Unknown names pass: the validator
    reports them. Other steps have no tools, whatever a reply says."""
    card = catalogue.get_skill(skill)
    if card is None or value in (None, "", []):
        return None
    names = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problems.append(f"{label}: tools must be a list of names of the skill's tools, not {json.dumps(value)[:100]}")
        return None
    spelled = {_spell(name): name for name in (*card.declared_tools, *card.tools)}
    return tuple(dict.fromkeys(spelled.get(_spell(str(name)), str(name)) for name in names))


def _spell(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _normalise_tier(value: JsonValue) -> Tier | None:
    return "fast" if value == "fast" else "high" if value == "high" else None
