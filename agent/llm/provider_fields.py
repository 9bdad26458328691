"""The reasoning texts inside a message's provider fields, for filters. Signatures are opaque and stay unchanged."""

from collections.abc import Callable, Iterator

from pydantic import JsonValue

from agent.core.models import JsonObject

OPAQUE_FIELDS = frozenset({"extra_content", "signature", "thought_signature"})
"""Fields that hold signatures and encrypted data: a provider refuses one that was changed."""
_TEXTS = ("reasoning_content", "reasoning")
_BLOCKS = ("reasoning_details", "thinking_blocks")
_BLOCK_TEXTS = ("text", "summary", "thinking")


def iter_reasoning_texts(fields: JsonObject) -> Iterator[str]:
    """Yields every text of a model's reasoning."""
    yield from (text for key in _TEXTS if isinstance(text := fields.get(key), str))
    for block in (one for key in _BLOCKS for one in _list_blocks(fields, key)):
        if isinstance(block, dict):
            yield from (text for key in _BLOCK_TEXTS if isinstance(text := block.get(key), str))


def map_reasoning(fields: JsonObject, change: Callable[[str], str]) -> JsonObject:
    """The fields with their texts changed.

    A block of reasoning whose text would change is left out: its signature would no longer fit.
    """
    if not fields:
        return fields
    mapped = {
        key: change(value) if key in _TEXTS and isinstance(value, str) else value for key, value in fields.items()
    }
    for key in _BLOCKS:
        if key in mapped:
            mapped[key] = [block for block in _list_blocks(fields, key) if not _is_changed(block, change)]
    return mapped


def drop_reasoning(fields: JsonObject) -> JsonObject:
    """The fields without the texts of reasoning."""
    return {key: value for key, value in fields.items() if key not in (*_TEXTS, *_BLOCKS)}


def _list_blocks(fields: JsonObject, key: str) -> list[JsonValue]:
    blocks = fields.get(key)
    return blocks if isinstance(blocks, list) else []


def _is_changed(block: JsonValue, change: Callable[[str], str]) -> bool:
    if not isinstance(block, dict):
        return False
    texts = [text for key in _BLOCK_TEXTS if isinstance(text := block.get(key), str)]
    return any(change(text) != text for text in texts)
