"""The content of a tool result as a client can take it: texts that fit a context, blocks that its revision knows."""

from collections.abc import Sequence

import mcp_types as types
from pydantic import TypeAdapter

from agent.core.content import told
from agent.core.models import JsonObject
from mcp_tools.agent_tools import TEXT_CHARS

_BLOCKS: TypeAdapter[list[types.ContentBlock]] = TypeAdapter(list[types.ContentBlock])
_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revisions that brought a kind of block: an older client could not read the result it stands in."""
_SEARCHED = 2_000
"""How far before the end a text is cut at a line, where there is one."""


def shown(text: str, *, whole: bool = True) -> types.TextContent:
    """Text a client can put into a context, cut where it is too long. `whole`: all of it is in the structured content,
    which is said; else how much was cut off."""
    return types.TextContent(type="text", text=_fitting(text, whole=whole, room=TEXT_CHARS))


def content_of(blocks: Sequence[JsonObject], revision: str, *, whole: bool) -> list[types.ContentBlock]:
    """The blocks of a foreign tool's result for a client of this revision of the protocol: as they were, but for texts
    that are too long together, and for kinds it does not know, which are told in words."""
    content: list[types.ContentBlock] = []
    room, missing = TEXT_CHARS, 0
    for block, kept in zip(_BLOCKS.validate_python(list(blocks)), blocks, strict=True):
        if isinstance(block, types.TextContent) and not room:
            missing += len(block.text)
        elif isinstance(block, types.TextContent):
            content.append(block.model_copy(update={"text": _fitting(block.text, whole=whole, room=room)}))
            room = max(0, room - len(block.text))
        elif revision < _SINCE.get(block.type, ""):
            content.append(types.TextContent(type="text", text=told(kept)))
        else:
            content.append(block)
    if missing:
        content.append(types.TextContent(type="text", text=_cut(missing, whole=whole)))
    return content


def _fitting(text: str, *, whole: bool, room: int) -> str:
    if len(text) <= room:
        return text
    line = text.rfind("\n", max(0, room - _SEARCHED), room)
    at = line if line > 0 else room
    return f"{text[:at]}\n{_cut(len(text) - at, whole=whole)}"


def _cut(chars: int, *, whole: bool) -> str:
    return (
        f"[cut here; {'the whole is in the structured content' if whole else f'{chars:,} more characters do not fit'}]"
    )
