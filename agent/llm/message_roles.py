"""Rewrites messages for models whose templates know no system role, or want user and assistant in turns.

Gemma 2 and Mistral 0.2 are such models; servers that use the models' own templates refuse the others' form.
"""

from typing import Literal

from pydantic import JsonValue

from agent.core.models import JsonObject

RoleForm = Literal["as_is", "joined", "no_system"]
"""`joined`: neighbours of one role are one message. `no_system`: the system's words are the user's as well."""
_SYSTEM_ROLES = ("system", "developer")


def arrange_roles(messages: list[JsonValue], form: RoleForm) -> list[JsonValue]:
    """The messages, in OpenAI's wire form, as a template of this form takes them. Calls of tools and their results stay
    as they are."""
    if form == "as_is":
        return messages
    arranged: list[JsonValue] = []
    for message in messages:
        if not isinstance(message, dict):
            return messages
        own = {**message, "role": "user"} if form == "no_system" and message.get("role") in _SYSTEM_ROLES else message
        before = arranged[-1] if arranged else None
        if isinstance(before, dict) and _can_join(before, own):
            arranged[-1] = {**before, "content": _join(before.get("content"), own.get("content"))}
        else:
            arranged.append(own)
    return arranged


def _can_join(first: JsonObject, second: JsonObject) -> bool:
    has_calls = any(message.get("tool_calls") or message.get("tool_call_id") for message in (first, second))
    return first.get("role") == second.get("role") and not has_calls


def _join(first: JsonValue, second: JsonValue) -> JsonValue:
    if isinstance(first, list) or isinstance(second, list):
        return [*_to_parts(first), *_to_parts(second)]
    return "\n\n".join(str(text) for text in (first, second) if text)


def _to_parts(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
