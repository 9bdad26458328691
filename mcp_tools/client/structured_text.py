"""The text of a tool's result for models, which read nothing else: its blocks, and structured values behind them."""

import json
import re
from collections.abc import Iterator, Sequence

from agent.core.content_blocks import describe_block
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject

_WORD = re.compile(r"-?\d+(?:[.,]\d+)*|\w+")


def build_text(content: Sequence[JsonObject], structured: JsonObject | None) -> str:
    """The words of the blocks, and the structured content as JSON if they do not hold all of its values.

    The protocol asks servers to write the JSON into a text block too; many write `Done` there. Takes linear time.
    """
    texts = [describe_block(block) for block in content]
    if texts and structured is not None and not _has_words(texts, structured):
        texts.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(texts)


def _has_words(texts: Sequence[str], structured: JsonObject) -> bool:
    words = {word for text in texts for word in _iter_text_words(text)}
    return all(word in words for word in _iter_value_words(structured))


def _iter_text_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.lower()):
        yield word
        yield word.replace(",", "")  # of thousands
    if text.lstrip()[:1] in ("{", "["):  # its texts have escapes
        try:
            yield from _iter_value_words(json.loads(text))
        except (ValueError, RecursionError):
            return


def _iter_value_words(value: object) -> Iterator[str]:
    for _, leaf in iter_leaves(value):
        if leaf is not None:
            yield from _WORD.findall((leaf if isinstance(leaf, str) else json.dumps(leaf)).lower())
