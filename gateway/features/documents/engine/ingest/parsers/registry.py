"""The readers of each file type: the first reads it, the next ones are fall-backs.

The order is measured (docs/adr/0004-parsers.md). Readers are named by module, so that only workers import their
libraries, which saves the gateway 0.6 s and 40 MB.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from agent.core.extras import EXTRAS, format_install_hint
from gateway.features.documents.engine.ingest.errors import ParserUnsupportedError
from gateway.features.documents.engine.ingest.file_types import register_file_types
from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.search.models import FileType

Read = Callable[[InputFile], Draft]


class Reader(NamedTuple):
    """A way to read some file types. `place` is `module:function`, where `.module` is in this package."""

    name: str
    file_types: tuple[FileType, ...]
    place: str
    description: str
    good_for: str
    folder: str = ""
    """Where the package of an extension is installed; workers search it for modules."""
    extensions: tuple[str, ...] = ()
    """Of a new file type: the extensions of its files, such as `.epub`; empty: the type's name."""
    media_types: tuple[str, ...] = ()
    """Of a new file type: what web servers and clients call it, such as `application/epub+zip`."""
    extra: str = ""
    """The optional part of the installation that has its library; empty: it is always there."""

    @property
    def is_installed(self) -> bool:
        """Whether its library is there."""
        return not self.extra or EXTRAS[self.extra].is_installed

    def load(self) -> Read:
        """Imports the reader and its library."""
        module, _, function = self.place.partition(":")
        return cast("Read", getattr(import_module(module, __package__), function))


READERS: list[Reader] = [
    Reader(
        "liteparse",
        ("pdf",),
        ".pdf:read_pdf",
        "PDF: blocks in reading order with boxes, tables with cells, scanned pages by tesseract",
        "every PDF; about 20 ms a page without OCR",
    ),
    Reader(
        "python-docx",
        ("docx",),
        ".word:read_word",
        "Word by its XML: outline levels, numbered lists, text boxes, descriptions of pictures, merged cells",
        "Word files",
    ),
    Reader(
        "workbook",
        ("xlsx",),
        ".sheets:read_sheets",
        "Excel as its sheets show it: formats, merged cells, long headers, comments, charts, simple formulas",
        "every Excel file",
    ),
    Reader(
        "kreuzberg",
        ("xlsx", "docx"),
        ".office:read_office",
        "Excel; Word without text boxes, numbers of lists and pictures, in a tenth of the time",
        "Excel files, and Word files of plain text by the thousand",
        extra="kreuzberg",
    ),
    Reader(
        "openpyxl",
        ("xlsx",),
        ".openpyxl_sheets:read_sheets",
        "Excel cell by cell, values as last calculated",
        "Excel files that the other readers refuse",
    ),
    Reader(
        "python-pptx",
        ("pptx",),
        ".slides:read_slides",
        "PowerPoint: a slide a page, shapes with boxes from top to bottom, tables, notes",
        "every presentation",
    ),
    Reader(
        "lxml",
        ("html",),
        ".web:read_html",
        "HTML: what a person sees, in order; inner tables and described pictures too",
        "saved web pages",
    ),
    Reader(
        "kreuzberg-second",
        ("pptx", "html"),
        ".office:read_office",
        "PowerPoint and HTML by kreuzberg",
        "files that the first reader of their type refuses",
        extra="kreuzberg",
    ),
    Reader(
        "markdown-it", ("md",), ".markdown:read_markdown", "Markdown, cut at its blocks, in its own words", "Markdown"
    ),
    Reader("plain", ("txt",), ".plain:read_plain", "Text in any encoding; paragraphs at blank lines", "plain text"),
    Reader("csv", ("csv",), ".plain:read_csv", "Rows as a Markdown table; the delimiter is found", "tables as text"),
    Reader("mail", ("eml",), ".mail:read_mail", "Mail: header, subject, body; attachments by name", "single mails"),
]
"""In order of preference for each type; those of extensions come last."""


def register_reader(reader: Reader) -> None:
    """Adds the reader of an extension, with its file type if that is new. The same reader may come again.

    Raises ValueError for an existing name, and as `register_file_types` does.
    """
    namesake = next((one for one in READERS if one.name == reader.name), None)
    if namesake not in (None, reader):
        raise ValueError(f"a parser named {reader.name!r} is registered already")
    register_file_types(reader.file_types, reader.extensions, reader.media_types)
    if namesake is None:
        READERS.append(reader)


def list_readers(file_type: FileType, name: str | None = None) -> tuple[Reader, ...]:
    """The installed readers of a type, best first, or the named one.

    Raises `ParserUnsupportedError` if there is none, or if the named one is not installed.
    """
    known_readers = tuple(reader for reader in READERS if file_type in reader.file_types)
    if name is not None:
        known_readers = tuple(reader for reader in known_readers if reader.name == name)
    readers = tuple(reader for reader in known_readers if reader.is_installed)
    if known_readers and not readers:
        hint = format_install_hint(known_readers[0].extra)
        raise ParserUnsupportedError(
            f"the parser {known_readers[0].name} is not installed; {hint}", expected=file_type, found=file_type
        )
    if not readers:
        raise ParserUnsupportedError(
            f"no parser{f' {name}' if name else ''} reads {file_type}", expected=file_type, found=file_type
        )
    return readers


def find_missing_extra(file_type: FileType) -> str | None:
    """The optional part with another reader of the type that is not installed; None if there is none."""
    missing = (reader.extra for reader in READERS if file_type in reader.file_types and not reader.is_installed)
    return next(missing, None)
