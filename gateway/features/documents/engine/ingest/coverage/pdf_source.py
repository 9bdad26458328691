"""The characters of a PDF in any orientation, by pdf_oxide, which shares nothing with PDFium."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple, TypeAlias

import pdf_oxide

from gateway.features.documents.engine.ingest.coverage.pdf_layers_source import (
    MAX_BYTES,
    find_hidden_layers,
    iter_objects,
)
from gateway.features.documents.engine.ingest.coverage.pdf_unseen_source import iter_unseen
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_TURNED = 5.0
"""Degrees from which a text counts as turned; scans are skewed by less."""

_SLACK = 2.0
"""Points."""

_Box: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, right and top of a page in points."""
_LETTER_PAGE: Final[_Box] = (0.0, 0.0, 612.0, 792.0)
"""The size of a page that gives none, or an empty one."""

_NODE = re.compile(rb"/Type\s*/Pages\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_MEDIA_BOX = re.compile(rb"/MediaBox\s*\[([^\]]*)\]")
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)")

_PLACE = attrgetter("char", "origin_x", "origin_y")

_PASSWORD = 1 << 13
"""A flag of a form's text whose letters no viewer shows."""
_EDGE = 0.14
"""Share of a page's height at its top and at its foot in which a line may be a head or foot of several pages."""
_APART = 1.5
"""Sizes of its letters between two parts of a line."""
_HEADING = 1.15
"""Sizes of the page's usual letters from which a line is a heading, which counts no pages."""
_MAX_FIGURE = 999
_PAGES = 3
"""Pages on which a line's figure counts them."""
_PAGES_FROM_100 = 6
"""The same if the figure has three digits and no word for a page."""
_RULES = frozenset("-\u2013\u2014\u00b7\u2022~")
_NAMES = frozenset({
    "page", "pages", "pp", "seite", "seiten", "sida", "sidor", "sidan", "slide", "slides", "folie", "folien", "bild",
    "diapositive",
})  # fmt: skip
_SHORT_NAMES = frozenset({"p", "s", "sid"})


pdf_oxide.disable_logging()  # it reports every oddity of a file on standard error


def read_source(data: bytes, _file_type: FileType, _encoding: str, deadline: float) -> SourceText:
    """Counts the characters on all pages, turned ones apart. Raises OSError for other files, and TimeoutError if pages
    are left at the deadline: a page tree of 2 KB can have a million.
    """
    document = pdf_oxide.PdfDocument.from_bytes(data)
    source = SourceText(unit="characters")
    hidden = find_hidden_layers(data)
    find_inherited_box = cache(partial(_find_inherited_box, data))
    pages: list[_Page] = []
    for number in range(document.page_count()):
        if time.monotonic() > deadline:
            raise TimeoutError
        try:
            pages.append(_Page(document, number, hidden, find_inherited_box))
        except RuntimeError:  # a page that the file only claims
            source.omitted["pages that cannot be opened"] += 1
    upright, repeated = _part_repeated_lines(pages)
    source.add_characters("text", "".join(upright))
    source.add_characters("values of form fields", "".join(_list_form_values(document)))
    source.add_characters("turned text", "".join(one for page in pages for one in page.turned))
    source.omit("words in layers that are off", "".join(one for page in pages for one in page.hidden))
    source.omit("words outside of the page", "".join(one for page in pages for one in page.outside))
    source.omit("words of repeated heads and feet of pages", " ".join(repeated))
    source.list_unseen = partial(iter_unseen, document, deadline)
    return source


class _Page:
    """The characters of a page: its lines with their heights, turned ones, and those that nobody sees."""

    def __init__(
        self,
        document: pdf_oxide.PdfDocument,
        number: int,
        hidden_layers: Sequence[str],
        find_inherited_box: Callable[[], _Box],
    ) -> None:
        left, bottom, right, top = _find_box(document, number, find_inherited_box)
        self.number = number
        self.turned: list[str] = []
        self.outside: list[str] = []
        self.hidden = _list_hidden(document, number, hidden_layers) if hidden_layers else []
        lines: defaultdict[int, list[tuple[float, str, float, float]]] = defaultdict(list)
        sizes: Counter[float] = Counter()
        for one in document.extract_chars(
            number, exclude_layers=list(hidden_layers)
        ):  # a page has thousands: each attribute costs a call
            x, y = one.origin_x, one.origin_y
            if not (left <= x <= right and bottom <= y <= top):
                self.outside.append(one.char)
            elif -_TURNED <= one.rotation_degrees <= _TURNED:
                size = one.font_size
                lines[round(y)].append((x, one.char, size, one.advance_width))
                sizes[round(size, 1)] += 1
            else:
                self.turned.append(one.char)
        edge = _EDGE * (top - bottom)
        self.edges = frozenset(y for y in lines if y > top - edge or y < bottom + edge)
        for y in self.edges:  # only these are compared; of the others the characters count in any order
            lines[y].sort(key=itemgetter(0))
        self.lines = {y: "".join([letter[1] for letter in line]) for y, line in lines.items()}
        largest = _HEADING * sizes.most_common(1)[0][0] if sizes else 0.0
        figures = {
            y: _find_figure(_part_line(lines[y])) for y in self.edges if all(one[2] <= largest for one in lines[y])
        }
        self.figures = {y: figure for y, figure in figures.items() if figure is not None}


class _Figure(NamedTuple):
    """A figure of a line that may count the pages, with the rest of the line and the total behind it, or 0."""

    rest: str
    value: int
    total: int
    has_name: bool

    def counts(self, page: int, pages: Collection[int], count: int) -> bool:
        """Whether it does, by the pages whose lines have it as far from their number."""
        needed = _PAGES_FROM_100 if self.value > 99 and not self.has_name else _PAGES
        is_whole = self.has_name or not self.total or self.total - self.value + page == count
        return len(pages) >= needed and is_whole


def _part_line(letters: Sequence[tuple[float, str, float, float]]) -> list[list[str]]:
    """The parts of a line between wide gaps and bars, each as its words, figures and signs."""
    text = ""
    end = letters[0][0]
    for x, letter, size, width in letters:
        if letter.isspace():
            text += letter
            continue
        text += f"   {letter}" if x - end > _APART * size else letter
        end = x + width
    parts = re.split(r"\||\s{3,}", text)
    return [words for part in parts if (words := re.findall(r"\d+|[^\W\d_]+|[^\w\s]|_", part))]


def _find_figure(parts: Sequence[Sequence[str]]) -> _Figure | None:
    """The figure behind a word for a page, or the one that is the first or the last part of a line."""
    for number, words in enumerate(parts):
        for place, word in enumerate(words[:-1]):
            is_short = word.casefold() in _SHORT_NAMES and words[place + 1] == "."
            start = place + 1 + is_short
            if (is_short or word.casefold() in _NAMES) and (figure := _read_figure(words[start:])) is not None:
                value, total, _ = figure
                before = [*parts[:number], words[:start]]
                return _Figure(repr([before, words[start + 1 :], parts[number + 1 :]]), value, total, True)
    for number in {0, len(parts) - 1} if parts else ():
        words = parts[number]
        framed = len(words) > 2 and words[0] in _RULES and words[-1] in _RULES
        inner = words[1:-1] if framed else words
        figure = _read_figure(inner)
        if figure is not None and figure[2] == len(inner):
            value, total, _ = figure
            rest = repr([parts[:number], inner[1:], parts[number + 1 :]])
            return _Figure(rest, value, total, False)
    return None


def _read_figure(words: Sequence[str]) -> tuple[int, int, int] | None:
    """The figure that begins a text, the total behind it, and the number of their words."""
    if not words or not words[0].isdecimal() or int(words[0]) > _MAX_FIGURE or len(words[0]) > len(str(_MAX_FIGURE)):
        return None
    value = int(words[0])
    if len(words) > 2 and words[2].isdecimal():
        total, sign = int(words[2]), words[1]
        if (sign == "/" or 1 < len(sign) < 5) and value <= total <= _MAX_FIGURE:
            return value, total, 3
        return None
    return value, 0, 1


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


def _find_inherited_box(data: bytes) -> _Box:
    """The smallest box around those that the page tree gives for pages below it, and pages as `_LETTER_PAGE`;
    that of a page that gives none if there are none."""
    if len(data) > MAX_BYTES:
        return _LETTER_PAGE
    boxes: list[list[float]] = []
    for _, text in iter_objects(data):
        match = _MEDIA_BOX.search(text)
        box = [float(one) for one in _NUMBER.findall(match[1])] if match is not None else []
        if len(box) == len(_LETTER_PAGE) and (
            _NODE.search(text) or (tuple(box) == _LETTER_PAGE and _PAGE.search(text))
        ):
            boxes.append(box)
    if not boxes:
        return _LETTER_PAGE
    across, upward = ([side for one in boxes for side in one[at::2]] for at in (0, 1))
    return min(across), min(upward), max(across), max(upward)


def _find_box(document: pdf_oxide.PdfDocument, number: int, find_inherited_box: Callable[[], _Box]) -> _Box:
    """The page's sides with some slack, whichever corners the file gives. The library inherits none."""
    x1, y1, x2, y2 = document.page_crop_box(number) or document.page_media_box(number)
    if x1 == x2 or y1 == y2 or (x1, y1, x2, y2) == _LETTER_PAGE:
        x1, y1, x2, y2 = find_inherited_box()
    return min(x1, x2) - _SLACK, min(y1, y2) - _SLACK, max(x1, x2) + _SLACK, max(y1, y2) + _SLACK


def _part_repeated_lines(pages: Sequence[_Page]) -> tuple[list[str], list[str]]:
    """The lines of all pages, and those at their edges that are the same on a page before, or its counter.

    A line with words and another number is text: it may be a heading or an amount.
    """
    lines: list[str] = []
    repeated: list[str] = []
    counted: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for page in pages:
        for one in page.figures.values():
            counted[one.rest, one.value - page.number].add(page.number)
    seen: set[tuple[int, str]] = set()
    for page in pages:
        for y, text in page.lines.items():
            figure = page.figures.get(y)
            is_counter = figure is not None and figure.counts(
                page.number + 1, counted[figure.rest, figure.value - page.number], len(pages)
            )
            key = (y, f"a page of {figure.rest}" if figure is not None and is_counter else text)
            (repeated if y in page.edges and key in seen else lines).append(text)
            if y in page.edges:
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
