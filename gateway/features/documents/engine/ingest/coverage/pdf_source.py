"""The characters of a PDF in any orientation, by pdf_oxide, which shares nothing with PDFium."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter

import pdf_oxide

from gateway.features.documents.engine.ingest.coverage.pdf_layers_source import find_hidden_layers
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_TURNED = 5.0
"""Degrees from which a text counts as turned; scans are skewed by less."""

_SLACK = 2.0
"""Points."""

_LETTER_PAGE = (0.0, 0.0, 612.0, 792.0)
"""The size of a page that gives none, or an empty one."""

_PLACE = attrgetter("char", "origin_x", "origin_y")

_PASSWORD = 1 << 13
"""A flag of a form's text whose letters no viewer shows."""
_EDGE = 0.14
"""Share of a page's height at its top and at its foot in which a line may be a head or foot of several pages."""
_MAX_DIGITS = 6
"""Of a page's number."""


pdf_oxide.disable_logging()  # it reports every oddity of a file on standard error


def read_source(data: bytes, _file_type: FileType, _encoding: str, deadline: float) -> SourceText:
    """Counts the characters on all pages, turned ones apart. Raises OSError for other files, and TimeoutError if pages
    are left at the deadline: a page tree of 2 KB can have a million.
    """
    document = pdf_oxide.PdfDocument.from_bytes(data)
    source = SourceText(unit="characters")
    hidden = find_hidden_layers(data)
    pages: list[_Page] = []
    for number in range(document.page_count()):
        if time.monotonic() > deadline:
            raise TimeoutError
        try:
            pages.append(_Page(document, number, hidden))
        except RuntimeError:  # a page that the file only claims
            source.omitted["pages that cannot be opened"] += 1
    upright, repeated = _part_repeated_lines(pages)
    source.add_characters("text", "".join(upright))
    source.add_characters("values of form fields", "".join(_list_form_values(document)))
    source.add_characters("turned text", "".join(one for page in pages for one in page.turned))
    source.omit("words in layers that are off", "".join(one for page in pages for one in page.hidden))
    source.omit("words outside of the page", "".join(one for page in pages for one in page.outside))
    source.omit("words of repeated heads and feet of pages", " ".join(repeated))
    return source


class _Page:
    """The characters of a page: its lines with their heights, turned ones, and those that nobody sees."""

    def __init__(self, document: pdf_oxide.PdfDocument, number: int, hidden_layers: Sequence[str]) -> None:
        left, bottom, right, top = _find_box(document, number)
        self.number = number
        self.turned: list[str] = []
        self.outside: list[str] = []
        self.hidden = _list_hidden(document, number, hidden_layers) if hidden_layers else []
        lines: defaultdict[int, list[tuple[float, str]]] = defaultdict(list)
        for one in document.extract_chars(
            number, exclude_layers=list(hidden_layers)
        ):  # a page has thousands: each attribute costs a call
            x, y = one.origin_x, one.origin_y
            if not (left <= x <= right and bottom <= y <= top):
                self.outside.append(one.char)
            elif -_TURNED <= one.rotation_degrees <= _TURNED:
                lines[round(y)].append((x, one.char))
            else:
                self.turned.append(one.char)
        edge = _EDGE * (top - bottom)
        self.edges = frozenset(y for y in lines if y > top - edge or y < bottom + edge)
        for y in self.edges:  # only these are compared; of the others the characters count in any order
            lines[y].sort(key=itemgetter(0))
        self.lines = {y: "".join([char for _, char in line]) for y, line in lines.items()}

    def make_key(self, text: str) -> str:
        """What makes a line a repetition: its text, or how far its number is from the page's if it has no word."""
        numbers = re.findall(r"\d+", text)
        is_counter = 1 <= len(numbers) <= 2 and not any(map(str.isalpha, text)) and len(numbers[0]) <= _MAX_DIGITS
        return f"{int(numbers[0]) - self.number} pages on" if is_counter else text


def _list_hidden(document: pdf_oxide.PdfDocument, number: int, layers: Sequence[str]) -> list[str]:
    """The characters of a page that only its hidden layers have."""
    visible = Counter(map(_PLACE, document.extract_chars(number, exclude_layers=list(layers))))
    hidden: list[str] = []
    for one in document.extract_chars(number):
        if visible[_PLACE(one)]:
            visible[_PLACE(one)] -= 1
        else:
            hidden.append(one.char)
    return hidden


def _find_box(document: pdf_oxide.PdfDocument, number: int) -> tuple[float, float, float, float]:
    """The page's sides with some slack, whichever corners the file gives."""
    x1, y1, x2, y2 = document.page_crop_box(number) or document.page_media_box(number)
    if x1 == x2 or y1 == y2:
        x1, y1, x2, y2 = _LETTER_PAGE
    return min(x1, x2) - _SLACK, min(y1, y2) - _SLACK, max(x1, x2) + _SLACK, max(y1, y2) + _SLACK


def _part_repeated_lines(pages: Iterable[_Page]) -> tuple[list[str], list[str]]:
    """The lines of all pages, and those at their edges that are the same on a page before, or its counter.

    A line with words and another number is text: it may be a heading or an amount.
    """
    lines: list[str] = []
    repeated: list[str] = []
    seen: set[tuple[int, str]] = set()
    for page in pages:
        for y, text in page.lines.items():
            key = (y, page.make_key(text) if y in page.edges else "")
            (repeated if y in page.edges and key in seen else lines).append(text)
            seen.add(key)
    return lines, repeated


def _list_form_values(document: pdf_oxide.PdfDocument) -> list[str]:
    """The texts that were typed or chosen in a form; ticks are not text."""
    try:
        fields = [field for field in document.get_form_fields() if field.field_type in ("text", "choice")]
    except RuntimeError:
        return []
    values = [one.value for one in fields if not (one.field_type == "text" and (one.flags or 0) & _PASSWORD)]
    listed = (value if isinstance(value, list | tuple) else [value] for value in values)
    return [one for value in listed for one in value if isinstance(one, str)]
