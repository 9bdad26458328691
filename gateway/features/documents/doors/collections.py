"""`/v1/collections`, `/v1/search`: collections of documents, and search in them."""

from datetime import UTC, datetime

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from agent.core.errors import BadRequestError
from agent.core.models import DeferredModel, RetrievalMode
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.doors.documents import DocumentEntries, to_document_entry
from gateway.features.documents.engine.ingest.collection_store import CollectionStatus
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.search import models
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.models import ConnectorInput, MemoryOutput
from gateway.features.documents.engine.search.retriever import make_no_results_error
from gateway.features.documents.parts import get_documents

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[require_scope("agent")])


class CollectionEntry(DeferredModel):
    """A collection. `template` names its pipeline's template, if any; `embedder` made its vectors."""

    name: str
    documents: int
    status: CollectionStatus
    template: str
    embedder: str


class CollectionEntries(DeferredModel):
    """The caller's collections."""

    data: list[CollectionEntry]


class CollectionDetail(CollectionEntry):
    """A collection with its pipeline and the sources of its documents."""

    pipeline: PipelineDAG
    sources: list[ConnectorInput]
    created_at: datetime | None
    updated_at: datetime | None


class MemoryQuery(models.MemoryQuery):
    """A search in one collection, or in all of the caller's."""

    model_config = ConfigDict(defer_build=False)  # a body: see `DeferredModel`

    collection: str = Field(default="", max_length=200, description="where to look; empty: everywhere")
    mode: RetrievalMode | None = Field(default=None, description="unset: AGENT_RETRIEVAL_MODE")


@router.get("/v1/collections", responses=ERRORS, dependencies=[require_tool("list_documents")])
async def list_collections(stepgate: Gateway, caller: CurrentCaller) -> CollectionEntries:
    """List the caller's collections."""
    counts = await get_documents(stepgate).library.list_collections(caller.owner)
    rows = {name: await get_documents(stepgate).library.get_collection(caller.owner, name) for name in counts}
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


@router.get("/v1/collections/{name}", responses=ERRORS, dependencies=[require_tool("list_documents")])
async def get_collection(name: str, stepgate: Gateway, caller: CurrentCaller) -> CollectionDetail:
    """Return a collection; 404 if the caller has none of this name."""
    row = await get_documents(stepgate).library.get_collection(caller.owner, name)
    return CollectionDetail(
        name=name,
        documents=len(await get_documents(stepgate).library.list_documents(caller.owner, name)),
        status=row.status,
        template=row.pipeline.template,
        embedder=row.embedder,
        pipeline=row.pipeline,
        sources=list(row.sources),
        created_at=datetime.fromtimestamp(row.created, UTC) if row.created else None,
        updated_at=datetime.fromtimestamp(row.updated, UTC) if row.updated else None,
    )


@router.get("/v1/collections/{name}/documents", responses=ERRORS, dependencies=[require_tool("list_documents")])
async def list_documents(name: str, stepgate: Gateway, caller: CurrentCaller) -> DocumentEntries:
    """List the documents of a collection; 404 if the caller has none of this name."""
    documents = await get_documents(stepgate).library.list_documents(caller.owner, name)
    return DocumentEntries(data=[to_document_entry(name, document) for document in documents])


@router.delete("/v1/collections/{name}", status_code=204, responses=ERRORS, dependencies=[require_scope("ingest")])
async def delete_collection(name: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Remove a collection with its passages, vectors and uploads; 404 if the caller has none of this name."""
    await get_documents(stepgate).library.drop_collection(caller.owner, name, by=caller.name)


@router.post("/v1/search", responses=ERRORS, dependencies=[require_tool("search_knowledge")])
async def search_collection(body: MemoryQuery, stepgate: Gateway, caller: CurrentCaller) -> MemoryOutput:
    """Return passages of one or all collections, best first; 404 `ERR_MEMORY_NO_RESULTS` if none is relevant enough."""
    query = models.MemoryQuery.model_validate(body.model_dump(exclude={"collection", "mode"}))
    if not body.collection:
        return await _search_everywhere(stepgate, caller.owner, query, body.mode)
    return await get_documents(stepgate).library.search(caller.owner, body.collection, query, mode=body.mode)


async def _search_everywhere(
    stepgate: Stepgate, owner: str, query: models.MemoryQuery, mode: RetrievalMode | None
) -> MemoryOutput:
    """The best passages of all collections. Raises `MemoryNoResultsError` if none is relevant enough, and
    `BadRequestError` if no collection has a field of the filters.
    """
    outputs: list[MemoryOutput] = []
    missed: dict[str, MemoryNoResultsError] = {}
    unknown: BadRequestError | None = None
    for name in await get_documents(stepgate).library.list_collections(owner):
        try:
            outputs.append(await get_documents(stepgate).library.search(owner, name, query, mode=mode))
        except MemoryNoResultsError as error:
            missed[name] = error
        except BadRequestError as error:  # no passage of the collection has a field of the filters
            unknown = error
    if not outputs:
        if missed:
            raise make_no_results_error(query, [*missed]) if len(missed) > 1 else next(iter(missed.values()))
        raise unknown or MemoryNoResultsError("there are no documents yet", agent_id="memory")
    hits = sorted((one for output in outputs for one in output.results), key=lambda one: -one.relevance_score)
    notes = "; ".join(dict.fromkeys(output.note for output in outputs if output.note))
    total = sum(output.total_found for output in outputs)
    return MemoryOutput(results=tuple(hits[: query.top_k]), total_found=total, note=notes)
