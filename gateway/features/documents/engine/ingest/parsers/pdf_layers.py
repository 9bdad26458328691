"""The layers of a PDF that are off (optional content, PDF 1.7, 8.11): no viewer shows them, and they are left out."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from gateway.features.documents.engine.ingest.parsers.pdf_repair import iter_objects
from gateway.features.documents.engine.ingest.parsers.pdfium import open_pdfium

_USES = re.compile(rb"/OCProperties\b|/ObjStm\b")
_PROPERTIES = re.compile(rb"/OCProperties\s*(?:(?P<number>\d+)\s+\d+\s+R|(?P<dictionary><<.*))", re.DOTALL)
_DEFAULT = re.compile(rb"/D\s*(?:(?P<number>\d+)\s+\d+\s+R|(?P<dictionary><<.*))", re.DOTALL)
_BASE_OFF = re.compile(rb"/BaseState\s*/OFF\b")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R\b")
_NAME = re.compile(rb"/Name\s*(?:\((?P<text>(?:[^()\\]|\\.)*)\)|<(?P<digits>[0-9A-Fa-f\s]*)>)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_SET = re.compile(rb"/Type\s*/OCMD\b")
_ONE_MEMBER = re.compile(rb"/OCGs\s+(\d+)\s+\d+\s+R\b")
_POLICY = re.compile(rb"/P\s*/(\w+)")
_STREAM_HEAD = re.compile(rb"\bobj\s*<<(?:(?!endobj|stream).){0,4000}?>>\s*stream\b", re.DOTALL)
_OF_LAYER = re.compile(rb"/OC\s+(\d+)\s+\d+\s+R\b")
_FORM = re.compile(rb"/Subtype\s*/Form\b")
_MAX_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class ShownLayers:
    """A file as it is shown, and a note about its layers."""

    data: bytes
    note: str = ""


def leave_out_hidden(data: bytes, password: str | None) -> ShownLayers:
    """The file without the text of layers that are off when it is opened."""
    if len(data) > _MAX_BYTES or not _USES.search(data):
        return ShownLayers(data)
    groups = _find_groups(dict(iter_objects(data)))
    if not groups.hidden_names:
        return ShownLayers(data)
    rest = _hide_forms(data, groups)
    with open_pdfium(rest, password) as pdfium:
        names = groups.hidden_names - groups.shown_names | ({""} if groups.are_sets_hidden else set())
        rest = (pdfium.remove_layers(names) if pdfium is not None else None) or rest
    listed = ", ".join(sorted(groups.hidden_names))
    if rest == data:
        return ShownLayers(data, f"layers that are off, which no viewer shows, may have been read too: {listed}")
    return ShownLayers(rest, f"layers that are off, which no viewer shows, were left out: {listed}")


def _hide_forms(data: bytes, groups: "_Groups") -> bytes:
    """The file with drawings that are hidden as a whole under a type that nobody draws; its length stays."""

    def hide(match: "re.Match[bytes]") -> bytes:
        layer = _OF_LAYER.search(match[0])
        is_hidden = layer is not None and int(layer[1]) in groups.hidden
        return _FORM.sub(lambda form: form[0][:-4] + b"None", match[0]) if is_hidden else match[0]

    return _STREAM_HEAD.sub(hide, data)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The layers of a file: the numbers of what is off, groups of layers among them, and names."""

    hidden: frozenset[int] = frozenset()
    hidden_names: frozenset[str] = frozenset()
    shown_names: frozenset[str] = frozenset()
    are_sets_hidden: bool = False


def _find_groups(objects: dict[int, bytes]) -> _Groups:
    properties = next((match for content in objects.values() if (match := _PROPERTIES.search(content))), None)
    if properties is None:
        return _Groups()
    dictionary = _resolve(properties, objects)
    every = _list_references(dictionary, b"OCGs")
    default = _DEFAULT.search(dictionary)
    settings = _resolve(default, objects) if default else b""
    hidden = set(_list_references(settings, b"OFF"))
    if _BASE_OFF.search(settings):
        hidden = set(every) - set(_list_references(settings, b"ON"))
    names = {number: _read_name(objects.get(number, b"")) for number in {*every, *hidden}}
    sets = {number: _is_set_hidden(content, hidden) for number, content in objects.items() if _SET.search(content)}
    return _Groups(
        frozenset({*hidden, *(number for number, is_hidden in sets.items() if is_hidden)}),
        frozenset(name for number, name in names.items() if name and number in hidden),
        frozenset(name for number, name in names.items() if number not in hidden),
        bool(sets) and all(sets.values()),
    )


def _is_set_hidden(content: bytes, hidden: Collection[int]) -> bool:
    """Whether a group of layers without an expression is off: by default, where all of its layers are."""
    members = _list_references(content, b"OCGs") or [int(one) for one in _ONE_MEMBER.findall(content)]
    policy = _POLICY.search(content)
    are_off = [number in hidden for number in members]
    if not members or b"/VE" in content:
        return False
    match policy[1] if policy is not None else b"AnyOn":
        case b"AnyOn":
            return all(are_off)
        case b"AllOn":
            return any(are_off)
        case _:
            return False


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
