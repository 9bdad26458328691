"""Builds a citation from words of a chunk: the exact snippet, its span in the document, its pages and boxes."""

import hashlib
import re

from pydantic import TypeAdapter, ValidationError

from agent.core.models import SourceCitation
from gateway.features.documents.engine.grounded_answers.models import get_document_name, list_numbers
from gateway.features.documents.engine.search.models import RetrievedContext

_RUN = re.compile(r"^run_([0-9a-f]{32})$")
_CITATION = re.compile(r"^cit_([0-9a-f]{32})_([0-9a-f]{12})$")
_PDF = re.compile(r"\.pdf(?:$|\?)", re.IGNORECASE)

Box = tuple[int, float, float, float, float]
"""A page, and the left, upper, right and lower edge of the box on it, in points."""
_BLOCKS: TypeAdapter[list[tuple[int, int, int | None, tuple[float, float, float, float] | None]]] = TypeAdapter(
    list[tuple[int, int, int | None, tuple[float, float, float, float] | None]]
)
"""Start and end in the document's text, page, and box of each block of a chunk, as the index stores them."""
_BOXES: TypeAdapter[tuple[Box, ...]] = TypeAdapter(tuple[Box, ...])


def make_citation(
    chunk: RetrievedContext, start: int, end: int, *, number: int = 0, run_id: str = ""
) -> SourceCitation:
    """The citation of `chunk.content[start:end]`.

    Pages and boxes are those of the blocks that contain the words, or of the whole chunk if it has no blocks."""
    metadata = chunk.metadata
    first = metadata.get("start")
    origin = first if isinstance(first, int) else 0
    pages, boxes = _find_place(chunk, origin + start, origin + end)
    return SourceCitation(
        source_id=chunk.source_id,
        chunk_id=chunk.chunk_id,
        text_snippet=chunk.content[start:end],
        url=_link_to_page(chunk, pages),
        citation_id=make_citation_id(run_id, chunk.chunk_id, start, end),
        number=number,
        source=get_document_name(chunk),
        collection=str(metadata.get("collection") or ""),
        page=pages[0] if pages else None,
        pages=pages,
        start=origin + start,
        end=origin + end,
        offset=start,
        boxes=boxes,
        chunk_checksum=str(
            metadata.get("checksum") or hashlib.sha256(chunk.content.encode("utf-8", "replace")).hexdigest()
        ),
        file_checksum=str(metadata.get("file_checksum") or ""),
    )


def make_citation_id(run_id: str, chunk_id: str, start: int, end: int) -> str:
    """The id of a citation, made of its run, chunk and span; empty outside a run."""
    run = _RUN.match(run_id)
    if run is None:
        return ""
    words = hashlib.sha256(f"{chunk_id}:{start}:{end}".encode("utf-8", "replace")).hexdigest()[:12]
    return f"cit_{run[1]}_{words}"


def parse_run_id(citation: str) -> str | None:
    """The run of a citation id, or None if the id is malformed."""
    match = _CITATION.match(citation)
    return f"run_{match[1]}" if match else None


def _find_place(chunk: RetrievedContext, start: int, end: int) -> tuple[tuple[int, ...], tuple[Box, ...]]:
    try:
        blocks = _BLOCKS.validate_python(chunk.metadata.get("blocks") or [])
        boxes = _BOXES.validate_python(chunk.metadata.get("boxes") or [])
    except ValidationError:  # a passage of another program's tool
        blocks, boxes = [], ()
    within = [block for block in blocks if block[0] < end and block[1] > start]
    if not within:
        return list_numbers(chunk.metadata, "pages"), boxes
    pages = tuple(dict.fromkeys(page for _, _, page, _ in within if page is not None))
    return pages, tuple((page or 1, *box) for _, _, page, box in within if box is not None)


def _link_to_page(chunk: RetrievedContext, pages: tuple[int, ...]) -> str | None:
    """The address of the document, for a PDF with the page."""
    url = chunk.source_url
    if not url or not pages or "#" in url:
        return url
    is_pdf = chunk.metadata.get("file_type") == "pdf" or _PDF.search(url) is not None
    return f"{url}#page={pages[0]}" if is_pdf else url
