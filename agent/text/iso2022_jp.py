"""ISO-2022-JP as mail programs write it: with the signs of Windows (①, ㈱, 髙) and half-width kana, which the standard
lacks. Microsoft calls it code page 50221; no codec of Python reads both."""

import codecs

NAME = "iso2022_jp"
_ERRORS = "stepgate-iso2022-jp"
_SHIFTS = ((b"\x0e", b"\x1b(I"), (b"\x0f", b"\x1b(B"))
"""What switches to kana and back in code page 50222."""


def decode_iso2022_jp(data: bytes) -> str:
    """The text, with U+FFFD for what is in no form of the encoding."""
    for shift, escape in _SHIFTS:
        data = data.replace(shift, escape)
    return data.decode("iso2022_jp_ext", _ERRORS)


def _decode_pair(error: UnicodeError) -> tuple[str, int]:
    """The sign of Windows for two bytes without one in the standard (JIS X 0208), by their place in Shift_JIS."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.end]
    if len(pair) != 2 or not all(0x21 <= byte <= 0x7E for byte in pair):
        return "\ufffd", error.end
    row, cell = divmod((pair[0] - 0x21) * 94 + pair[1] - 0x21, 188)
    shifted = bytes([row + (0x81 if row < 31 else 0xC1), cell + (0x40 if cell < 63 else 0x41)])
    try:
        return shifted.decode("cp932"), error.end
    except UnicodeDecodeError:
        return "\ufffd", error.end


codecs.register_error(_ERRORS, _decode_pair)
