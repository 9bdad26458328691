"""The layers of a PDF that are off (optional content, PDF 1.7, 8.11): no viewer shows them, but their text is read."""

import re
from collections.abc import Iterator

from gateway.features.documents.engine.ingest.parsers.pdf_repair import iter_objects

_USES = re.compile(rb"/OCProperties\b|/ObjStm\b")
_PROPERTIES = re.compile(rb"/OCProperties\s*(?:(?P<number>\d+)\s+\d+\s+R|(?P<dictionary><<.*))", re.DOTALL)
_DEFAULT = re.compile(rb"/D\s*(?:(?P<number>\d+)\s+\d+\s+R|(?P<dictionary><<.*))", re.DOTALL)
_BASE_OFF = re.compile(rb"/BaseState\s*/OFF\b")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R\b")
_NAME = re.compile(rb"/Name\s*(?:\((?P<text>(?:[^()\\]|\\.)*)\)|<(?P<digits>[0-9A-Fa-f\s]*)>)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_MAX_BYTES = 100 * 2**20


def list_hidden_layers(data: bytes) -> list[str]:
    """The names of the layers that are off when the file is opened, as far as its objects can be found."""
    if len(data) > _MAX_BYTES or not _USES.search(data):
        return []
    objects = dict(iter_objects(data))
    return [name for number in _iter_hidden(objects) if (name := _read_name(objects.get(number, b"")))]


def _iter_hidden(objects: dict[int, bytes]) -> Iterator[int]:
    """Yields the numbers of the groups that are off."""
    for content in objects.values():
        match = _PROPERTIES.search(content)
        if match is None:
            continue
        properties = _resolve(match, objects)
        default = _DEFAULT.search(properties)
        settings = _resolve(default, objects) if default else b""
        if _BASE_OFF.search(settings):
            visible = set(_list_references(settings, b"ON"))
            yield from (one for one in _list_references(properties, b"OCGs") if one not in visible)
        else:
            yield from _list_references(settings, b"OFF")
        return


def _resolve(match: "re.Match[bytes]", objects: dict[int, bytes]) -> bytes:
    return match["dictionary"] or objects.get(int(match["number"]), b"")


def _list_references(dictionary: bytes, name: bytes) -> list[int]:
    match = re.search(rb"/" + name + rb"\s*\[([^\]]*)\]", dictionary)
    return [int(number) for number in _REFERENCE.findall(match[1])] if match else []


def _read_name(group: bytes) -> str:
    match = _NAME.search(group)
    if match is None:
        return ""
    if match["text"] is None:
        digits = b"".join(match["digits"].split())
        raw = bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
    else:
        raw = _ESCAPE.sub(rb"\1", match["text"])
    text = raw.decode("utf-16", "replace") if raw[:2] in (b"\xfe\xff", b"\xff\xfe") else raw.decode("cp1252", "replace")
    return " ".join(text.split())
