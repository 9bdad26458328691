"""Annotations of a PDF: boxes of text, notes, and remarks on marked words (PDF 1.7, 12.5.6), and the
descriptions of its pictures (14.9.3)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse import AnnotationRect, ParsedPage, StructureTreeElement

_SILENT = frozenset({"link", "widget", "popup"})
"""Links and fields are read elsewhere; a popup shows the text of another annotation."""


def iter_annotations(page: "ParsedPage") -> Iterator[tuple[str, str, "AnnotationRect | None"]]:
    """Yields the text of each annotation with its author, the text alone, and its place."""
    for one in page.annotations or ():
        if text := "" if one.subtype in _SILENT else (one.contents or "").strip():
            author = f" by {one.title}" if one.title else ""
            is_box = one.subtype == "freetext"
            yield (text if is_box else f"Comment{author}: {text}"), text, one.rect


def has_drawn_notes(page: "ParsedPage") -> bool:
    """Whether a page has annotations that may draw words of their own, as stamps do."""
    return any(one.subtype not in _SILENT for one in page.annotations or ())


def has_pinned_files(page: "ParsedPage") -> bool:
    """Whether a page has annotations that hold files."""
    return any(one.subtype == "fileattachment" for one in page.annotations or ())


def iter_descriptions(page: "ParsedPage") -> Iterator[str]:
    """Yields the descriptions of pictures that a page's structure holds; those of other things stand for their text."""
    rest = list(page.structure_tree.roots) if page.structure_tree else []
    while rest:
        element: StructureTreeElement = rest.pop(0)
        if element.type == "Figure" and element.alt_text:
            yield element.alt_text
        else:
            rest[:0] = element.children
