"""The text of a tool's result for models, which read nothing else: its blocks, and structured values behind them."""

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from agent.core.content_blocks import describe_block
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject

_WORD = re.compile(r"-?\d+(?:[.,]\d+)*|\w+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBER_CHARS = 40
"""Longer ones are data, and take time to compare."""


def build_text(content: Sequence[JsonObject], structured: JsonObject | None) -> str:
    """The words of the blocks, and the structured content as JSON if they do not hold all of its values.

    The protocol asks servers to write the JSON into a text block too; many write `Done` there. Takes linear time.
    """
    texts = [describe_block(block) for block in content]
    if texts and structured is not None and not _has_values(texts, structured):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(texts)


def _has_values(texts: Sequence[str], structured: JsonObject) -> bool:
    parts = {part for text in texts for part in _iter_text_parts(text)}
    return all(part in parts for part in _iter_value_parts(structured))


def _iter_text_parts(text: str) -> Iterator[str | Decimal]:
    """Yields the words of a text, and its numbers as numbers: `21` holds 21.0."""
    for word in _WORD.findall(text.lower()):
        yield word
        plain = word.replace(",", "")  # of thousands
        if len(plain) <= _NUMBER_CHARS and _NUMBER.fullmatch(plain):
            yield Decimal(plain)
    if text.lstrip()[:1] in ("{", "["):  # its texts have escapes
        try:
            yield from _iter_value_parts(json.loads(text))
        except (ValueError, RecursionError):
            return


def _iter_value_parts(value: object) -> Iterator[str | Decimal]:
    for _, leaf in iter_leaves(value):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield Decimal(json.dumps(leaf))
        elif leaf is not None:
            yield from _WORD.findall((leaf if isinstance(leaf, str) else json.dumps(leaf)).lower())
