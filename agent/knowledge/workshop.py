"""`Workshop`: one file through the parser and the chunker of its type. Used by ingestion and by dry runs."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from time import monotonic
from typing import Literal, Self

from pydantic import SecretStr

from agent.knowledge.documents import Document, document_id
from agent.knowledge.errors import ParserTimeoutError, ParserUnsupportedError
from agent.knowledge.models import Chunk, FileType, ParserInput, ParserOutput, SourceType
from agent.knowledge.parsers import ParserLimits, ParserPool
from agent.knowledge.pipeline import PipelineDAG, PipelineNode, Route
from agent.knowledge.pipeline_check import route, route_fingerprint
from agent.knowledge.plugins import AUTO, ParserOptions, chunker, options_of
from agent.knowledge.templates import default_fingerprint

_INGESTED_FROM: Mapping[SourceType, Literal["gdrive", "local", "web_scrape"]] = {
    "gdrive": "gdrive",
    "local": "local",
    "web": "web_scrape",
}


@dataclass(frozen=True, slots=True)
class Made:
    """A file that was read and cut; how long each took, in seconds."""

    parsed: ParserOutput
    chunks: list[Chunk]
    fingerprint: str
    parser_s: float
    chunker_s: float

    def document(
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
    ) -> Document:
        """The row of the document. Other bytes, or another way to read them, give it another id: the old passages go
        when the new ones are in place."""
        checksum = self.parsed.document_id
        title = str(self.parsed.metadata.get("title") or "").strip() or PurePosixPath(name).name
        return Document(
            source=source,
            name=name,
            document_id=document_id(collection, source, checksum, self.fingerprint),
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
        )


class Workshop:
    """The parsers of one pipeline, each with its own limits; `password` opens protected PDFs. Their processes start
    with the first file they are given, and are killed at the end of the `async with`."""

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

    def route(self, file_type: FileType) -> Route | None:
        """The way of a type through the pipeline; None for one that it does not take."""
        if file_type not in self._routes:
            self._routes[file_type] = route(self.pipeline, file_type)
        return self._routes[file_type]

    def fingerprint(self, file_type: FileType) -> str:
        """The fingerprint of that way; empty for a type that is not taken."""
        way = self.route(file_type)
        return route_fingerprint(way) if way is not None else ""

    def is_current(self, known: Document, *, embedder: bool) -> bool:
        """Whether this pipeline would read the same bytes to the same passages, and to vectors if there is an
        `embedder` to make them."""
        way = self.route(known.file_type)
        was = known.fingerprint or default_fingerprint(known.file_type)
        if way is None or was != self.fingerprint(known.file_type):
            return False
        lacks_vectors = way.wants_vectors and bool(known.chunk_ids) and not known.embedder
        return not (embedder and lacks_vectors)

    async def read(self, path: str, file_type: FileType, source_type: SourceType = "local") -> Made:
        """Parse and cut a file. One that takes too long is tried once more. Raises the narrowest `ParserError`."""
        way = self.route(file_type)
        if way is None:
            raise ParserUnsupportedError(
                f"this pipeline does not take {file_type}", expected=file_type, found=file_type
            )
        started = monotonic()
        try:
            parsed = await self._parse(path, file_type, source_type, way.parser)
        except ParserTimeoutError as error:
            if error.details.get("reason") == "ocr":  # it went on to the end of its time; it would do so again
                raise
            parsed = await self._parse(path, file_type, source_type, way.parser)
        read = monotonic()
        cutter = chunker(way.chunker.plugin, way.chunker.options)
        chunks = await asyncio.to_thread(cutter.chunk, parsed)
        return Made(parsed, chunks, route_fingerprint(way), read - started, monotonic() - read)

    async def _parse(self, path: str, file_type: FileType, source_type: SourceType, node: PipelineNode) -> ParserOutput:
        options = options_of(ParserOptions, node.options)
        pool = self._pools.setdefault(options.limits, ParserPool(options.limits))
        wanted = ParserInput(
            file_path=path,
            file_type=file_type,
            ingestion_source=_INGESTED_FROM[source_type],
            force_ocr=options.force_ocr,
        )
        password = self._password.get_secret_value() if self._password is not None else None
        return await pool.parse(wanted, parser=None if node.plugin == AUTO else node.plugin, password=password)
