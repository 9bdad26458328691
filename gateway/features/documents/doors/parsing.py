"""`POST /v1/parse`: one file as its parser reads it, block by block. Nothing is stored."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from gateway.access.dependencies import require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.connectors.port import MissedDocument
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.ingest.walk import close_walk
from gateway.features.documents.engine.search.models import ConnectorInput, FileType, ParserOutput, SourceType
from gateway.features.documents.parts import get_documents

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[require_scope("ingest")])


IngestionSource = Literal["gdrive", "local", "web_scrape"]
_ADDRESSES = ("http://", "https://")
_SOURCE_TYPES: Mapping[IngestionSource, SourceType] = {"gdrive": "gdrive", "local": "local", "web_scrape": "web"}


class ParserInput(BaseModel):
    """A file to parse. `file_type` is checked against the file; with `force_ocr` the pages of a PDF are read by OCR."""

    model_config = ConfigDict(extra="forbid")

    file_path: str = Field(min_length=1, max_length=4000, description="path below AGENT_FILE_ROOTS, or a web address")
    file_type: FileType
    ingestion_source: IngestionSource = "local"
    force_ocr: bool = False


@router.post("/v1/parse", responses=ERRORS, dependencies=[require_tool("ingest")])
async def parse_file(body: ParserInput, http: Request, stepgate: Gateway) -> ParserOutput:
    """Return the blocks of a file in reading order: texts, tables as Markdown, headers and images, with their places.

    A web address is fetched as the web connector does, and its copy is deleted. 403 for a path outside the folders that
    the operator allows, or an address that may not be asked; 422 for another type than the file has.
    """
    return await cancel_on_disconnect(http, _parse(body, stepgate))


async def _parse(body: ParserInput, stepgate: Stepgate) -> ParserOutput:
    pipeline = from_template("scans") if body.force_ocr else from_template()
    async with _open_file(body, stepgate) as path, DocumentProcessor(pipeline) as processor:
        made = await processor.process(path, body.file_type, _SOURCE_TYPES[body.ingestion_source])
    return made.parsed


@asynccontextmanager
async def _open_file(body: ParserInput, stepgate: Stepgate) -> AsyncIterator[str]:
    """The path of the file, or of a copy of what is at the address. Raises what connectors raise."""
    settings = stepgate.settings
    if not body.file_path.lower().startswith(_ADDRESSES):
        given = ConnectorInput(source_type="local", source_identifier=body.file_path)
        yield resolve_allowed(given, settings.readable_roots).source_identifier
        return
    request = ConnectorInput(source_type="web", source_identifier=body.file_path)
    connector = get_documents(stepgate).connectors["web"]
    async with open_workspace(settings.data_dir / "workspaces") as workspace:
        walk = connector.fetch(request, workspace, {})
        async with close_walk(walk):
            async for document in walk:
                if isinstance(document, MissedDocument):
                    raise document.error
                if document.output is not None:
                    yield document.output.file_path
                    return
    raise ConnectorNotFoundError(f"there is no document at {body.file_path!r}")
