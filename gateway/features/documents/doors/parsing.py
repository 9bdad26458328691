"""`POST /v1/parse`: one file as its parser reads it, block by block. Nothing is stored."""

from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from gateway.auth.dependencies import require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.run_intake import cancel_on_disconnect
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.document_processor import DocumentProcessor
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.models import ConnectorInput, FileType, ParserOutput, SourceType

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[require_scope("ingest")])


IngestionSource = Literal["gdrive", "local", "web_scrape"]
_SOURCE_TYPES: Mapping[IngestionSource, SourceType] = {"gdrive": "gdrive", "local": "local", "web_scrape": "web"}


class ParseBody(BaseModel):
    """A file to parse. `file_type` is checked against the file; with `force_ocr` the pages of a PDF are read by OCR."""

    model_config = ConfigDict(extra="forbid")

    file_path: str = Field(min_length=1, max_length=4000, description="path below AGENT_FILE_ROOTS")
    file_type: FileType
    ingestion_source: IngestionSource = "local"
    force_ocr: bool = False


@router.post("/v1/parse", responses=ERRORS, dependencies=[require_tool("ingest")])
async def parse_file(body: ParseBody, http: Request, stepgate: Gateway) -> ParserOutput:
    """Return the blocks of a file in reading order: texts, tables as Markdown, headers and images, with their places.

    403 for a path outside the folders that the operator allows; 422 for another type than the file has.
    """
    wanted = ConnectorInput(source_type="local", source_identifier=body.file_path)
    path = resolve_allowed(wanted, stepgate.settings.readable_roots).source_identifier
    pipeline = from_template("scans") if body.force_ocr else from_template()
    async with DocumentProcessor(pipeline) as processor:
        made = await cancel_on_disconnect(
            http, processor.process(path, body.file_type, _SOURCE_TYPES[body.ingestion_source])
        )
    return made.parsed
