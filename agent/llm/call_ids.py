"""Rewrites the ids of tool calls for endpoints that take those of their own form only.

A conversation may hold the calls of another model, or ids that a client made. Mistral takes nine letters and digits,
OpenAI 40 characters, Anthropic and Bedrock no other signs than hyphens and underscores: the first form fits all.
"""

import hashlib
import re

from pydantic import JsonValue

_SHORT = re.compile(r"[A-Za-z0-9]{9}")


def shorten_call_ids(messages: list[JsonValue]) -> list[JsonValue]:
    """The messages, in OpenAI's wire form, with ids of nine letters and digits; equal ones stay equal."""
    return [_shorten(message) if isinstance(message, dict) else message for message in messages]


def _shorten(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
    answered, calls = message.get("tool_call_id"), message.get("tool_calls")
    if isinstance(answered, str):
        message = {**message, "tool_call_id": _shorten_id(answered)}
    if isinstance(calls, list):
        message = {**message, "tool_calls": [_shorten_call(call) for call in calls]}
    return message


def _shorten_call(call: JsonValue) -> JsonValue:
    if not isinstance(call, dict) or not isinstance(call_id := call.get("id"), str):
        return call
    return {**call, "id": _shorten_id(call_id)}


def _shorten_id(call_id: str) -> str:
    if _SHORT.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
