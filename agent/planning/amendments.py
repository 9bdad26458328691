"""Applies a person's reply to a call of a rules plan. With a model, the model reads the reply."""

import re

from agent.core.models import JsonObject
from agent.planning.rules import find_tool_calls
from agent.text.stop_words import NEGATION
from agent.tools import ToolSpec

_COLLECTION_NAME = re.compile(
    r"\b(?:(?:use|take|choose|pick|prefer|want|with)\b[^.?!]{0,40}?\bname|"
    r"(?:re)?name(?: it| the collection)(?: to| as)?|rename to|"
    r"change (?:it|the name|the collection|the collection name) to|call (?:it|the collection)|"
    r"into(?: the collection)?)\s+[\"'`\u201c\u2018]?(?P<name>\w[\w.-]{0,199})",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"of", "for", "it", "that", "this", "the", "a", "an", "instead", "please", "else", "something"})


def apply_reply_to_args(spec: ToolSpec, args: JsonObject, said: str) -> JsonObject:
    """The arguments of a call as a reply changes them; unchanged if no rule matches the reply."""
    if not spec.hints.accepted_wishes or said.rstrip().endswith("?") or NEGATION.search(said):
        return args
    again = find_tool_calls(said, [spec])
    if again:
        return {**args, **again[0].args}
    named = _COLLECTION_NAME.search(said)
    if named is None or named["name"].lower() in _NO_NAMES:
        return args
    return {**args, "collection_name": named["name"].rstrip(".")}


def explain_pending_call(spec: ToolSpec) -> str:
    """The reason why the gateway asks about a call again: the call's effect and the replies that it understands."""
    others = spec.hints.accepted_wishes
    wishes = f" Besides yes and no I understand {others}." if others else ""
    return (
        "no model is available to read your reply, and it is neither yes nor no. "
        f"What it does: {spec.description}{wishes}"
    )
