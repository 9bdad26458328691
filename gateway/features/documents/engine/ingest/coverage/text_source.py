"""Markdown, plain text and CSV: all of their text."""

import codecs
import contextlib
import json
import re
from collections.abc import Iterator
from html import entities

from gateway.features.documents.engine.ingest.coverage.charsets import decode_switched
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_ESCAPES = re.compile(
    "\x1b\\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b\\][^\x07\x1b]*+(?:\x07|\x1b\\\\)|.\x08", re.DOTALL
)
"""Escape sequences of terminals, and letters that a backspace strikes out."""
_COMMENT = re.compile(r"^ {0,3}<!--(?:(?!-->).)*-->[ \t]*$", re.DOTALL | re.MULTILINE)
_MAPPING = re.compile(
    r"""(?:(?:["']?[A-Za-z_][\w .-]*["']?[ \t]*:(?:[ \t].*)?|[ \t]+.*|-[ \t].*|#.*|[ \t]*)(?:\n|$))+"""
)
"""Lines of a YAML mapping: keys, and what is indented or listed below them."""
_KEY = re.compile(r"""^(["']?[A-Za-z_][\w .-]*["']?)[ \t]*:""", re.MULTILINE)


def read_source(data: bytes, file_type: FileType, encoding: str, _deadline: float) -> SourceText:
    """Counts every word. The header of a Markdown file is counted apart where it is a YAML mapping, and left out where
    it has the title alone."""
    text = _decode(data, encoding)
    text = text.replace("\0", "")
    source = SourceText()
    if file_type == "txt":
        text = _take_data(_unfold(_ESCAPES.sub("", text)), source)
    if file_type == "md":
        text = _take_header(text, source)
        for comment in _COMMENT.findall(text):
            source.omit("comment", comment)
        text = _COMMENT.sub("", text)
    elif file_type == "csv" and (
        line := text.lstrip("\ufeff").partition("\n")[0].strip().strip('"')
    ).lower().startswith("sep="):
        source.omit("separator line", line)
        text = text.partition("\n")[2]
    if file_type == "csv":
        # Quotes are part of a cell's writing, not of its text.
        text = text.replace('\\\\"', " ").replace('"', " ")
    source.add("text", text)
    return source


def _unfold(text: str) -> str:
    """The text of a file that programs write for programs: escaped letters of JSON, folded lines of calendars."""
    start = text.lstrip()[:15].upper()
    if start[:1] in {"{", "["}:
        is_json = _is_json(text)
        pieces = (
            (_decode_letters(piece), True) if is_string else (piece, False) for is_string, piece in _split_strings(text)
        )
        return "".join(_decode_layout(piece) if is_string and is_json else piece for piece, is_string in pieces)
    if start[:1] == "<":
        return re.sub(r"&(#[xX]?[0-9a-fA-F]+|\w+);", _decode_reference, text)
    if not start.startswith(("BEGIN:VCALENDAR", "BEGIN:VCARD")):
        return text
    lines: list[list[str]] = []  # the pieces of each line
    is_coded = False
    for line in text.splitlines():
        is_folded = line[:1] in {" ", "\t"}
        if lines and (is_folded or (is_coded and lines[-1][-1].endswith("="))):
            lines[-1][-1] = lines[-1][-1].removesuffix("=")
            lines[-1].append(line[1:] if is_folded else line)
        else:
            lines.append([line])
            is_coded = False
        is_coded = is_coded or "quoted-printable" in line.lower()
    return re.sub(
        r"\\([\\nN])", lambda mark: mark[1].strip("nN") or " ", "\n".join(_decode_line("".join(line)) for line in lines)
    )


def _take_data(text: str, source: SourceText) -> str:
    """The text without long pieces in base64, which are counted apart."""
    rest, end = "", 0
    for match in re.finditer(
        r"(?:[A-Za-z\d+/]{60,}={0,2}\s*)+(?:[A-Za-z\d+/]+(?:=+(?!\w)|(?=\s?\")))?", text, re.ASCII
    ):
        piece = match[0].strip()
        _, *inner = piece.splitlines()
        is_even = len({len(line.strip()) for line in inner[:-1]}) < 2
        is_mixed = not (piece.islower() or piece.isupper()) and re.search(r"\d", piece)
        if len(piece) >= 1_000 and is_even and is_mixed and not re.fullmatch(r"[\da-fA-F\s]+", piece):
            source.omit("data in base64", piece)
            rest, end = f"{rest}{text[end : match.start()]} ", match.end()
    return rest + text[end:]


def _split_strings(text: str) -> Iterator[tuple[bool, str]]:
    """Yields what is outside and inside of the strings of a JSON text, in order."""
    for line in text.splitlines(keepends=True):
        is_string, piece = False, ""
        for part in re.split(r'(\\.|")', line):
            if part == '"':
                yield is_string, f'{piece}"'
                is_string, piece = not is_string, ""
            else:
                piece += part
        yield False, piece  # a string ends on its line


def _decode_letters(string: str) -> str:
    pieces = string.split("\\\\")  # a backslash that is escaped itself escapes nothing
    units = re.compile(r"\\u((?!00(?:[01]|22|5c|7f|[89]))[0-9a-fA-F]{4})")  # controls, quotes and backslashes stay
    decoded = "\\\\".join(units.sub(lambda match: chr(int(match[1], 16)), piece) for piece in pieces)
    whole = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", whole)


def _is_json(text: str) -> bool:
    for candidate in (text, text.strip().split("\n")[0]):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(candidate)
            return True
    return False


def _decode_layout(string: str) -> str:
    pieces = string.split("\\\\")
    return "\\\\".join(re.sub(r"\\[nrtf]", "\n", piece).replace("\\/", "/") for piece in pieces)


def _decode_reference(match: re.Match[str]) -> str:
    name = match[1]
    if name.startswith("#"):
        code = int(f"0{name[1:]}", 0) if name[1] in "xX" else int(name[1:])
        return chr(code) if code < 0x110000 else match[0]
    return match[0] if name == "lt" else entities.html5.get(f"{name};", match[0])


def _decode_line(line: str) -> str:
    """A field without its quoted-printable."""
    head, colon, value = line.partition(":")
    if "QUOTED-PRINTABLE" not in head.upper():
        return line
    charset = re.search(r"CHARSET=([\w-]+)", head, re.IGNORECASE)
    data = re.sub(rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), value.encode(), flags=re.IGNORECASE)
    try:
        return head + colon + data.decode(charset[1] if charset else "utf-8")
    except (LookupError, ValueError):
        return line


def _decode(data: bytes, encoding: str) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if encoding.startswith("iso2022"):  # all of its bytes are ASCII
        with contextlib.suppress(ValueError):
            return decode_switched(data) if encoding == "iso2022_jp" else data.decode(encoding)
    try:
        return data.decode()
    except UnicodeDecodeError:
        if encoding == "utf-8":  # but for some bytes
            return _read_strays(data.decode("utf-8", "surrogateescape"))
        return data.decode(encoding or "cp1252", "replace")


def _read_strays(text: str) -> str:
    """A text in which the bytes that are not UTF-8 are read one by one."""
    letters = (
        bytes([ord(one) & 0xFF]).decode("cp1252", "replace") if "\udc80" <= one <= "\udcff" else one for one in text
    )
    return "".join(letters)


def _take_header(text: str, source: SourceText) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in {"---", "..."}), 0)
    header = "\n".join(lines[1:end])
    if not end or not _MAPPING.fullmatch(header.strip()):
        return text
    keys = {key.strip("\"'") for key in _KEY.findall(header)}
    if keys <= {"title"}:
        source.omit("front matter", header)
    else:
        source.add("front matter", header)
    return "\n".join(lines[end + 1 :])
