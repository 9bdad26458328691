"""The text of an S/MIME part that is signed as a whole (`signed-data`, RFC 8551, 3.5.2): in the clear, within the
envelope of its signature (RFC 5652, 5.1)."""

from typing import NamedTuple

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_OBJECT_ID, _OCTETS, _CONTENT = 0x06, 0x04, 0xA0
_CONSTRUCTED = 0x20
_OPEN_END = 0x80
"""The length of a value that ends with two zeros (ITU-T X.690, 8.1.3.6), as Outlook writes it."""
_MAX_DEPTH = 40


class _Value(NamedTuple):
    """A value in the Basic Encoding Rules, and where the next one begins."""

    tag: int
    content: bytes
    end: int


def find_signed_content(data: bytes) -> bytes | None:
    """The message that was signed; None for an encrypted one, and for what is not S/MIME."""
    try:
        kind, wrapped = _list_values(_read(data, 0, 0).content)[:2]
        if kind != _Value(_OBJECT_ID, _SIGNED_DATA, kind.end) or wrapped.tag != _CONTENT:
            return None
        _version, _digests, enclosed = _list_values(_list_values(wrapped.content)[0].content)[:3]
        _kind, content = _list_values(enclosed.content)[:2]
        return _join_octets(_list_values(content.content)[0], 0)
    except (IndexError, ValueError, RecursionError):
        return None


def _read(data: bytes, place: int, depth: int) -> _Value:
    """The value at a place. Raises IndexError and ValueError for other data."""
    tag, length, start = data[place], data[place + 1], place + 2
    if length == _OPEN_END:
        end = start
        while data[end : end + 2] != b"\0\0":
            if depth > _MAX_DEPTH:
                raise ValueError("the values are nested too deeply")
            end = _read(data, end, depth + 1).end
        return _Value(tag, data[start:end], end + 2)
    if length > _OPEN_END:
        digits = length - _OPEN_END
        length, start = int.from_bytes(data[start : start + digits]), start + digits
    if start + length > len(data):
        raise ValueError("the value is cut")
    return _Value(tag, data[start : start + length], start + length)


def _list_values(content: bytes) -> list[_Value]:
    values, place = [], 0
    while place < len(content):
        values.append(_read(content, place, 0))
        place = values[-1].end
    return values


def _join_octets(value: _Value, depth: int) -> bytes:
    """The bytes of a string that may be written in pieces."""
    if depth > _MAX_DEPTH or value.tag & ~_CONSTRUCTED != _OCTETS:
        raise ValueError("not a string of octets")
    if not value.tag & _CONSTRUCTED:
        return value.content
    return b"".join(_join_octets(piece, depth + 1) for piece in _list_values(value.content))
