"""Content blocks that tools return besides text: images, audio, resources and links, in MCP's form.

A block is the JSON object of the protocol (`ContentBlock`, revisions 2025-06-18 and later). Models read the text of
`describe_block`. The whole block is kept, within limits, for the caller of the tool, and never in the log.
"""

import base64
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject

MAX_NAME_CHARS = 200
"""Longest name, type or address in a description, in characters. Foreign ones may have any length."""
MAX_URI_CHARS = 2_000
"""Longest address of a resource, in characters. A shortened address could not be opened."""
MAX_DESCRIPTION_CHARS = 1_000
"""Longest description of a linked resource, in characters."""
MAX_LISTED_OMISSIONS = 20
"""How many omitted blocks are named one by one."""
_OMISSION_REASON = {
    True: "images, audio and files of a result are limited to 5 MB",
    False: "texts of a result are limited to AGENT_TOOL_OUTPUT_CHARS characters",
}
"""Why a block was omitted: True for its bytes, False for its text."""

ARTIFACT_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".txt": "text/plain",
    ".md": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
}
"""MIME types of artifacts by the end of their name. No SVG or HTML: browsers run scripts in them."""
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/ld+json", "application/yaml")
_ARTIFACT = "stepgate/artifact"
"""The key in a block's `_meta` under which an artifact has its name."""


def describe_block(block: JsonObject) -> str:
    """The part of a block that a model reads: its text, a link, or a note with type and size in bytes."""
    payload = _get_payload(block)
    if (text := _get_text(payload)) is not None:
        return text
    if block.get("type") == "resource_link":
        link = f"[{_shorten(block.get('name'))}]({_shorten(block.get('uri'), MAX_URI_CHARS)})"
        description = block.get("description")
        return f"{link}: {_shorten(description, MAX_DESCRIPTION_CHARS)}" if description else link
    return f"[{_describe_payload(block)}: not shown, because it is not text]"


def is_text_type(media_type: str) -> bool:
    """Whether content of this MIME type is text."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith(_TEXT_TYPES) or kind.endswith(("+json", "+xml"))


def decode_text_resource(block: JsonObject) -> JsonObject:
    """The block, with the text of a resource whose type is a text but which came as base64. Bytes that are not UTF-8
    stay.
    """
    resource = _get_payload(block)
    blob, media_type = resource.get("blob"), resource.get("mimeType")
    if not (isinstance(blob, str) and isinstance(media_type, str) and is_text_type(media_type)):
        return block
    try:
        text = base64.b64decode(blob).decode()
    except ValueError:
        return block
    return {**block, "resource": {**{key: value for key, value in resource.items() if key != "blob"}, "text": text}}


def is_plain_text(blocks: Sequence[JsonObject]) -> bool:
    """Whether the blocks contain nothing but one plain text, or nothing at all."""
    return not blocks or (len(blocks) == 1 and blocks[0].keys() == {"type", "text"})


def limit_blocks(blocks: Sequence[JsonObject], chars: int, size: int) -> tuple[JsonObject, ...]:
    """Limits blocks to `chars` characters of text, another `chars` characters of names, addresses and metadata, and
    `size` bytes of base64 data.

    A text that is too long is cut, with a note. A block that does not fit is replaced by a text that names it.
    """
    kept_blocks: list[JsonObject] = []
    missing, written = 0, chars
    for block in blocks:
        payload = _get_payload(block)
        text, data = _get_text(payload) or "", _get_bytes(payload) or ""
        rest = sum(len(part) for part in iter_texts(block)) - len(text) - len(data)
        if len(data) > size or rest > written or (text and not chars):
            missing += 1
            if missing <= MAX_LISTED_OMISSIONS:
                kept_blocks.append(build_omission_notice(block, _OMISSION_REASON[len(data) > size]))
            continue
        size, written = size - len(data), written - rest
        kept_blocks.append(block if len(text) <= chars else _truncate_block(block, text, chars))
        chars = max(0, chars - len(text))
    if missing > MAX_LISTED_OMISSIONS:
        kept_blocks.append(_build_text_block(f"[{missing - MAX_LISTED_OMISSIONS:,} more were omitted]"))
    return tuple(kept_blocks)


def build_omission_notice(block: JsonObject, why: str) -> JsonObject:
    """Builds the text that replaces an omitted block."""
    return _build_text_block(f"[{_describe_payload(block)}: omitted: {why}]")


def strip_bytes(blocks: Sequence[JsonObject]) -> tuple[list[JsonObject], list[str]]:
    """The blocks with empty strings in place of their base64 data, and the data in order. Scanning base64 for
    sensitive text would take seconds and find nothing.
    """
    bare: list[JsonObject] = []
    parts: list[str] = []
    for block in blocks:
        parts.append(_get_bytes(_get_payload(block)) or "")
        bare.append(_set_bytes(block, ""))
    return bare, parts


def restore_bytes(blocks: Sequence[JsonObject], parts: Sequence[str]) -> list[JsonObject]:
    """Puts the data from `strip_bytes` back."""
    return [_set_bytes(block, part) for block, part in zip(blocks, parts, strict=True)]


def build_artifact_block(name: str, content: bytes) -> JsonObject:
    """Builds the block of a file that a tool has made: a picture, a text, or other bytes, by its name and content."""
    media_type = get_artifact_type(name)
    if media_type.startswith("image/"):
        data = base64.b64encode(content).decode()
        return {"type": "image", "data": data, "mimeType": media_type, "_meta": {_ARTIFACT: name}}
    resource: JsonObject = {"uri": f"artifact:{quote(name)}", "mimeType": media_type}
    try:
        resource["text"] = content.decode()  # as text, so that secrets are found in it
    except UnicodeDecodeError:
        resource["blob"] = base64.b64encode(content).decode()
    return {"type": "resource", "resource": resource, "_meta": {_ARTIFACT: name}}


def get_artifact_type(name: str) -> str:
    """The MIME type of an artifact by its name: pictures that browsers show without running anything in them,
    texts, and `application/octet-stream`.
    """
    return ARTIFACT_TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")


def read_artifact(blocks: Iterable[JsonObject], name: str) -> bytes | None:
    """The content of the artifact of this name, or None if the blocks do not hold it."""
    for block in blocks:
        marks = block.get("_meta")
        if isinstance(marks, dict) and marks.get(_ARTIFACT) == name:
            payload = _get_payload(block)
            text = _get_text(payload)
            return base64.b64decode(_get_bytes(payload) or "") if text is None else text.encode()
    return None


def _set_bytes(block: JsonObject, data: str) -> JsonObject:
    payload = _get_payload(block)
    name = next((name for name in ("data", "blob") if name in payload), None)
    if name is None:
        return block
    return {**block, name: data} if payload is block else {**block, "resource": {**payload, name: data}}


def _get_payload(block: JsonObject) -> JsonObject:
    """The object that holds a block's text or data: the block itself, or the resource in it."""
    resource = block.get("resource")
    return resource if block.get("type") == "resource" and isinstance(resource, dict) else block


def _get_text(held: JsonObject) -> str | None:
    text = held.get("text")
    return text if isinstance(text, str) else None


def _get_bytes(held: JsonObject) -> str | None:
    data = held.get("data", held.get("blob"))
    return data if isinstance(data, str) else None


def _describe_payload(block: JsonObject) -> str:
    """Describes a block by its type or address; for binary data also by MIME type and size."""
    payload = _get_payload(block)
    name = _shorten(block.get("type") or "content") if payload is block else _shorten(payload.get("uri"))
    if (data := _get_bytes(payload)) is None:
        return name
    size = len(data) * 3 // 4 - data[-2:].count("=")  # size of the decoded base64
    return f"{name}, {_shorten(payload.get('mimeType') or 'of unknown type')}, {size:,} bytes"


def _truncate_block(block: JsonObject, text: str, chars: int) -> JsonObject:
    cut = f"{text[:chars]}\n[cut: this text had {len(text):,} characters; {_OMISSION_REASON[False]}]"
    payload = _get_payload(block)
    return {**block, "text": cut} if payload is block else {**block, "resource": {**payload, "text": cut}}


def _build_text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _shorten(value: object, limit: int = MAX_NAME_CHARS) -> str:
    text = str(value)
    return text if len(text) <= limit else text[:limit] + "…"
