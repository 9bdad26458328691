"""`POST /v1/corpus/example`: the example company, to try answers from documents with."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.parts import get_documents
from gateway.features.incident.engine.collection_names import EXAMPLE_COLLECTIONS
from gateway.features.incident.example_company import load_example_company

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[require_scope("ingest")])


class ExampleCollection(BaseModel):
    """One collection of the example company."""

    name: str
    documents: int = Field(description="how many documents the collection has now")


class ExampleCollections(BaseModel):
    """The collections of the example company."""

    data: list[ExampleCollection]


@router.post("/v1/corpus/example", status_code=201, responses=ERRORS, dependencies=[require_tool("ingest")])
async def load_example(stepgate: Gateway, caller: CurrentCaller) -> ExampleCollections:
    """Load the example company into collections of its own: policies, runbooks and tickets into `example-company`,
    tickets and incidents into `example-issues`. Unchanged documents are skipped.
    """
    await load_example_company(stepgate, caller.owner)
    collections = await get_documents(stepgate).library.list_collections(caller.owner)
    return ExampleCollections(
        data=[ExampleCollection(name=name, documents=collections[name]) for name in EXAMPLE_COLLECTIONS]
    )
