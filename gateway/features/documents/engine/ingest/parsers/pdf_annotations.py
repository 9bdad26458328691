"""What people wrote on the pages of a PDF: boxes of text, notes, and remarks on marked words (PDF 1.7, 12.5.6)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse import AnnotationRect, ParsedPage

_SILENT = frozenset({"link", "widget", "popup"})
"""Links and fields are read elsewhere; a popup shows the text of another annotation."""


def iter_annotations(page: "ParsedPage") -> Iterator[tuple[str, "AnnotationRect | None"]]:
    """Yields the text of each annotation with its author, and its place."""
    for one in page.annotations or ():
        if text := "" if one.subtype in _SILENT else (one.contents or "").strip():
            author = f" by {one.title}" if one.title else ""
            is_box = one.subtype == "freetext"
            yield (text if is_box else f"Comment{author}: {text}"), one.rect
