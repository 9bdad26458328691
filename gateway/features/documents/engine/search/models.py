"""The data that connectors, parsers, chunkers and the retriever exchange.

Names and fields follow the agent contracts that the product comes from; additional fields have defaults.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Literal

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject, RetrievalMode

SourceType = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="gdrive, web, local, or of an extension")
]
"""Names a connector. Unknown names are refused where a source is used, not here: stored sources must stay readable."""
FileType = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_-]{0,19}$",
        description="pdf, html, docx, pptx, xlsx, csv, md, txt, eml, or the type of an extension's parser",
    ),
]
"""Names what a parser reads. Unknown names are refused where a type is used: stored documents must stay readable."""
LayoutType = Literal["text", "table", "image", "header"]
AskModel = Callable[[tuple[JsonObject, ...]], Awaitable[str]]
"""Asks a model: OpenAI messages in, the text of the reply out. Raises `ModelError`, `BudgetError`."""


class ConnectorInput(FrozenModel):
    """A source to read."""

    source_type: SourceType
    source_identifier: str = Field(min_length=1, description="URL, file path, or Google Drive file or folder id")
    credentials_id: str | None = Field(default=None, description="name of a stored credential; never the secret")
    password_id: str | None = Field(
        default=None, description="name of a stored credential that opens protected PDFs; never the password"
    )
    recursive: bool = False
    max_depth: int | None = Field(default=None, ge=0, le=100, description="links away from the start of a web site")
    max_pages: int | None = Field(default=None, ge=1, le=1_000_000, description="pages of a web site that are read")


class ConnectorOutput(FrozenModel):
    """A fetched file."""

    file_path: str = Field(description="local absolute path")
    file_size_bytes: int
    source_metadata: JsonObject = Field(description="what the source says of it: headers, author, revision")
    checksum: str = Field(description="SHA-256 of the bytes, hex")


class ParserInput(FrozenModel):
    """A file to parse."""

    file_path: str = Field(description="local absolute path")
    file_type: FileType
    ingestion_source: Literal["gdrive", "local", "web_scrape"] = "local"
    force_ocr: bool = False


class ParsedChunk(FrozenModel):
    """A block of a document in reading order. `bbox` is `[x1, y1, x2, y2]` in points from the page's top left."""

    chunk_id: str
    content: str = Field(description="text, or a table as Markdown")
    chunk_index: int
    page_number: int | None = None
    layout_type: LayoutType = "text"
    bbox: tuple[float, float, float, float] | None = None
    heading_path: tuple[str, ...] = Field(default=(), description="the headings above this block, outermost first")


COMPLETE_SHARE = 0.98
"""A document with less coverage has an uncertainty that names what is missing."""
USABLE_SHARE = 0.5
"""Documents with less coverage block a pipeline."""


class Coverage(FrozenModel):
    """How much of a file's text is in its document, as a module measures it that shares nothing with the readers."""

    share: float = Field(ge=0, le=1, description="of the text that the file shows")
    unit: Literal["words", "characters", "cells"] = "words"
    total: int = Field(description="words, characters or cells that the file shows")
    missing: dict[str, int] = Field(default_factory=dict, description="how many are not in the document, by kind")
    omitted: dict[str, int] = Field(
        default_factory=dict, description="what is left out on purpose, such as deleted or hidden text, by kind"
    )

    def describe(self) -> str:
        """Says how much was read, and what is missing."""
        kinds = ", ".join(f"{count:,} {self.unit} of {kind}" for kind, count in self.missing.items())
        return f"{self.share:.0%} of the file's {self.unit} were read" + (f"; missing: {kinds}" if kinds else "")


class CoverageSummary(FrozenModel):
    """The coverage of an ingestion. `incomplete` documents have an uncertainty that names what is missing."""

    documents: int = Field(description="documents whose coverage was measured")
    mean: float
    lowest: float
    incomplete: int

    @staticmethod
    def of(coverages: Iterable[Coverage | None]) -> "CoverageSummary | None":
        """Sums up documents; None if none of them was measured."""
        shares = [one.share for one in coverages if one is not None]
        if not shares:
            return None
        return CoverageSummary(
            documents=len(shares),
            mean=sum(shares) / len(shares),
            lowest=min(shares),
            incomplete=sum(share < COMPLETE_SHARE for share in shares),
        )

    @staticmethod
    def merge(*summaries: "CoverageSummary | None") -> "CoverageSummary | None":
        """One summary of several; None if there is none."""
        known_summaries = [one for one in summaries if one is not None]
        if not known_summaries:
            return None
        documents = sum(one.documents for one in known_summaries)
        return CoverageSummary(
            documents=documents,
            mean=sum(one.mean * one.documents for one in known_summaries) / documents,
            lowest=min(one.lowest for one in known_summaries),
            incomplete=sum(one.incomplete for one in known_summaries),
        )

    def __str__(self) -> str:
        text = f"{self.mean:.1%} of the text was read"
        if self.incomplete:
            text += f"; {self.incomplete} of {self.documents} documents are incomplete, the least at {self.lowest:.0%}"
        return text


class ParserOutput(FrozenModel):
    """A parsed document. `uncertainties` warn the reader, for example of a scanned page without OCR."""

    document_id: str = Field(description="SHA-256 of the file's bytes, hex")
    metadata: JsonObject
    chunks: tuple[ParsedChunk, ...]
    total_pages: int
    processing_time_ms: float
    uncertainties: tuple[str, ...] = ()
    coverage: Coverage | None = Field(default=None, description="absent if the file has no text that can be counted")


class ChunkBlock(FrozenModel):
    """A block that is part of a chunk, wholly or partly: its characters in the document text, its page and box."""

    start: int
    end: int
    page: int | None = None
    box: tuple[float, float, float, float] | None = None


class Chunk(FrozenModel):
    """A piece of a document as it is indexed.

    `start` and `end` are its characters in the document text, `pages` the pages it spans, `boxes` the page and box of
    each block. `blocks` map characters to pages and boxes, if the document has any.
    """

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


class MemoryQuery(FrozenModel):
    """A search in a collection. `scoring.py` defines the relevance scale: from 0.7 a passage covers the query; it is
    not a probability.
    """

    query_text: str = Field(min_length=1)
    top_k: int = Field(default=5, ge=1, le=100)
    min_relevance_score: float = Field(default=0.7, ge=0, le=1)
    filters: JsonObject | None = Field(default=None, description="metadata that must be equal, e.g. source_type")


class RetrievedContext(FrozenModel):
    """A retrieved chunk.

    `relevance_score` is on the same scale in every mode. `metadata` has the page, boxes and heading path of the chunk,
    and the rank and score of each branch.
    """

    chunk_id: str
    content: str
    source_id: str
    source_url: str | None = None
    relevance_score: float = Field(ge=0, le=1)
    retrieval_mode: RetrievalMode = "lexical"
    why_selected: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class MemoryOutput(FrozenModel):
    """The results of a search, best first. `note` says what was not possible, such as a vector search without an
    embedder.
    """

    results: tuple[RetrievedContext, ...]
    total_found: int
    note: str = ""
