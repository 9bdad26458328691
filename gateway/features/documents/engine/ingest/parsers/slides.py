"""pptx by python-pptx: slide by slide, every shape with its place.

kreuzberg is the fall-back: it splits words at run ends ("S ome info"), leaves most blocks without a slide number, and
refuses slides with linked pictures (docs/adr/0004-parsers.md).
"""

import io
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.util import Emu

from agent.core.models import JsonObject
from agent.text.html.tables import MAX_HEAD
from agent.text.struck import join_pieces, strike_out
from agent.text.superscripts import write_fractions, write_moved
from gateway.features.documents.engine.ingest.parsers.draft import Box, Draft
from gateway.features.documents.engine.ingest.parsers.equations import format_equation
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.graphics import CHOICES, Part, add_graphics, choose_content
from gateway.features.documents.engine.ingest.parsers.office_package import has_core_properties, prepare_package
from gateway.features.documents.engine.ingest.parsers.slide_comments import iter_comments
from gateway.features.documents.engine.ingest.parsers.slide_numbers import SlideNumbers
from gateway.features.documents.engine.ingest.parsers.slide_order import sort_shapes

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape
    from pptx.slide import NotesSlide, Slide, SlideLayout
    from pptx.table import Table
    from pptx.text.text import TextFrame

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_REPEATED = frozenset({PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.FOOTER})
"""Placeholders of a notes page that say the same on each."""

_NEAR = 5
"""Runs behind a moved text that are looked at."""
_CONTROL = re.compile("_x00[01][0-9A-Fa-f]_")
"""Control characters as XML that forbids them writes them: a line break in a title is one."""
_DEFAULT_TITLE_WORDS = 3
"""As in "Presentación de PowerPoint"."""


def read_slides(source: InputFile) -> Draft:
    """Reads a presentation: a slide is a page, its title a heading, its notes a paragraph. Raises
    python-pptx's errors."""
    presentation = Presentation(io.BytesIO(prepare_package(source.data)))
    metadata: JsonObject = {}
    if has_core_properties(source.data):  # python-pptx invents a title where there are none
        core = presentation.core_properties
        title = "" if _names_program(core.title) else core.title
        metadata = {"title": title, "authors": [core.author] if core.author else None}
    draft = Draft(pages=len(presentation.slides), metadata={name: value for name, value in metadata.items() if value})
    seen: set[str] = set()
    layouts: set[str] = set()
    hidden = [str(number) for number, slide in enumerate(presentation.slides, 1) if _is_hidden(slide)]
    if hidden:
        draft.uncertainties.append(
            f"slide {hidden[0]} is hidden: a show leaves out what was read of it"
            if len(hidden) == 1
            else f"slides {', '.join(hidden)} are hidden: a show leaves out what was read of them"
        )
    for number, slide in enumerate(presentation.slides, 1):
        _add_slide(draft, slide, number)
        layout = slide.slide_layout
        if layout.part.partname in layouts or not _shows_master(slide):
            continue
        layouts.add(layout.part.partname)  # what it shows is on every slide of the layout
        for text in _iter_layout_texts(layout):
            if text not in seen:
                seen.add(text)
                draft.add_text(f"Slide layout: {text}", number)
    return draft


def _is_hidden(slide: "Slide") -> bool:
    return slide._element.get("show") in {"0", "false"}


def _names_program(title: str) -> bool:
    """Whether a title is the one that PowerPoint gives each presentation, in the language of its menus."""
    words = title.casefold().replace("-", " ").split()
    return "powerpoint" in words and len(words) <= _DEFAULT_TITLE_WORDS


def _shows_master(slide: "Slide | SlideLayout") -> bool:
    """Whether a slide shows what is on its layout, or a layout what is on its master."""
    return slide._element.get("showMasterSp") not in {"0", "false"}


def _iter_layout_texts(layout: "SlideLayout") -> Iterator[str]:
    """Yields the texts of a layout and its master that are on its slides; placeholders only say what belongs there."""
    for above in (layout, layout.slide_master) if _shows_master(layout) else (layout,):
        _unwrap_choices(above._element)
        for shape, _ in _iter_shapes(one for one in above.shapes if not one.is_placeholder):
            if shape.has_text_frame:
                text = "\n".join(_iter_paragraphs(shape.text_frame))  # type: ignore[attr-defined]  # has_text_frame
                has_number = next(shape._element.iterfind(".//{*}fld[@type='slidenum']"), None) is not None
                if any(map(str.isalpha if has_number else str.isalnum, text)):
                    yield text


def _add_slide(draft: Draft, slide: "Slide", page: int) -> None:
    _unwrap_choices(slide._element)
    title = slide.shapes.title
    text = "" if title is None else " ".join(_iter_paragraphs(title.text_frame))
    if title is not None and text:
        draft.add_heading(text, 1, page, _get_box(title))
        draft.metadata.setdefault("title", " ".join(text.split()))
    elif draft.blocks:  # a slide without a title must not stand under the one before
        draft.add_heading(f"Slide {page}", 1, page)
    for shape, bbox in _iter_shapes(slide.shapes):
        if title is None or shape._element is not title._element:  # other shapes may have its id
            _add_shape(draft, shape, slide.part, page, bbox)
    if slide.has_notes_slide and (notes := "\n".join(_iter_notes(slide.notes_slide))):
        draft.add_text(f"Notes: {notes}", page)
    for table in _iter_note_tables(slide):
        draft.add_table(_read_rows(table), page)
    for comment in iter_comments(slide.part):
        draft.add_text(f"Comment: {comment}", page)


def _iter_notes(notes: "NotesSlide") -> Iterator[str]:
    """Yields the paragraphs of a notes page without what repeats on each."""
    _unwrap_choices(notes._element)
    for shape, _ in _iter_shapes(notes.shapes):
        if shape.has_text_frame and not (shape.is_placeholder and shape.placeholder_format.type in _REPEATED):
            yield from _iter_paragraphs(shape.text_frame)  # type: ignore[attr-defined]  # has_text_frame


def _iter_note_tables(slide: "Slide") -> Iterator["Table"]:
    for shape, _ in _iter_shapes(slide.notes_slide.shapes if slide.has_notes_slide else ()):
        if shape.has_table:
            yield shape.table  # type: ignore[attr-defined]  # has_table says that it is there


def _unwrap_choices(element: Element) -> None:
    """Puts what is shown of each alternative content in its place, where python-pptx finds it."""
    for choices in list(element.iter(f"{CHOICES}AlternateContent")):
        parent = choices.getparent()
        if parent is None:
            continue
        place = parent.index(choices)
        parent.remove(choices)
        for offset, child in enumerate(list(choose_content(choices))):
            parent.insert(place + offset, child)


def _iter_shapes(shapes: Iterable["BaseShape"]) -> Iterator[tuple["BaseShape", Box | None]]:
    """Yields shapes with their boxes in reading order, opening groups: the file's order is the drawing order.

    A shape in a group has the group's box, because its own place is in the group's coordinates.
    """
    for shape in sort_shapes(shapes):
        for inner in _open_groups(shape):
            yield inner, _get_box(shape)


def _is_picture(shape: "BaseShape") -> bool:
    """By its element: python-pptx knows no type of a shape without a geometry, and raises for it."""
    return str(shape._element.tag).endswith("}pic")


def _open_groups(shape: "BaseShape") -> Iterator["BaseShape"]:
    if str(shape._element.tag).endswith("}grpSp"):
        if _read_description(shape):
            yield shape
        for inner in sort_shapes(getattr(shape, "shapes", ())):
            yield from _open_groups(inner)
    else:
        yield shape


def _add_shape(draft: Draft, shape: "BaseShape", part: Part, page: int, bbox: Box | None) -> None:
    if shape.has_table:
        draft.add_table(_read_rows(shape.table), page, bbox)  # type: ignore[attr-defined]  # has_table says that it is there
    elif shape.has_text_frame:
        items = list(_iter_items(shape.text_frame))  # type: ignore[attr-defined]  # has_text_frame, as above
        marker = "- " if shape.is_placeholder and len(items) > 1 else ""
        for number, text in items:
            draft.add_text((number or marker) + text, page, bbox)
    elif _is_picture(shape):
        draft.add_image(_get_description(shape), page, bbox)
    elif shape._element.tag.endswith("}graphicFrame"):
        add_graphics(draft, shape._element, part, page, bbox)
        for name in shape._element.xpath(".//p:oleObj/@progId"):
            draft.uncertainties.append(f"slide {page}: an embedded object was not read ({name})")
    if not _is_picture(shape):
        draft.add_description(_read_description(shape), page, bbox)


def _iter_paragraphs(frame: "TextFrame") -> Iterator[str]:
    for number, text in _iter_items(frame):
        yield number + text


def _iter_items(frame: "TextFrame") -> Iterator[tuple[str, str]]:
    """Yields the paragraphs that have text, each with its number in a list."""
    numbers = SlideNumbers(frame._txBody.find("{*}lstStyle"))
    for paragraph in frame.paragraphs:
        if text := write_fractions(join_pieces(_iter_inline(paragraph._p))).strip():
            yield numbers.format_number(paragraph._p), text


def _iter_inline(paragraph: Element) -> Iterator[str]:
    """Yields the runs, fields, line breaks and equations of a paragraph."""
    before = before_raised = ""
    for child in paragraph:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if name in {"r", "fld"}:
            properties = child.find("{*}rPr")
            rise = _read_rise(properties)
            text = write_moved(rise, before_raised if rise > 0 else before, _read_run(child), _read_behind(child, rise))
            before, before_raised = text, before_raised if rise > 0 else text
            is_struck = properties is not None and properties.get("strike", "noStrike") != "noStrike"
            yield strike_out(text) if is_struck else text
        elif name == "br":
            yield "\n"
        elif name == "m":
            yield from map(format_equation, child)  # `a14:m` holds the equation; an `m:m` is a matrix


def _read_behind(run: Element, rise: int) -> str:
    """The text of the next run, behind the whole of a text that is raised in several runs."""
    for one in islice(run.itersiblings(), _NEAR):
        if rise <= 0 or _read_rise(one.find("{*}rPr")) <= 0:
            return _read_run(one)
    return ""


def _read_run(run: Element | None) -> str:
    """The text of a run or a field; empty for other elements."""
    return "" if run is None else _CONTROL.sub("\n", "".join(one.text or "" for one in run.iterfind("{*}t")))


def _read_rise(properties: Element | None) -> int:
    """How far a run is raised, in thousandths of a percent."""
    baseline = "0" if properties is None else properties.get("baseline", "0")
    return int(baseline) if baseline.removeprefix("-").isdecimal() else 0


def _get_description(shape: "BaseShape") -> str:
    return _read_description(shape) or shape.name


def _read_description(shape: "BaseShape") -> str:
    """What somebody wrote for people who do not see the shape; empty if nobody did."""
    own = shape._element.xpath("./*/p:cNvPr/@descr")
    return str(own[0]) if own else ""


def _read_rows(table: "Table") -> list[list[str]]:
    """The cells' texts. One merged downwards is in every row, a head merged to the right in each column, any other one
    merged to the right in its first column."""
    rows = [["\n".join(_iter_paragraphs(cell.text_frame)) for cell in row.cells] for row in table.rows]
    for y, row in enumerate(table.rows):
        for x, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                is_head = y == 0 and cell.span_width < len(row.cells) and len(rows[y][x]) <= MAX_HEAD
                width = cell.span_width if is_head else 1
                for below in range(y, min(y + cell.span_height, len(rows))):
                    rows[below][x : x + width] = [rows[y][x]] * len(rows[below][x : x + width])
    return rows


def _get_box(shape: "BaseShape") -> Box | None:
    place: tuple[int | None, ...] = (shape.left, shape.top, shape.width, shape.height)  # None: the layout decides
    if None in place:
        return None
    left, top, width, height = (Emu(length or 0).pt for length in place)
    return (round(left, 2), round(top, 2), round(left + width, 2), round(top + height, 2))
