"""Kinds of damage that a weak model does to its replies, applied to a good reply by a seeded random choice."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final

ARGUMENT_FIELDS = frozenset({"inputs", "arguments", "args", "parameters"})
TOOL_FIELDS = frozenset({"tool", "name"})
LISTED_NAME = re.compile(r"^\s*[-*]\s*`?([A-Za-z]\w{2,63})`?\s*[:(]", re.MULTILINE)
"""A name at the start of a list item of a prompt, as tools are listed for a planner."""
PROSE: Final = ("Sure! Here is what you asked for:\n\n```json\n", "\n```\n\nLet me know if you need anything else.")

Message = dict[str, Any]


def damage_message(message: Message, kinds: Sequence[str], random: Random, known_tools: Sequence[str]) -> str:
    """Damages a reply's message in place by one of the kinds that apply to it. Returns the kind, or "" if none does."""
    for kind in random.sample(list(kinds), len(kinds)):
        if DAMAGE[kind](message, random, known_tools):
            return kind
    return ""


def list_known_tools(request: Mapping[str, Any]) -> list[str]:
    """The names of the tools that a request offers or lists, sorted."""
    names = {str(tool.get("function", {}).get("name", "")) for tool in request.get("tools") or ()}
    for message in request.get("messages", ()):
        content = message.get("content")
        if message.get("role") in ("system", "developer") and isinstance(content, str):
            names |= set(LISTED_NAME.findall(content))
    return sorted(names - {""})


def _drop_brace(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Removes one bracket of a JSON reply or of a call's arguments."""
    return _change_text(message, random, lambda text: _remove_bracket(text, random))


def _remove_bracket(text: str, random: Random) -> str:
    places = [index for index, char in enumerate(text) if char in "{}[]"]
    place = random.choice(places)
    return text[:place] + text[place + 1 :]


def _wrap_in_prose(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Puts sentences and a code fence around a JSON reply."""
    if _parse(message.get("content")) is None:
        return False
    message["content"] = PROSE[0] + message["content"] + PROSE[1]
    return True


def _rename_field(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Renames a field of the JSON."""

    def rename(value: Any) -> bool:
        places = [(owner, name) for owner in _list_objects(value) for name in owner]
        if not places:
            return False
        owner, name = random.choice(places)
        renamed = {f"{name}_value" if key == name else key: item for key, item in owner.items()}
        owner.clear()
        owner.update(renamed)
        return True

    return _change_json(message, random, rename)


def _forget_argument(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Leaves out an argument of a tool call, in a plan or in the reply's own calls."""
    if message.get("tool_calls"):
        return _change_json(message, random, lambda value: _remove_item(value, random))

    def forget(value: Any) -> bool:
        filled = [
            owner[name]
            for owner in _list_objects(value)
            for name in owner
            if name in ARGUMENT_FIELDS and isinstance(owner[name], dict | list) and owner[name]
        ]
        return bool(filled) and _remove_item(random.choice(filled), random)

    return _change_json(message, random, forget)


def _remove_item(value: Any, random: Random) -> bool:
    if not isinstance(value, dict | list) or not value:
        return False
    place: Any = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
    del value[place]
    return True


def _repeat_reply(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Says the same twice, or makes the same call twice."""
    if message.get("tool_calls"):
        again = deepcopy(message["tool_calls"][-1])
        again["id"] = f"{again.get('id', 'call')}_again"
        message["tool_calls"].append(again)
        return True
    content = message.get("content")
    if not content:
        return False
    message["content"] = f"{content}\n{content}"
    return True


def _pick_wrong_tool(message: Message, random: Random, known_tools: Sequence[str]) -> bool:
    """Replaces a tool by another one that the request offers."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    if calls:
        return _replace_tool(random.choice(calls), "name", known_tools, random)

    def replace(value: Any) -> bool:
        named = [
            (owner, name)
            for owner in _list_objects(value)
            for name in owner
            if name in TOOL_FIELDS and owner[name] in known_tools
        ]
        return bool(named) and _replace_tool(*random.choice(named), known_tools, random)

    return _change_json(message, random, replace)


def _replace_tool(owner: dict[str, Any], field: str, known_tools: Sequence[str], random: Random) -> bool:
    others = [name for name in known_tools if name != owner[field]]
    if others:
        owner[field] = random.choice(others)
    return bool(others)


def _change_json(message: Message, random: Random, change: Callable[[Any], bool]) -> bool:
    """Applies a change to the reply's JSON or to the arguments of one of its calls. Returns whether it applied."""
    changed = False

    def rewrite(text: str) -> str:
        nonlocal changed
        value = json.loads(text)
        changed = change(value)
        return json.dumps(value, ensure_ascii=False)

    return _change_text(message, random, rewrite) and changed


def _change_text(message: Message, random: Random, change: Callable[[str], str]) -> bool:
    """Rewrites the text of a JSON reply or of one call's arguments. Returns False if there is no JSON object."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    holders = [(call, "arguments") for call in calls] or [(message, "content")]
    holder, field = random.choice(holders)
    if _parse(holder.get(field)) is None:
        return False
    holder[field] = change(holder[field])
    return True


def _parse(text: object) -> Any | None:
    """The JSON object or array of a text, or None."""
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict | list) else None


def _list_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every object of a JSON tree that has a field."""
    if isinstance(value, dict) and value:
        yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from _list_objects(item)


DAMAGE: Mapping[str, Callable[[Message, Random, Sequence[str]], bool]] = {
    "drop_brace": _drop_brace,
    "wrap_in_prose": _wrap_in_prose,
    "rename_field": _rename_field,
    "forget_argument": _forget_argument,
    "repeat": _repeat_reply,
    "wrong_tool": _pick_wrong_tool,
}
"""The kinds by name. Each changes a message in place and returns whether it applied."""
