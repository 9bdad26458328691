"""Blocks of a prompt: text from elsewhere between tags. What stands in one is data, never instructions."""

import re

_TAG = re.compile(
    r"<(?=\s*/\s*(?:input|output|data)\b|"
    r"\s*/?\s*(?:history|ground|memory|earlier_results|results?|failed|replan|user_request|task|intent|evidence|answer"
    r"|claim)\b)",
    re.IGNORECASE,
)
"""The opening of a tag that our prompts delimit blocks with. The first three are HTML's too: only their ends matter."""


def format_block(tag: str, text: str, /, **attributes: str) -> str:
    """Returns `text` as a block; tags of blocks inside it are made inert, however they are written."""
    labels = "".join([f' {key}="{_format_attribute(value)}"' for key, value in attributes.items() if value])
    inert = _TAG.sub(lambda _: "<\\", text)
    return f"<{tag}{labels}>\n{inert}\n</{tag}>"


def _format_attribute(value: str) -> str:
    return value.replace('"', "'").replace("<", "").replace(">", "").replace("\n", " ")[:200]
