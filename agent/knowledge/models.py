"""The contracts between the parts of knowledge: what a connector, a parser, a chunker and a retriever hand on.

Names and fields follow the agent contracts the product comes from; additions have defaults.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import Field

from agent.core.models import Frozen, JsonObject, RetrievalMode

SourceType = Literal["gdrive", "web", "local"]
FileType = Literal["pdf", "html", "docx", "pptx", "xlsx", "csv", "md", "txt", "eml"]
LayoutType = Literal["text", "table", "image", "header"]
NOT_IN_DOCUMENTS = "The documents don't say."
"""The whole answer where nothing was found: said, never guessed."""
Ask = Callable[[tuple[JsonObject, ...]], Awaitable[str]]
"""One question to a model: OpenAI's messages in, the reply's text out. Raises `ModelError`, `BudgetError`."""


class ConnectorInput(Frozen):
    """A source to be read."""

    source_type: SourceType
    source_identifier: str = Field(min_length=1, description="URL, file path, or Google Drive file or folder id")
    credentials_id: str | None = Field(default=None, description="name of a stored credential; never the secret")
    password_id: str | None = Field(
        default=None, description="name of a stored credential that opens protected PDFs; never the password"
    )
    recursive: bool = False


class ConnectorOutput(Frozen):
    """A file that was fetched."""

    file_path: str = Field(description="local absolute path")
    file_size_bytes: int
    source_metadata: JsonObject = Field(description="what the source says of it: headers, author, revision")
    checksum: str = Field(description="SHA-256 of the bytes, hex")


class ParserInput(Frozen):
    """A file to be read."""

    file_path: str = Field(description="local absolute path")
    file_type: FileType
    ingestion_source: Literal["gdrive", "local", "web_scrape"] = "local"
    force_ocr: bool = False


class ParsedChunk(Frozen):
    """A block of a document in reading order. `bbox` is `[x1, y1, x2, y2]` in points from the page's top left."""

    chunk_id: str
    content: str = Field(description="text, or a table as Markdown")
    chunk_index: int
    page_number: int | None = None
    layout_type: LayoutType = "text"
    bbox: tuple[float, float, float, float] | None = None
    heading_path: tuple[str, ...] = Field(default=(), description="the headings above this block, outermost first")


class ParserOutput(Frozen):
    """A document that was read. `uncertainties` say what a reader should know (a scanned page without OCR)."""

    document_id: str = Field(description="SHA-256 of the file's bytes, hex")
    metadata: JsonObject
    chunks: tuple[ParsedChunk, ...]
    total_pages: int
    processing_time_ms: float
    uncertainties: tuple[str, ...] = ()


class ChunkBlock(Frozen):
    """A block that stands in a chunk, wholly or in part: its place in the document's text, its page, its box."""

    start: int
    end: int
    page: int | None = None
    box: tuple[float, float, float, float] | None = None


class Chunk(Frozen):
    """A piece of a document as it is indexed. `start` and `end` are its place in the document's text, in characters;
    `pages` are the pages it spans, `boxes` one box a block with the page it stands on; `blocks` say which words those
    are, where there are pages or boxes at all."""

    chunk_id: str
    document_id: str
    index: int
    text: str
    start: int
    end: int
    pages: tuple[int, ...] = ()
    boxes: tuple[tuple[int, float, float, float, float], ...] = ()
    blocks: tuple[ChunkBlock, ...] = ()
    heading_path: tuple[str, ...] = ()
    layout_type: LayoutType = "text"
    checksum: str = Field(description="SHA-256 of the text, hex")


class MemoryQuery(Frozen):
    """A search over a collection. What a score means stands in `evidence.py`: from 0.7 on a passage fits all that was
    asked for; it is no probability."""

    query_text: str = Field(min_length=1)
    top_k: int = Field(default=5, ge=1, le=100)
    min_relevance_score: float = Field(default=0.7, ge=0, le=1)
    filters: JsonObject | None = Field(default=None, description="metadata that must be equal, e.g. source_type")


class RetrievedContext(Frozen):
    """A chunk that was found. `relevance_score` is calibrated to 0..1 in every mode; `metadata` holds page, boxes,
    heading path, and each branch's own rank and score."""

    chunk_id: str
    content: str
    source_id: str
    source_url: str | None = None
    relevance_score: float = Field(ge=0, le=1)
    retrieval_mode: RetrievalMode = "lexical"
    why_selected: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class MemoryOutput(Frozen):
    """What a search found, best first. `note` says when a wish could not be met (no embedder: lexical alone)."""

    results: tuple[RetrievedContext, ...]
    total_found: int
    note: str = ""
