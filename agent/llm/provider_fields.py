"""The reasoning texts inside a message's provider fields, for filters. Signatures are opaque and stay unchanged."""

from collections.abc import Callable, Iterator

from pydantic import JsonValue

from agent.core.models import JsonObject

OPAQUE_FIELDS = frozenset({"extra_content", "signature", "thought_signature"})
"""Fields that hold signatures and encrypted data: a provider refuses one that was changed."""
_TEXTS = ("reasoning_content", "reasoning")
_DETAIL_TEXTS = ("text", "summary")


def iter_reasoning_texts(fields: JsonObject) -> Iterator[str]:
    """Yields every text of a model's reasoning."""
    yield from (text for key in _TEXTS if isinstance(text := fields.get(key), str))
    for detail in _list_details(fields):
        if isinstance(detail, dict):
            yield from (text for key in _DETAIL_TEXTS if isinstance(text := detail.get(key), str))


def map_reasoning(fields: JsonObject, change: Callable[[str], str]) -> JsonObject:
    """The fields with their texts changed.

    A block of `reasoning_details` whose text would change is left out: its signature would no longer fit.
    """
    if not fields:
        return fields
    mapped = {
        key: change(value) if key in _TEXTS and isinstance(value, str) else value for key, value in fields.items()
    }
    if "reasoning_details" in mapped:
        unchanged = [detail for detail in _list_details(fields) if not _is_changed(detail, change)]
        mapped["reasoning_details"] = unchanged
    return mapped


def _list_details(fields: JsonObject) -> list[JsonValue]:
    details = fields.get("reasoning_details")
    return details if isinstance(details, list) else []


def _is_changed(detail: JsonValue, change: Callable[[str], str]) -> bool:
    if not isinstance(detail, dict):
        return False
    texts = [text for key in _DETAIL_TEXTS if isinstance(text := detail.get(key), str)]
    return any(change(text) != text for text in texts)
