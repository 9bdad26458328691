"""`DocumentProcessor`: takes a file through the parser and chunker of its type. Used by ingestion and dry runs."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from time import monotonic
from typing import Literal, Self

from pydantic import SecretStr

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.errors import ParserTimeoutError, ParserUnsupportedError
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineNode, Route
from gateway.features.documents.engine.ingest.pipeline_check import find_route, route_fingerprint
from gateway.features.documents.engine.ingest.plugins import AUTO, ParserOptions, make_chunker, parse_options
from gateway.features.documents.engine.ingest.templates import compute_default_fingerprint
from gateway.features.documents.engine.search.documents import Document, make_document_id
from gateway.features.documents.engine.search.models import Chunk, FileType, ParserInput, ParserOutput, SourceType

_INGESTION_SOURCES: Mapping[SourceType, Literal["gdrive", "local", "web_scrape"]] = {
    "gdrive": "gdrive",
    "local": "local",
    "web": "web_scrape",
}


@dataclass(frozen=True, slots=True)
class ProcessedDocument:
    """A processed file, with the seconds that each stage took."""

    parsed: ParserOutput
    chunks: list[Chunk]
    fingerprint: str
    parser_s: float
    chunker_s: float

    def to_document(
        self,
        *,
        collection: str,
        source: str,
        name: str,
        file_type: FileType,
        source_type: SourceType,
        size: int,
        url: str | None,
        at: float,
        source_metadata: JsonObject | None = None,
    ) -> Document:
        """The document's row. Other bytes, or another pipeline, give another id, so old passages can be deleted
        later."""
        checksum = self.parsed.document_id
        title = str(self.parsed.metadata.get("title") or "").strip() or PurePosixPath(name).name
        return Document(
            source=source,
            name=name,
            document_id=make_document_id(collection, source, checksum, self.fingerprint),
            checksum=checksum,
            title=title[:300],
            file_type=file_type,
            size=size,
            pages=self.parsed.total_pages,
            uncertainties=self.parsed.uncertainties,
            at=at,
            fingerprint=self.fingerprint,
            source_type=source_type,
            url=url,
            coverage=self.parsed.coverage,
            processing_time_ms=round((self.parser_s + self.chunker_s) * 1000, 3),
            source_metadata=source_metadata or {},
        )


class DocumentProcessor:
    """The parsers of one pipeline, each with its own limits; `password` opens protected PDFs.

    Parser processes start with the first file and are killed at the end of the `async with`.
    """

    def __init__(self, pipeline: PipelineDAG, password: SecretStr | None = None) -> None:
        self.pipeline = pipeline
        self._password = password
        self._pools: dict[ParserLimits, ParserPool] = {}
        self._routes: dict[FileType, Route | None] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    def find_route(self, file_type: FileType) -> Route | None:
        """The route of a type through the pipeline, or None."""
        if file_type not in self._routes:
            self._routes[file_type] = find_route(self.pipeline, file_type)
        return self._routes[file_type]

    def compute_fingerprint(self, file_type: FileType) -> str:
        """The fingerprint of the type's route; empty if there is none."""
        route = self.find_route(file_type)
        return route_fingerprint(route) if route is not None else ""

    def is_current(self, known: Document, *, embedder: bool) -> bool:
        """Whether this pipeline would produce the same passages, and vectors if there is an `embedder`."""
        route = self.find_route(known.file_type)
        was = known.fingerprint or compute_default_fingerprint(known.file_type)
        if route is None or was != self.compute_fingerprint(known.file_type):
            return False
        lacks_vectors = route.wants_vectors and bool(known.chunk_ids) and not known.embedder
        return not (embedder and lacks_vectors)

    async def process(self, path: str, file_type: FileType, source_type: SourceType = "local") -> ProcessedDocument:
        """Parses and splits a file; one that times out is tried once more, without its measure, which native code may
        never end. Raises the narrowest `ParserError`.
        """
        route = self.find_route(file_type)
        if route is None:
            raise ParserUnsupportedError(
                f"files of the type {file_type} are not read here; GET /v1/plugins lists the readers",
                expected=file_type,
                found=file_type,
            )
        started = monotonic()
        try:
            parsed = await self._parse(path, file_type, source_type, route.parser)
        except ParserTimeoutError as error:
            if error.details.get("reason") in ("ocr", "start"):  # it took its whole time; it would do so again
                raise
            parsed = await self._parse(path, file_type, source_type, route.parser, is_measured=False)
        read = monotonic()
        chunker = make_chunker(route.chunker.plugin, route.chunker.options)
        chunks = await asyncio.to_thread(chunker.chunk, parsed)
        return ProcessedDocument(parsed, chunks, route_fingerprint(route), read - started, monotonic() - read)

    async def _parse(
        self, path: str, file_type: FileType, source_type: SourceType, node: PipelineNode, *, is_measured: bool = True
    ) -> ParserOutput:
        options = parse_options(ParserOptions, node.options)
        pool = self._pools.setdefault(options.limits, ParserPool(options.limits))
        wanted = ParserInput(
            file_path=path,
            file_type=file_type,
            ingestion_source=_INGESTION_SOURCES.get(source_type, "local"),
            force_ocr=options.force_ocr,
        )
        password = self._password.get_secret_value() if self._password is not None else None
        parser = None if node.plugin == AUTO else node.plugin
        return await pool.parse(wanted, parser=parser, password=password, is_measured=is_measured)
