"""`/v1/documents`: single documents, with their passages, metadata and bytes. An uploaded document is read at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from agent.core.errors import StoreFullError
from agent.core.models import DeferredModel, JsonObject
from agent.core.record_item import RecordItem
from agent.core.settings import Settings
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.features.documents.engine.ingest.templates import build_requested_pipeline
from gateway.features.documents.engine.ingest.uploads import SOURCE_PREFIX
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import Coverage, FileType
from gateway.features.documents.parts import get_documents
from gateway.render.error_responses import MediaTypeError
from gateway.render.errors import RequestFormatError

router = APIRouter(tags=["knowledge"], route_class=DeferredRoute, dependencies=[require_scope("agent")])

UPLOAD_PATH = "/v1/documents"
FORM_BYTES = 65_536
"""Most bytes of a form besides its file."""
_CHUNK_BYTES = 256 * 1024
_FIELDS = ("collection", "template")
_SAFE_HEADERS = {
    # The bytes are untrusted: a browser must not guess their type or run them as a page of this origin.
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
}
_FORM_SCHEMA: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "collection": {"type": "string", "default": "documents"},
                        "template": {"type": "string", "description": "pipeline of the collection from now on"},
                    },
                }
            }
        },
    }
}


class DocumentEntry(DeferredModel):
    """A document as it was read. `checksum` is the SHA-256 of its bytes."""

    document_id: str
    collection: str
    name: str
    title: str
    source: str
    source_type: str
    url: str | None
    file_type: FileType
    size: int
    pages: int
    passages: int
    checksum: str
    embedder: str
    read_at: datetime
    uncertainties: list[str]
    coverage: Coverage | None = Field(
        description="how much of the file's text was read; null if it has none that can be counted, or was read before"
    )


class DocumentEntries(DeferredModel):
    """Documents by collection, in the order of their sources."""

    data: list[DocumentEntry]


class ChunkEntry(RecordItem):
    """A passage. `metadata` has its pages, boxes, headings and its span in the document's text."""

    chunk_id: str
    title: str
    text: str
    metadata: JsonObject


class DocumentDetail(DocumentEntry):
    """A document with its passages in the order of its text. `source_metadata` is what the source says of the file."""

    processing_time_ms: float = Field(description="of reading and splitting it")
    source_metadata: JsonObject
    chunks: list[ChunkEntry]


class UploadedDocument(DocumentEntry):
    """An uploaded document. `unchanged` if the collection already had these bytes; `note` says why vectors are missing,
    if the embedder failed.
    """

    unchanged: bool
    note: str


def to_document_entry(collection: str, document: Document) -> DocumentEntry:
    """A document as it is sent."""
    return DocumentEntry(
        document_id=document.document_id,
        collection=collection,
        name=document.name,
        title=document.title,
        source=document.source,
        source_type="upload" if document.source.startswith(SOURCE_PREFIX) else document.source_type,
        url=document.url,
        file_type=document.file_type,
        size=document.size,
        pages=document.pages,
        passages=len(document.chunk_ids),
        checksum=document.checksum,
        embedder=document.embedder,
        read_at=datetime.fromtimestamp(document.at, UTC),
        uncertainties=list(document.uncertainties),
        coverage=document.coverage,
    )


@router.get("/v1/documents", responses=ERRORS, dependencies=[require_tool("list_documents")])
async def list_documents(
    stepgate: Gateway,
    caller: CurrentCaller,
    collection: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> DocumentEntries:
    """List the documents of one collection, or of all; 404 for a collection that is not the caller's."""
    names = (
        [collection]
        if collection is not None
        else list(await get_documents(stepgate).library.list_collections(caller.owner))
    )
    documents = [
        (name, document)
        for name in names
        for document in await get_documents(stepgate).library.list_documents(caller.owner, name)
    ]
    return DocumentEntries(data=[to_document_entry(*one) for one in documents[offset : offset + limit]])


@router.post(
    "/v1/documents",
    status_code=201,
    responses={**ERRORS, 200: {"model": UploadedDocument, "description": "The collection already has this file"}},
    openapi_extra=_FORM_SCHEMA,
    dependencies=[require_scope("ingest"), require_tool("ingest")],
)
async def upload_document(
    http: Request, response: Response, stepgate: Gateway, caller: CurrentCaller
) -> UploadedDocument:
    """Read one file, sent as multipart/form-data, into a collection: 201, or 200 if it already had these bytes.

    Nothing is stored of a file that cannot be read (422).
    """
    async with _open_form(http) as form:
        file, fields = _split_form(form)
        added = await get_documents(stepgate).library.add_upload(
            caller.owner,
            fields.get("collection", "documents"),
            file.filename,
            file.file,
            pipeline=build_requested_pipeline(fields.get("template")),
        )
        entry = to_document_entry(fields.get("collection", "documents"), added.document)
    if not added.is_new:
        response.status_code = 200
    return UploadedDocument(**entry.model_dump(), unchanged=not added.is_new, note=added.note)


@router.get("/v1/documents/{document_id}", responses=ERRORS, dependencies=[require_tool("list_documents")])
async def get_document(
    document_id: str, stepgate: Gateway, caller: CurrentCaller, collection: str | None = None
) -> DocumentDetail:
    """Return a document and its passages; 404 if the caller has no such document."""
    document = await get_documents(stepgate).library.get_document(caller.owner, document_id, collection)
    passages = await get_documents(stepgate).library.list_passages(caller.owner, document)
    entry = to_document_entry(document.collection, document.document)
    return DocumentDetail(
        **entry.model_dump(),
        processing_time_ms=document.document.processing_time_ms,
        source_metadata=document.document.source_metadata,
        chunks=ChunkEntry.from_records(passages),
    )


@router.delete("/v1/documents/{document_id}", status_code=204, responses=ERRORS, dependencies=[require_scope("ingest")])
async def delete_document(
    document_id: str, stepgate: Gateway, caller: CurrentCaller, collection: str | None = None
) -> None:
    """Remove a document with its passages, vectors and uploaded bytes. One that is still at its source returns with the
    next reading.
    """
    await get_documents(stepgate).library.remove_document(caller.owner, document_id, collection, by=caller.name)


@router.get(
    "/v1/documents/{document_id}/file",
    responses={**ERRORS, 200: {"content": {"application/octet-stream": {}}, "description": "The bytes"}},
    response_class=Response,
    dependencies=[require_tool("list_documents")],
)
async def get_file(
    document_id: str, stepgate: Gateway, caller: CurrentCaller, collection: str | None = None
) -> StreamingResponse:
    """Return the bytes that were read, to open a citation at its page: uploads, and files on this machine that have not
    changed (else 409). 404 for web documents, which are at their `url`.
    """
    document = await get_documents(stepgate).library.get_document(caller.owner, document_id, collection)
    file = await asyncio.to_thread(get_documents(stepgate).library.open_file, caller.owner, document)
    return StreamingResponse(
        _read_chunks(file),
        media_type="application/pdf" if document.document.file_type == "pdf" else "application/octet-stream",
        headers={
            **_SAFE_HEADERS,
            "content-length": str(document.document.size),
            "content-disposition": _build_content_disposition(document.document),
            "etag": f'"{document.document.checksum}"',
        },
        background=BackgroundTask(file.close),
    )


@asynccontextmanager
async def _open_form(http: Request) -> AsyncIterator[FormData]:
    """Yields the form of a request. Its file is a temporary file that is deleted at the end."""
    kind = http.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise MediaTypeError(f"The body was sent as `{kind[:80]}`; send a file as `multipart/form-data`.")
    try:
        form = await http.form(max_files=1, max_fields=len(_FIELDS))
    except ClientDisconnect as error:
        raise HTTPException(400, "the client disconnected before its body was complete") from error
    except OSError as error:
        raise StoreFullError(f"the upload cannot be stored: {error.strerror}") from error
    try:
        yield form
    finally:
        await form.close()


def _split_form(form: FormData) -> tuple[UploadFile, dict[str, str]]:
    """The file and the fields of a form. Raises `RequestFormatError`."""
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise RequestFormatError(
            "The form needs a part `file` with a file in it.", "file", "missing_required_parameter"
        )
    fields: dict[str, str] = {}
    for name, value in form.multi_items():
        if name == "file":
            continue
        if name not in _FIELDS or not isinstance(value, str):
            raise RequestFormatError(
                f"Unknown field: {name[:100]!r}. The fields are file, {', '.join(_FIELDS)}.", name[:100]
            )
        fields[name] = value
    return file, fields


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_CHUNK_BYTES):
        yield piece


def _build_content_disposition(document: Document) -> str:
    """The header: a PDF opens in the browser's viewer at a citation's page; every other file is downloaded,
    never shown as a page of ours (RFC 6266, RFC 8187).
    """
    name = document.name.rsplit("/", 1)[-1] or "document"
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\%' else "_" for letter in name
    )
    how = "inline" if document.file_type == "pdf" else "attachment"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def get_upload_limits(settings: Settings) -> dict[str, int]:
    """The most bytes that an upload may have, with its form around it."""
    return {UPLOAD_PATH: settings.max_upload_bytes + FORM_BYTES}
