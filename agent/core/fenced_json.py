"""Reads JSON that a model wrote in Markdown code blocks: the one place that knows how models fence it."""

import re
from collections.abc import Iterator

_OPENING = re.compile(r"```(?:json5?|javascript|js)?[ \t]*", re.IGNORECASE)
_BLOCK = re.compile(rf"{_OPENING.pattern}\n(.*?)```", re.DOTALL | re.IGNORECASE)


def iterate_json_blocks(text: str) -> Iterator[re.Match[str]]:
    """Yields the complete code blocks that are marked as JSON or not at all; group 1 is the content."""
    return _BLOCK.finditer(text)


def remove_json_fence(text: str) -> str:
    """A reply without the code block around it. A closing fence may be missing."""
    body = text.strip()
    opening = _OPENING.match(body)
    return body if opening is None else body[opening.end() :].removesuffix("```").strip()
