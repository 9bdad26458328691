"""From words in a chunk to a citation: the exact snippet, its place in the document, its pages and boxes."""

import hashlib
import re
from collections.abc import Sequence

from pydantic import JsonValue

from agent.grounded_answers.models import SourceCitation, document_name, numbers_in
from agent.search.models import RetrievedContext

_RUN = re.compile(r"^run_([0-9a-f]{32})$")
_CITATION = re.compile(r"^cit_([0-9a-f]{32})_([0-9a-f]{12})$")

_PDF = re.compile(r"\.pdf(?:$|\?)", re.IGNORECASE)

Box = tuple[int, float, float, float, float]


def citation(chunk: RetrievedContext, start: int, end: int, *, number: int, run_id: str = "") -> SourceCitation:
    """The citation of `chunk.content[start:end]`. Pages and boxes are those of the blocks the words stand in, where
    the index holds the blocks; else those of the whole chunk."""
    metadata = chunk.metadata
    first = metadata.get("start")
    origin = first if isinstance(first, int) else 0
    pages, boxes = _place(chunk, origin + start, origin + end)
    return SourceCitation(
        source_id=chunk.source_id,
        chunk_id=chunk.chunk_id,
        text_snippet=chunk.content[start:end],
        url=_at_page(chunk, pages),
        citation_id=citation_id(run_id, chunk.chunk_id, start, end),
        number=number,
        source=document_name(chunk),
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


def citation_id(run_id: str, chunk_id: str, start: int, end: int) -> str:
    """The id of a citation: its run, and which words of which chunk. Empty outside a run."""
    run = _RUN.match(run_id)
    if run is None:
        return ""
    words = hashlib.sha256(f"{chunk_id}:{start}:{end}".encode("utf-8", "replace")).hexdigest()[:12]
    return f"cit_{run[1]}_{words}"


def run_of(citation: str) -> str | None:
    """The run a citation belongs to; None for what is no citation's id."""
    match = _CITATION.match(citation)
    return f"run_{match[1]}" if match else None


def blocks_of(chunk: RetrievedContext) -> list[tuple[int, int, int | None, tuple[float, float, float, float] | None]]:
    """The blocks of a chunk as the index holds them: start and end in the document's text, page, box."""
    found = []
    listed = chunk.metadata.get("blocks")
    for block in listed if isinstance(listed, list) else ():
        if isinstance(block, list) and len(block) == 4 and isinstance(block[0], int) and isinstance(block[1], int):
            page = block[2] if isinstance(block[2], int) else None
            found.append((block[0], block[1], page, _corners(block[3])))
    return found


def _place(chunk: RetrievedContext, start: int, end: int) -> tuple[tuple[int, ...], tuple[Box, ...]]:
    blocks = [block for block in blocks_of(chunk) if block[0] < end and block[1] > start]
    if blocks:
        pages = tuple(dict.fromkeys(page for _, _, page, _ in blocks if page is not None))
        return pages, tuple((page or 1, *box) for _, _, page, box in blocks if box is not None)
    listed = chunk.metadata.get("boxes")
    boxes = [_box(box) for box in listed] if isinstance(listed, list) else []
    return numbers_in(chunk.metadata, "pages"), tuple(box for box in boxes if box is not None)


def _box(value: JsonValue) -> Box | None:
    if not isinstance(value, list) or len(value) != 5 or not isinstance(value[0], int):
        return None
    corners = _corners(value[1:])
    return None if corners is None else (value[0], *corners)


def _corners(value: JsonValue | Sequence[JsonValue]) -> tuple[float, float, float, float] | None:
    if not isinstance(value, list) or len(value) != 4:
        return None
    numbers = [float(number) for number in value if isinstance(number, int | float)]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def _at_page(chunk: RetrievedContext, pages: tuple[int, ...]) -> str | None:
    """The address of the document, a PDF's at the page."""
    url = chunk.source_url
    if not url or not pages or "#" in url:
        return url
    is_pdf = chunk.metadata.get("file_type") == "pdf" or _PDF.search(url) is not None
    return f"{url}#page={pages[0]}" if is_pdf else url
