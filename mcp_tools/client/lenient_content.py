"""Repairs the content of an external server's results: unknown blocks become text, missing fields are filled."""

import json
import re
from functools import partial
from typing import Any

from agent.core.content_blocks import is_text_type
from agent.core.failure_fields import is_blank, is_failure_value
from agent.core.json_texts import write_text
from mcp_tools.client.lenient_messages import find_words
from mcp_tools.client.valid_fields import Validate, is_valid, select_valid_fields

_REQUIRED = {
    "text": ("type", "text"),
    "image": ("type", "data", "mimeType"),
    "audio": ("type", "data", "mimeType"),
    "resource": ("type", "resource"),
    "resource_link": ("type", "uri", "name"),
}
"""The fields that each kind of block needs."""
_OF_TEXT = frozenset({"type", "text", "annotations", "_meta"})
"""The fields of a block of text."""
_FIELDS = frozenset({"content", "structuredContent", "isError", "resultType", "_meta", "ttlMs", "cacheScope"})
_CONTENT_NAMES = frozenset({"toolResult", "result", "output", "contents"})
"""Names that servers give to the content."""
_RESULT_MARKS = frozenset({"content", "structuredContent", "structured_content"})
"""An object with one of these fields is a result in the protocol's form. Any other is data, whose own fields may have
the same names as the protocol's."""
_SIGNATURES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How base64 data of the usual image formats begins."""
_UNKNOWN_TYPE = "application/octet-stream"
_UNKNOWN_URI = "unknown:resource"
_KINDS_WITHOUT_BYTES = ("text", "resource", "resource_link")
_MAX_TYPE_CHARS = 200
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,100}(?:=|\Z|[A-Za-z0-9+/\s])")
"""How base64 begins, in contrast to most texts."""


def name_fields(result: dict[str, Any]) -> None:
    """Gives the fields of a call's result the names of the protocol, in place."""
    if _RESULT_MARKS & result.keys():
        _rename_python_fields(result)
    _move_other_fields(result)
    if isinstance(blocks := result.get("content"), list):
        result["content"] = [_name_media(block) if isinstance(block, dict) else block for block in blocks]


def _rename_python_fields(result: dict[str, Any]) -> None:
    """The SDK passes over a failure that is named so. Where the two names disagree, the call failed: libraries write
    `isError: false` unasked, and nobody writes a failure without cause.
    """
    if "is_error" in result:
        failed = result.pop("is_error")
        if not is_failure_value(result.get("isError")):
            result["isError"] = failed
    if "structured_content" in result and result.get("structuredContent") is None:
        result["structuredContent"] = result.pop("structured_content")


def repair_call_result(result: dict[str, Any], validate: Validate) -> None:
    """Repairs the result of a tool's call in place. What cannot be read as a block becomes text."""
    result["content"] = [
        _repair_block(block, partial(_validate_block, validate)) for block in _list_items(result.get("content"))
    ]
    result["isError"] = is_failure_value(result.get("isError"))
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        result["structuredContent"] = {"result": structured}  # as SDKs wrap results that are not objects


def _move_other_fields(result: dict[str, Any]) -> None:
    """Makes fields that the protocol does not have, as in its first drafts (`toolResult`), the content of a call's
    result that has no other, in place. An error alone is a failure. Beside other content they are added to it.
    """
    if result["resultType"] != "complete":
        return
    other = {key: value for key, value in result.items() if key not in _FIELDS}
    for key in other:
        del result[key]
    if result.get("structuredContent") is not None or result.get("content") not in (None, [], ""):
        _add_other_fields(result, other)
        return
    for key, value in other.items():
        if key in _CONTENT_NAMES and len(other) == 1:
            if isinstance(value, list | str):
                result["content"] = value
            else:
                result["structuredContent"] = value
            return
    if other:
        result["structuredContent"] = other
    if other.keys() == {"error"} and is_failure_value(other["error"]):
        result["isError"] = True


def _add_other_fields(result: dict[str, Any], other: dict[str, Any]) -> None:
    """Adds fields that the protocol does not have to the content of a call's result, in place: to structured content,
    else as text, because beside a text they are as often notes, such as the usage, as data: the text stays the value of
    the result. A text under `error`, or an object that names no success, is a failure, and its words are added.
    """
    if not other:
        return
    blocks = _list_items(result.get("content"))
    text = "\n".join(str(block.get("text", "")) if isinstance(block, dict) else _to_text(block) for block in blocks)
    error = other.get("error")
    if isinstance(error, str | dict) and is_failure_value(error):
        result["isError"] = True
        words = find_words(error)
        if words not in text:
            blocks.append(words)
        if isinstance(error, str):
            del other["error"]
    other = {
        key: value
        for key, value in other.items()
        if not (is_blank(value) or (isinstance(value, str) and value in text))
    }
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        result["structuredContent"] = {**other, **structured}
    elif other:
        blocks.append(json.dumps(other, ensure_ascii=False))
    if blocks:
        result["content"] = blocks


def name_contents(result: dict[str, Any]) -> None:
    """Gives the contents of a resource their name, in place, if they have that of a call's blocks or none at all."""
    if result.get("contents") is None:
        is_resource = "text" in result or "blob" in result
        result["contents"] = result.pop("content", dict(result) if is_resource else None)


def repair_contents(result: dict[str, Any], uri: str, validate: Validate) -> None:
    """Repairs the contents of a resource in place; `uri` is the one that was requested."""
    validate_item = partial(_validate_content, validate)
    result["contents"] = [_repair_resource(item, uri, validate_item) for item in _list_items(result.get("contents"))]


def _name_media(block: dict[str, Any]) -> dict[str, Any]:
    """A picture, sound or other bytes in the form of a model's API, as the protocol has them: base64 in `source`, a
    data URL, a kind that the protocol does not know (`video`). Any other block as it is."""
    if block.get("type") in _KINDS_WITHOUT_BYTES:
        return block
    source = block["source"] if isinstance(block.get("source"), dict) else block
    data, kind = source.get("data"), source.get("mimeType") or source.get("media_type")
    linked = block.get("image_url")
    address = data or (linked.get("url") if isinstance(linked, dict) else linked)
    if isinstance(address, str) and address.startswith("data:") and ";base64," in address[:_MAX_TYPE_CHARS]:
        head, _, data = address.partition(",")
        kind = head.removeprefix("data:").partition(";")[0] or kind
    elif block.get("type") in _REQUIRED and source is block:
        return block
    if not (isinstance(kind, str) and isinstance(data, str) and _BASE64.match(data)) or is_text_type(kind):
        return block
    others: dict[str, Any] = {name: block[name] for name in ("annotations", "_meta") if name in block}
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {**others, "type": family, "data": data, "mimeType": kind}
    resource = {"uri": _UNKNOWN_URI, "blob": data, "mimeType": kind}
    return {**others, "type": "resource", "resource": resource}


def _list_items(content: object) -> list[Any]:
    """The items of a list; a single item is a list of one, and null is an empty list."""
    if isinstance(content, list):
        return [item for item in content if item is not None]
    return [] if content is None else [content]


def _repair_block(block: object, validate: Validate) -> dict[str, Any]:
    if not isinstance(block, dict):
        return {"type": "text", "text": _to_text(block)}
    if is_valid(block, validate):
        return block
    filled = _fill_block(block)
    repaired, _ = select_valid_fields(filled, _REQUIRED.get(filled["type"], ("type",)), validate)
    if repaired is not None:
        return repaired
    text = block.get("text")
    if not isinstance(text, str):
        return {"type": "text", "text": _to_text(block)}
    others = {key: value for key, value in block.items() if key not in _OF_TEXT and value is not None}
    return {"type": "text", "text": f"{text}\n{_to_text(others)}" if others else text}


def _repair_resource(item: object, uri: str, validate: Validate) -> dict[str, Any]:
    """The contents of a resource with the fields that are valid; `uri` if it states no address."""
    resource = dict(item) if isinstance(item, dict) else {"text": _to_text(item)}
    if not isinstance(resource.get("uri"), str):
        resource["uri"] = uri
    if not isinstance(resource.get("blob"), str):
        resource.pop("blob", None)
        resource["text"] = _to_text(resource.get("text"))
    repaired, _ = select_valid_fields(resource, ("uri", "blob" if "blob" in resource else "text"), validate)
    return repaired or {"uri": uri, "text": _to_text(item)}


def _fill_block(block: dict[str, Any]) -> dict[str, Any]:
    """A copy of the block with its kind, and the fields that its kind requires."""
    filled = {key: value for key, value in block.items() if value is not None}
    if not isinstance(filled.get("type"), str):
        filled["type"] = _guess_kind(block)
    if filled["type"] == "text" and "text" in filled:
        filled["text"] = _to_text(filled["text"])
    if filled["type"] in ("image", "audio") and not isinstance(filled.get("mimeType"), str):
        data = str(filled.get("data", ""))
        filled["mimeType"] = next((kind for head, kind in _SIGNATURES.items() if data.startswith(head)), _UNKNOWN_TYPE)
    resource = filled.get("resource")
    if filled["type"] == "resource" and isinstance(resource, dict) and not {"text", "blob"} & resource.keys():
        filled = {**resource, "type": "resource_link"}  # its address is all there is
    if filled["type"] == "resource" and isinstance(filled.get("resource"), dict):
        filled["resource"] = _repair_resource(filled["resource"], _UNKNOWN_URI, lambda _: None)
    if filled["type"] == "resource_link" and isinstance(filled.get("uri"), str):
        filled.setdefault("name", filled["uri"])
    return filled


def _guess_kind(block: dict[str, Any]) -> str:
    if "text" in block:
        return "text"
    if "data" in block:
        return "audio" if str(block.get("mimeType")).startswith("audio/") else "image"
    return "resource" if "resource" in block else "resource_link"


def _to_text(value: object) -> str:
    return "" if value is None else write_text(value)


def _validate_block(validate: Validate, block: dict[str, Any]) -> None:
    validate({"content": [block], "resultType": "complete"})


def _validate_content(validate: Validate, item: dict[str, Any]) -> None:
    validate({"contents": [item], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
