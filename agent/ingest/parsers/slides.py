"""pptx by python-pptx: slide by slide, every shape with its place.

kreuzberg is the fall-back: it splits words at run ends ("S ome info"), leaves most blocks without a slide number, and
refuses slides with linked pictures (docs/adr/0004-parsers.md).
"""

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.util import Emu

from agent.ingest.parsers.draft import Box, Draft
from agent.ingest.parsers.file_input import InputFile

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide
    from pptx.table import Table
    from pptx.text.text import TextFrame


def read_slides(source: InputFile) -> Draft:
    """Reads a presentation: a slide is a page, its title a heading, its notes a paragraph. Raises
    python-pptx's errors."""
    presentation = Presentation(io.BytesIO(source.data))
    core = presentation.core_properties
    metadata = {"title": core.title, "authors": [core.author] if core.author else None}
    draft = Draft(pages=len(presentation.slides), metadata={name: value for name, value in metadata.items() if value})
    for number, slide in enumerate(presentation.slides, 1):
        _add_slide(draft, slide, number)
    return draft


def _add_slide(draft: Draft, slide: "Slide", page: int) -> None:
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        draft.add_heading(title.text_frame.text.replace("\v", " "), 1, page, _get_box(title))
    elif draft.blocks:  # a slide without a title must not stand under the one before
        draft.add_heading(f"Slide {page}", 1, page)
    for shape, bbox in _iter_shapes(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            _add_shape(draft, shape, page, bbox)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None and frame.text.strip():
        draft.add_text(f"Notes: {frame.text}", page)


def _iter_shapes(shapes: Iterable["BaseShape"]) -> Iterator[tuple["BaseShape", Box | None]]:
    """Yields shapes with their boxes from top to bottom, opening groups: the file's order is the drawing order.

    A shape in a group has the group's box, because its own place is in the group's coordinates.
    """
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        for inner in _open_groups(shape):
            yield inner, _get_box(shape)


def _open_groups(shape: "BaseShape") -> Iterator["BaseShape"]:
    if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
        for inner in getattr(shape, "shapes", ()):
            yield from _open_groups(inner)
    else:
        yield shape


def _add_shape(draft: Draft, shape: "BaseShape", page: int, bbox: Box | None) -> None:
    if shape.has_table:
        draft.add_table(_read_rows(shape.table), page, bbox)  # type: ignore[attr-defined]  # has_table says that it is there
    elif shape.has_text_frame:
        texts = list(_iter_paragraphs(shape.text_frame))  # type: ignore[attr-defined]  # has_text_frame, as above
        marker = "- " if shape.is_placeholder and len(texts) > 1 else ""
        for text in texts:
            draft.add_text(marker + text, page, bbox)
    elif shape.shape_type in {MSO_SHAPE_TYPE.PICTURE, MSO_SHAPE_TYPE.LINKED_PICTURE}:
        draft.add_image(_get_description(shape), page, bbox)


def _iter_paragraphs(frame: "TextFrame") -> Iterator[str]:
    for paragraph in frame.paragraphs:
        if text := paragraph.text.replace("\v", "\n").strip():
            yield text


def _get_description(shape: "BaseShape") -> str:
    found = shape._element.xpath(".//p:cNvPr/@descr")
    return str(found[0]) if found else shape.name


def _read_rows(table: "Table") -> list[list[str]]:
    return [[cell.text_frame.text for cell in row.cells] for row in table.rows]


def _get_box(shape: "BaseShape") -> Box | None:
    place: tuple[int | None, ...] = (shape.left, shape.top, shape.width, shape.height)  # None: the layout decides
    if None in place:
        return None
    left, top, width, height = (Emu(length or 0).pt for length in place)
    return (round(left, 2), round(top, 2), round(left + width, 2), round(top + height, 2))
