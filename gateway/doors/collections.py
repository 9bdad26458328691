"""`/v1/collections`, `/v1/search`: what was read, and passages of it. Reading is `stepgate ingest`."""

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from agent.core.models import LOCAL_OWNER
from agent.knowledge.models import MemoryOutput, MemoryQuery, RetrievalMode
from gateway.doors.agent import ERRORS
from gateway.doors.wiring import Gateway

router = APIRouter(tags=["knowledge"])


class CollectionEntry(BaseModel):
    """A collection."""

    name: str
    documents: int


class CollectionEntries(BaseModel):
    """The caller's collections."""

    data: list[CollectionEntry]


class DocumentEntry(BaseModel):
    """A document as it was read. `checksum` is the SHA-256 of its bytes."""

    document_id: str
    name: str
    title: str
    file_type: str
    size: int
    pages: int
    passages: int
    checksum: str
    read_at: datetime
    uncertainties: list[str]


class DocumentEntries(BaseModel):
    """The documents of a collection."""

    data: list[DocumentEntry]


class SearchBody(MemoryQuery):
    """A search over one collection."""

    collection: str = Field(min_length=1, max_length=200)
    mode: RetrievalMode = "hybrid_rerank"


@router.get("/v1/collections", responses=ERRORS)
async def list_collections(stepgate: Gateway) -> CollectionEntries:
    """The caller's collections."""
    found = await stepgate.library.collections(LOCAL_OWNER)
    return CollectionEntries(data=[CollectionEntry(name=name, documents=count) for name, count in found.items()])


@router.get("/v1/collections/{name}/documents", responses=ERRORS)
async def list_documents(name: str, stepgate: Gateway) -> DocumentEntries:
    """The documents of a collection; 404 when there is none of the caller's."""
    documents = await stepgate.library.documents(LOCAL_OWNER, name)
    return DocumentEntries(
        data=[
            DocumentEntry(
                document_id=document.document_id,
                name=document.name,
                title=document.title,
                file_type=document.file_type,
                size=document.size,
                pages=document.pages,
                passages=len(document.chunk_ids),
                checksum=document.checksum,
                read_at=datetime.fromtimestamp(document.at, UTC),
                uncertainties=list(document.uncertainties),
            )
            for document in documents
        ]
    )


@router.delete("/v1/collections/{name}", status_code=204, responses=ERRORS)
async def delete_collection(name: str, stepgate: Gateway) -> None:
    """Remove a collection with its passages and vectors; 404 when there is none of the caller's."""
    await stepgate.library.drop(LOCAL_OWNER, name)


@router.post("/v1/search", responses=ERRORS)
async def search(body: SearchBody, stepgate: Gateway) -> MemoryOutput:
    """Passages of a collection, best first; 404 `ERR_MEMORY_NO_RESULTS` when nothing is relevant enough."""
    query = MemoryQuery.model_validate(body.model_dump(exclude={"collection", "mode"}))
    return await stepgate.library.search(LOCAL_OWNER, body.collection, query, mode=body.mode)
