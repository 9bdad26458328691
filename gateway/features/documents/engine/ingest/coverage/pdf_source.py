"""The characters of a PDF in any orientation, by pdf_oxide, which shares nothing with PDFium."""

import pdf_oxide

from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_TURNED = 5.0
"""Degrees from which a text counts as turned; scans are skewed by less."""

_SLACK = 2.0
"""Points."""


pdf_oxide.disable_logging()  # it reports every oddity of a file on standard error


def read_source(data: bytes, _file_type: FileType, _encoding: str) -> SourceText:
    """Counts the characters on all pages, turned ones apart. Raises OSError for other files."""
    document = pdf_oxide.PdfDocument.from_bytes(data)
    source = SourceText(unit="characters")
    upright: list[str] = []
    turned: list[str] = []
    outside: list[str] = []
    for page in range(document.page_count()):
        try:
            left, bottom, right, top = document.page_crop_box(page) or document.page_media_box(page)
            characters = document.extract_chars(page)
        except RuntimeError:  # a page that the file only claims
            source.omitted["pages that cannot be opened"] += 1
            continue
        left, bottom, right, top = left - _SLACK, bottom - _SLACK, right + _SLACK, top + _SLACK
        for one in characters:
            if not (left <= one.origin_x <= right and bottom <= one.origin_y <= top):
                outside.append(one.char)
            elif -_TURNED <= one.rotation_degrees <= _TURNED:
                upright.append(one.char)
            else:
                turned.append(one.char)
    source.add_characters("text", "".join(upright))
    source.add_characters("values of form fields", "".join(_list_form_values(document)))
    source.add_characters("turned text", "".join(turned))
    source.omit("words outside of the page", "".join(outside))
    return source


def _list_form_values(document: pdf_oxide.PdfDocument) -> list[str]:
    """The texts that were typed or chosen in a form; ticks are not text."""
    try:
        values = [field.value for field in document.get_form_fields() if field.field_type in ("text", "choice")]
    except RuntimeError:
        return []
    listed = (value if isinstance(value, list | tuple) else [value] for value in values)
    return [one for value in listed for one in value if isinstance(one, str)]
