"""Marks the part of a request that a provider may cache, for endpoints that cache on demand only.

OpenRouter documents `cache_control` on text parts for Anthropic's and Alibaba's models. Most other endpoints cache by
themselves, and some refuse the field, so the operator sets it for an endpoint (`cache_markers`).
"""

from agent.core.models import JsonObject


def mark_instructions(body: JsonObject) -> JsonObject:
    """The body of a call with a cache marker on its last system message, which ends what stays the same."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return body
    for index in reversed(range(len(messages))):
        message = messages[index]
        if isinstance(message, dict) and message.get("role") == "system" and isinstance(message.get("content"), str):
            part: JsonObject = {
                "type": "text",
                "text": message["content"],
                "cache_control": {"type": "ephemeral"},
            }
            marked: JsonObject = {**message, "content": [part]}
            return {**body, "messages": [*messages[:index], marked, *messages[index + 1 :]]}
    return body
