"""Content blocks as tools return them beside their text: pictures, sound, resources and links to them, in MCP's form.

A block is the JSON object of the protocol (`ContentBlock`, revisions 2025-06-18 and later). Models read what
`told` says of it; the whole block is kept within limits for who asked for the call, and never in the log.
"""

from collections.abc import Sequence

from agent.core.models import JsonObject
from agent.core.trees import texts_of

NAME_CHARS = 200
"""How much of a name, kind or address a description repeats: it is somebody else's, and can be of any length."""
URI_CHARS = 2_000
"""The longest address of a resource: cut, it could not be read any more."""
NAMED = 20
"""How many blocks that were left out are told one by one."""
_BEYOND = {
    True: "the pictures, sound and files of a result may have no more bytes than AGENT_TOOL_CONTENT_BYTES",
    False: "the texts of a result may have no more characters than AGENT_TOOL_OUTPUT_CHARS",
}
"""Why one is left out: for its bytes, or for its words."""


def told(block: JsonObject) -> str:
    """What a model reads of a block: its text, the link, or what cannot be shown, with kind and size in bytes."""
    held = _held(block)
    if (text := _text_of(held)) is not None:
        return text
    if block.get("type") == "resource_link":
        return f"[{_short(block.get('name'))}]({_short(block.get('uri'), URI_CHARS)})"
    return f"[{_what(block)}: not shown, for it is no text]"


def is_told(blocks: Sequence[JsonObject]) -> bool:
    """Whether the text of these blocks says all there is: one plain text, or nothing."""
    return not blocks or (len(blocks) == 1 and blocks[0].keys() == {"type", "text"})


def within(blocks: Sequence[JsonObject], chars: int, size: int) -> tuple[JsonObject, ...]:
    """The blocks as far as there is room for `chars` characters of text, as many of everything else that is written in
    them (names, addresses, metadata), and `size` bytes of pictures, sound and files as they are sent.

    A text that is too long is cut, and says so; where a block had to be left out stands a text that tells which."""
    kept: list[JsonObject] = []
    missing, written = 0, chars
    for block in blocks:
        held = _held(block)
        text, data = _text_of(held) or "", _bytes_of(held) or ""
        rest = sum(len(part) for part in texts_of(block)) - len(text) - len(data)
        if len(data) > size or rest > written or (text and not chars):
            missing += 1
            if missing <= NAMED:
                kept.append(left_out(block, _BEYOND[len(data) > size]))
            continue
        size, written = size - len(data), written - rest
        kept.append(block if len(text) <= chars else _cut(block, text, chars))
        chars = max(0, chars - len(text))
    if missing > NAMED:
        kept.append(_worded(f"[{missing - NAMED:,} more were left out]"))
    return tuple(kept)


def left_out(block: JsonObject, why: str) -> JsonObject:
    """The text in the place of a block that is not passed on."""
    return _worded(f"[{_what(block)}: left out, for {why}]")


def without_bytes(blocks: Sequence[JsonObject]) -> tuple[list[JsonObject], list[str]]:
    """The blocks with empty texts in the place of their bytes, and those bytes in order: what has to look at every
    text of a block has nothing to find in them, and would take seconds."""
    bare: list[JsonObject] = []
    parts: list[str] = []
    for block in blocks:
        parts.append(_bytes_of(_held(block)) or "")
        bare.append(_with_bytes(block, ""))
    return bare, parts


def with_bytes(blocks: Sequence[JsonObject], parts: Sequence[str]) -> list[JsonObject]:
    """The blocks with their bytes again."""
    return [_with_bytes(block, part) for block, part in zip(blocks, parts, strict=True)]


def _with_bytes(block: JsonObject, data: str) -> JsonObject:
    held = _held(block)
    name = next((name for name in ("data", "blob") if name in held), None)
    if name is None:
        return block
    return {**block, name: data} if held is block else {**block, "resource": {**held, name: data}}


def _held(block: JsonObject) -> JsonObject:
    """What holds a block's text or bytes: itself, or the resource in it."""
    resource = block.get("resource")
    return resource if block.get("type") == "resource" and isinstance(resource, dict) else block


def _text_of(held: JsonObject) -> str | None:
    text = held.get("text")
    return text if isinstance(text, str) else None


def _bytes_of(held: JsonObject) -> str | None:
    data = held.get("data", held.get("blob"))
    return data if isinstance(data, str) else None


def _what(block: JsonObject) -> str:
    """Its kind, or its address; of what type it is, and how large, where it is made of bytes."""
    held = _held(block)
    name = _short(block.get("type") or "content") if held is block else _short(held.get("uri"))
    if (data := _bytes_of(held)) is None:
        return name
    size = len(data) * 3 // 4 - data[-2:].count("=")  # what the base64 stands for
    return f"{name}, {_short(held.get('mimeType') or 'of no known type')}, {size:,} bytes"


def _cut(block: JsonObject, text: str, chars: int) -> JsonObject:
    cut = f"{text[:chars]}\n[cut: this text had {len(text):,} characters, and {_BEYOND[False]}]"
    held = _held(block)
    return {**block, "text": cut} if held is block else {**block, "resource": {**held, "text": cut}}


def _worded(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _short(value: object, limit: int = NAME_CHARS) -> str:
    text = str(value)
    return text if len(text) <= limit else text[:limit] + "…"
