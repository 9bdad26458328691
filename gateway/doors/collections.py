"""`/v1/collections`, `/v1/search`: what was read, and passages of it."""

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import RetrievalMode
from agent.knowledge.collection_store import CollectionStatus
from agent.knowledge.models import ConnectorInput, MemoryOutput, MemoryQuery
from agent.knowledge.pipeline import PipelineDAG
from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.body import JsonRoute
from gateway.doors.documents import DocumentEntries, document_entry
from gateway.doors.wiring import Gateway

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[requires("agent")])


class CollectionEntry(BaseModel):
    """A collection. `template` is what its pipeline was made from, if a template; `embedder` made its vectors."""

    name: str
    documents: int
    status: CollectionStatus
    template: str
    embedder: str


class CollectionEntries(BaseModel):
    """The caller's collections."""

    data: list[CollectionEntry]


class CollectionDetail(CollectionEntry):
    """A collection with its pipeline and where its documents come from."""

    pipeline: PipelineDAG
    sources: list[ConnectorInput]
    created_at: datetime | None
    updated_at: datetime | None


class SearchBody(MemoryQuery):
    """A search over one collection."""

    # FastAPI silences pydantic's warning about its fields only while it builds their validators itself.
    model_config = ConfigDict(defer_build=False)

    collection: str = Field(min_length=1, max_length=200)
    mode: RetrievalMode | None = Field(default=None, description="unset: AGENT_RETRIEVAL_MODE")


@router.get("/v1/collections", responses=ERRORS)
async def list_collections(stepgate: Gateway, caller: By) -> CollectionEntries:
    """The caller's collections."""
    counts = await stepgate.library.collections(caller.owner)
    rows = {name: await stepgate.library.collection(caller.owner, name) for name in counts}
    return CollectionEntries(
        data=[
            CollectionEntry(
                name=name,
                documents=counts[name],
                status=row.status,
                template=row.pipeline.template,
                embedder=row.embedder,
            )
            for name, row in rows.items()
        ]
    )


@router.get("/v1/collections/{name}", responses=ERRORS)
async def get_collection(name: str, stepgate: Gateway, caller: By) -> CollectionDetail:
    """A collection; 404 when there is none of the caller's."""
    row = await stepgate.library.collection(caller.owner, name)
    return CollectionDetail(
        name=name,
        documents=len(await stepgate.library.documents(caller.owner, name)),
        status=row.status,
        template=row.pipeline.template,
        embedder=row.embedder,
        pipeline=row.pipeline,
        sources=list(row.sources),
        created_at=datetime.fromtimestamp(row.created, UTC) if row.created else None,
        updated_at=datetime.fromtimestamp(row.updated, UTC) if row.updated else None,
    )


@router.get("/v1/collections/{name}/documents", responses=ERRORS)
async def list_documents(name: str, stepgate: Gateway, caller: By) -> DocumentEntries:
    """The documents of a collection; 404 when there is none of the caller's."""
    documents = await stepgate.library.documents(caller.owner, name)
    return DocumentEntries(data=[document_entry(name, document) for document in documents])


@router.delete("/v1/collections/{name}", status_code=204, responses=ERRORS, dependencies=[requires("ingest")])
async def delete_collection(name: str, stepgate: Gateway, caller: By) -> None:
    """Remove a collection with its passages, vectors and uploads; 404 when there is none of the caller's."""
    await stepgate.library.drop(caller.owner, name, by=caller.name)


@router.post("/v1/search", responses=ERRORS)
async def search(body: SearchBody, stepgate: Gateway, caller: By) -> MemoryOutput:
    """Passages of a collection, best first; 404 `ERR_MEMORY_NO_RESULTS` when nothing is relevant enough."""
    query = MemoryQuery.model_validate(body.model_dump(exclude={"collection", "mode"}))
    return await stepgate.library.search(caller.owner, body.collection, query, mode=body.mode)
