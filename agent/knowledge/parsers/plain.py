"""Plain text: which encoding it is in, and its paragraphs. CSV is read here too: it is plain text in rows."""

import codecs
import csv
import io
import re
from typing import NamedTuple

from charset_normalizer import from_bytes

from agent.core.models import JsonObject
from agent.knowledge.parsers.draft import LOST, Draft
from agent.knowledge.parsers.source import Source

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SAMPLE = 65_536
"""Bytes that the encoding is guessed from; more changes nothing and costs seconds."""

_WESTERN = "cp1252"
_ABOUT_AS_WELL = 0.12
"""Of charset-normalizer's coherence, 0 to 1: the widest gap seen between a Western text's wrong and right encoding."""

_DELIMITERS = ",;\t|"


class Decoded(NamedTuple):
    """A text, the encoding it was in, and what to tell the reader about the guess."""

    text: str
    encoding: str
    uncertainties: tuple[str, ...] = ()
    lost: int = 0
    """Characters that the encoding does not have."""


def decode(data: bytes) -> Decoded:
    """Bytes to text: a byte order mark decides, then UTF-8 if the bytes are valid, then charset-normalizer's guess."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _lenient(data, encoding)
    try:
        return Decoded(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    decoded = _lenient(data, _guess(data[:_SAMPLE]))
    return decoded._replace(uncertainties=(f"the encoding was guessed: {decoded.encoding}", *decoded.uncertainties))


def read_plain(source: Source) -> Draft:
    """Paragraphs are what blank lines separate."""
    decoded = decode(source.data)
    draft = draft_of(decoded)
    for paragraph in _BLANK_LINES.split(decoded.text.replace("\r\n", "\n").replace("\r", "\n")):
        draft.text(paragraph)
    return draft


def read_csv(source: Source) -> Draft:
    """The rows as one Markdown table, or several with the same header when they are many."""
    decoded = decode(source.data)
    draft = draft_of(decoded)
    csv.field_size_limit(len(source.data) + 1)  # the default takes a cell of 128 KB for an error of the file
    delimiter = _delimiter(decoded.text)
    rows = list(csv.reader(io.StringIO(decoded.text, newline=""), delimiter=delimiter))
    draft.table(rows)
    draft.metadata |= {"delimiter": delimiter, "rows": sum(1 for row in rows if any(row))}
    return draft


def draft_of(decoded: Decoded) -> Draft:
    """An empty draft that knows the encoding of its text."""
    metadata: JsonObject = {"encoding": decoded.encoding} | ({LOST: decoded.lost} if decoded.lost else {})
    return Draft(metadata=metadata, uncertainties=list(decoded.uncertainties))


def _guess(data: bytes) -> str:
    """charset-normalizer's best, or Windows-1252 where that fits about as well: by itself it reads one Western text in
    two as Central European, which has the same letters in other places."""
    matches = from_bytes(data)
    best = matches.best()
    western = next((match for match in matches if _WESTERN in {match.encoding, *match.could_be_from_charset}), None)
    if best is None:
        return _WESTERN
    if western and western.chaos <= best.chaos and western.coherence >= best.coherence - _ABOUT_AS_WELL:
        return _WESTERN
    return best.encoding


def _lenient(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, errors="replace")
    lost = text.count("\ufffd")
    return Decoded(text, encoding, (f"{lost} characters are not {encoding} and were lost",) if lost else (), lost)


def _delimiter(text: str) -> str:
    """The delimiter that cuts the first lines into equally many fields, most of them; a comma when none does."""
    lines = text.splitlines()[:50]

    def fit(delimiter: str) -> tuple[float, int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        common = max(set(counts), key=counts.count, default=1)
        share = counts.count(common) / len(counts) if common > 1 else 0.0
        return share, common, -_DELIMITERS.index(delimiter)

    return max(_DELIMITERS, key=fit)
