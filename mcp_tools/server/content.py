"""Converts the content of tool results for a client: limits text, and replaces block types the client does not know."""

from collections.abc import Sequence

import mcp_types as types
from pydantic import TypeAdapter

from agent.core.content_blocks import describe_block
from agent.core.models import JsonObject
from mcp_tools.server.agent_tools import TEXT_CHARS

_BLOCKS: TypeAdapter[list[types.ContentBlock]] = TypeAdapter(list[types.ContentBlock])
_BLOCK_INTRODUCED_IN = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The protocol version that introduced a block type: an older client could not read a result with it."""
_LINE_SEARCH_CHARS = 2_000
"""How many characters before the limit a line break is looked for, at which the text is cut."""


def make_text_content(text: str, *, whole: bool = True) -> types.TextContent:
    """A text block, cut if it is longer than `TEXT_CHARS`.

    `whole`: the structured content has the complete text, so the note about the cut refers to it.
    """
    return types.TextContent(type="text", text=_truncate(text, whole=whole, limit=TEXT_CHARS))


def convert_blocks(blocks: Sequence[JsonObject], revision: str, *, whole: bool) -> list[types.ContentBlock]:
    """The blocks of an external tool's result for a client of this protocol version.

    Texts share `TEXT_CHARS`; a block type that this version does not know is described in words.
    """
    content: list[types.ContentBlock] = []
    limit, left_out = TEXT_CHARS, 0
    for block, stored_block in zip(_BLOCKS.validate_python(list(blocks)), blocks, strict=True):
        if isinstance(block, types.TextContent) and not limit:
            left_out += len(block.text)
        elif isinstance(block, types.TextContent):
            content.append(block.model_copy(update={"text": _truncate(block.text, whole=whole, limit=limit)}))
            limit = max(0, limit - len(block.text))
        elif revision < _BLOCK_INTRODUCED_IN.get(block.type, ""):
            content.append(types.TextContent(type="text", text=describe_block(stored_block)))
        else:
            content.append(block)
    if left_out:
        content.append(types.TextContent(type="text", text=_format_truncation_note(left_out, whole=whole)))
    return content


def _truncate(text: str, *, whole: bool, limit: int) -> str:
    if len(text) <= limit:
        return text
    line = text.rfind("\n", max(0, limit - _LINE_SEARCH_CHARS), limit)
    at = line if line > 0 else limit
    return f"{text[:at]}\n{_format_truncation_note(len(text) - at, whole=whole)}"


def _format_truncation_note(chars: int, *, whole: bool) -> str:
    return f"[cut here; {'the structured content is complete' if whole else f'{chars:,} more characters do not fit'}]"
