"""The layers of a PDF that are off when it is opened: a reading of its own, apart from that of the parsers."""

import re
import zlib
from collections.abc import Iterator

MAX_BYTES = 100 * 2**20
_OBJECT = re.compile(rb"(?<!\d)(\d+)\s+\d+\s+obj\b(.*?)\bendobj\b", re.DOTALL)
_PACKED = re.compile(rb"/Type\s*/ObjStm\b.*?\bstream\r?\n(.*)", re.DOTALL)
_FIRST = re.compile(rb"/First\s+(\d+)")
_LIST = rb"\s*\[([^\]]*)\]"
_OFF = re.compile(rb"/OFF" + _LIST)
_ON = re.compile(rb"/ON" + _LIST)
_GROUP = re.compile(rb"/Type\s*/OCG\b")
_TEXT = re.compile(rb"/Name\s*(?:\(((?:\\.|[^\\)]){0,1000}+)\)|<([0-9A-Fa-f\s]{1,4000}+)>)", re.DOTALL)


def find_hidden_layers(data: bytes) -> list[str]:
    """The names of the layers that are off, without those that a layer has which is on."""
    if len(data) > MAX_BYTES or not re.search(rb"/OCProperties\b|/ObjStm\b", data):
        return []
    objects = dict(iter_objects(data))
    catalog = next((text for text in objects.values() if b"/OCProperties" in text), b"")
    settings = _find_dictionary(b"/D", _find_dictionary(b"/OCProperties", catalog, objects), objects)
    groups = {number: _read_name(text) for number, text in objects.items() if _GROUP.search(text)}
    off = set(_list_numbers(_OFF, settings))
    if re.search(rb"/BaseState\s*/OFF\b", settings):
        off = groups.keys() - set(_list_numbers(_ON, settings))
    on = {name for number, name in groups.items() if number not in off}
    return sorted({name for number, name in groups.items() if number in off and name} - on)


def _find_dictionary(key: bytes, text: bytes, objects: dict[int, bytes]) -> bytes:
    """The dictionary under a key, written there or in an object of its own."""
    match = re.search(key + rb"\s*(?:(\d+)\s+\d+\s+R|(?=<<))", text)
    if match is None:
        return b""
    if match[1] is not None:
        return objects.get(int(match[1]), b"")
    depth = 0
    for sign in re.finditer(rb"<<|>>", text[match.end() :]):
        depth += 1 if sign[0] == b"<<" else -1
        if not depth:
            return text[match.end() : match.end() + sign.end()]
    return text[match.end() :]


def iter_objects(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the objects of a file by number, each without its stream."""
    for match in _OBJECT.finditer(data):
        yield int(match[1]), match[2].partition(b"stream")[0]
        packed = _PACKED.search(match[2])
        first = _FIRST.search(match[2])
        if packed is None or first is None:
            continue
        try:
            text = zlib.decompressobj().decompress(packed[1], MAX_BYTES)
        except zlib.error:
            continue
        head = [int(one) for one in re.findall(rb"\d+", text[: int(first[1])])]
        starts = [int(first[1]) + one for one in head[1::2]]
        for number, start, end in zip(head[::2], starts, [*starts[1:], len(text)], strict=False):
            yield number, text[start:end]


def _list_numbers(pattern: re.Pattern[bytes], settings: bytes) -> list[int]:
    match = pattern.search(settings)
    return [int(one) for one in re.findall(rb"(\d+)\s+\d+\s+R", match[1])] if match is not None else []


def _read_name(group: bytes) -> str:
    match = _TEXT.search(group)
    if match is None:
        return ""
    raw = re.sub(rb"\\(.)", rb"\1", match[1], flags=re.DOTALL) if match[1] is not None else _read_hex(match[2])
    wide = raw[:2] in (b"\xfe\xff", b"\xff\xfe")
    return raw.decode("utf-16" if wide else "latin-1", "replace")


def _read_hex(digits: bytes) -> bytes:
    digits = b"".join(digits.split())
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
