"""Texts that programs write for programs: signs escaped as JSON and XML do, and folded lines of calendars and contacts.

With the escapes and the folds no search finds the words.
"""

import json
import quopri
import re
from html import unescape
from html.entities import html5

_JSON = re.compile(r"\s*[\[{]")
_ESCAPED = re.compile(r"\\\\|(?:\\u[0-9a-fA-F]{4})+")
_LAYOUT = re.compile(r"\\\\|\\[nrtf/]")
_LAYOUT_SIGNS = {r"\n": "\n", r"\r": "", r"\t": "\t", r"\f": "\n", r"\/": "/"}
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_SYNTAX = frozenset('"\\')
"""What would end a text or begin an escape."""
_XML = re.compile(r"\ufeff?\s*<[?!A-Za-z]")
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_DATA = re.compile(
    r"[A-Za-z0-9+/]{60,}+(?:\s{1,3}+[A-Za-z0-9+/]{60,}+)*+"
    r"(?:\s{0,3}+[A-Za-z0-9+/]++(?:={1,2}(?!\w)|(?=\s?\")))?={0,2}"
)
"""Long lines, and a short one at the end that nothing else is."""
_DATA_LETTERS = tuple(map(re.compile, ("[g-z]", "[G-Z]", "[0-9]")))
"""What base64 of any length has, other than sequences of genes and numbers in hexadecimal."""
_MIN_DATA = 1_000
"""Characters; keys and signatures are shorter."""
_ENTRIES = re.compile(r"\s*BEGIN:V(?:CALENDAR|CARD)\b", re.IGNORECASE)
_FOLD = re.compile(r"\n[ \t]")
_QUOTED_PRINTABLE = re.compile(
    r"^(?=[^:\n]*ENCODING=QUOTED-PRINTABLE)([^:\n]*+):((?:[^\n]*=\n)*[^\n]*)", re.IGNORECASE | re.MULTILINE
)
_CHARSET = re.compile(r"CHARSET=([\w-]+)", re.IGNORECASE)
_ESCAPED_MARK = re.compile(r"\\([nN,;\\])")


def leave_out_data(text: str) -> tuple[str, int]:
    """The text without pictures and other files in base64, and how many characters they have. They would fill an index
    with what nobody searches for."""
    sizes: list[int] = []

    def replace(match: re.Match[str]) -> str:
        if not _is_data(match[0]):
            return match[0]
        sizes.append(len(match[0]))
        return "[data]"

    return _DATA.sub(replace, text), sum(sizes)


def _is_data(text: str) -> bool:
    """Whether a text is long enough, has all kinds of letters, and lines of one length, unlike paths and names."""
    widths = set(map(len, text.split()[1:-1]))
    return len(text) >= _MIN_DATA and len(widths) <= 1 and all(kind.search(text) for kind in _DATA_LETTERS)


def decode_forms(text: str) -> str:
    """The text with its letters as they are meant. Line ends are line feeds."""
    if "\\" in text and _JSON.match(text):
        text = _STRING.sub(lambda string: _ESCAPED.sub(_decode_letters, string[0]), text)
        return _STRING.sub(lambda string: _LAYOUT.sub(_decode_layout, string[0]), text) if _is_json(text) else text
    if _XML.match(text):
        return _REFERENCE.sub(_decode_reference, text)
    if _ENTRIES.match(text):
        return _ESCAPED_MARK.sub(_decode_mark, _QUOTED_PRINTABLE.sub(_decode_field, _FOLD.sub("", text)))
    return text


def _decode_letters(match: re.Match[str]) -> str:
    if match[0] == "\\\\":
        return match[0]
    units = [int(unit, 16) for unit in match[0][2:].split("\\u")]
    # Half of a pair stays escaped.
    letters = b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")
    return "".join(one if one.isprintable() and one not in _SYNTAX else f"\\u{ord(one):04x}" for one in letters)


def _is_json(text: str) -> bool:
    """Whether the text, or its first line, is JSON: a log may begin with a bracket too, and name paths of Windows."""
    for candidate in (text, text.lstrip().partition("\n")[0]):
        try:
            json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _decode_layout(match: re.Match[str]) -> str:
    return _LAYOUT_SIGNS.get(match[0], match[0])


def _decode_reference(match: re.Match[str]) -> str:
    letter = unescape(match[0]) if match[0][1] == "#" else html5.get(match[0][1:], match[0])
    return match[0] if letter == "<" else letter


def _decode_field(match: re.Match[str]) -> str:
    """A field of an older contact (vCard 2.1), whose value is quoted-printable."""
    value = quopri.decodestring(match[2].encode("utf-8", "replace"))
    charset = _CHARSET.search(match[1])
    try:
        return f"{match[1]}:{value.decode(charset[1] if charset else 'utf-8')}"
    except (LookupError, ValueError):
        return match[0]


def _decode_mark(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]
