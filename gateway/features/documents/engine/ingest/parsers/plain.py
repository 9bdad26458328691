"""Plain text: its encoding and its paragraphs. Also CSV."""

import codecs
import csv
import io
import re
from typing import NamedTuple

from charset_normalizer import from_bytes

from agent.core.models import JsonObject
from agent.text.delimited import DELIMITERS, double_escaped_quotes, find_separator, find_titles
from gateway.features.documents.engine.ingest.parsers.draft import LOST_CHARACTERS, Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SAMPLE = 65_536
"""Bytes that the encoding is guessed from; more changes nothing and takes seconds."""

_WESTERN = "cp1252"
_ABOUT_AS_WELL = 0.12
"""Of charset-normalizer's coherence (0 to 1): the largest measured gap between a Western text's wrong and right
encoding."""


class Decoded(NamedTuple):
    """A text, its encoding, and notes on the guess."""

    text: str
    encoding: str
    uncertainties: tuple[str, ...] = ()
    lost: int = 0
    """Characters that could not be decoded."""


def decode(data: bytes) -> Decoded:
    """Decodes bytes: by byte order mark, else as UTF-8 if valid, else by charset-normalizer's guess."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_lossy(data, encoding)
    try:
        return Decoded(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    decoded = _decode_lossy(data, _guess_encoding(data[:_SAMPLE]))
    return decoded._replace(uncertainties=(f"the encoding was guessed: {decoded.encoding}", *decoded.uncertainties))


def read_plain(source: InputFile) -> Draft:
    """Reads paragraphs, which blank lines separate."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    for paragraph in _BLANK_LINES.split(decoded.text.replace("\r\n", "\n").replace("\r", "\n")):
        draft.add_text(paragraph)
    return draft


def read_csv(source: InputFile) -> Draft:
    """Reads the rows as one Markdown table, or as several with the same header."""
    decoded = decode(source.data)
    draft = make_draft(decoded)
    # The default takes a cell of 128 KB for an error of the file. The limit is one for the process: it may only grow.
    csv.field_size_limit(max(csv.field_size_limit(), len(source.data) + 1))
    named, skipped = find_separator(decoded.text)
    titles, length = find_titles(decoded.text[skipped:], named)
    text = double_escaped_quotes(decoded.text[skipped + length :])
    delimiter = named or _guess_delimiter(text)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    for title in titles:
        draft.add_text(title)
    draft.add_table(rows)
    draft.metadata |= {"delimiter": delimiter, "rows": sum(1 for row in rows if any(row))}
    return draft


def make_draft(decoded: Decoded) -> Draft:
    """Returns an empty draft with the text's encoding in its metadata."""
    metadata: JsonObject = {"encoding": decoded.encoding} | ({LOST_CHARACTERS: decoded.lost} if decoded.lost else {})
    return Draft(metadata=metadata, uncertainties=list(decoded.uncertainties))


def _guess_encoding(data: bytes) -> str:
    """Returns charset-normalizer's best guess, or Windows-1252 if that fits about as well.

    By itself it takes half of the Western texts for Central European, which has the same letters at other places.
    """
    matches = from_bytes(data)
    best = matches.best()
    western = next((match for match in matches if _WESTERN in {match.encoding, *match.could_be_from_charset}), None)
    if best is None:
        return _WESTERN
    if western and western.chaos <= best.chaos and western.coherence >= best.coherence - _ABOUT_AS_WELL:
        return _WESTERN
    return best.encoding


def _decode_lossy(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, errors="replace")
    lost = text.count("\ufffd")
    return Decoded(text, encoding, (f"{lost} characters are not {encoding} and were lost",) if lost else (), lost)


def _guess_delimiter(text: str) -> str:
    """Returns the delimiter that splits most of the first lines into equally many fields; a comma if none does."""
    lines = text.splitlines()[:50]

    def fit(delimiter: str) -> tuple[float, int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        common = max(set(counts), key=counts.count, default=1)
        share = counts.count(common) / len(counts) if common > 1 else 0.0
        return share, common, -DELIMITERS.index(delimiter)

    return max(DELIMITERS, key=fit)
