"""`GET /v1/memories`, `DELETE /v1/memories/{id}`: what is remembered for the caller, and forgetting it."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from agent.core.memory import Kind, Memory
from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.wiring import Gateway

router = APIRouter(tags=["memory"], dependencies=[requires("agent")])


class MemoryEntry(BaseModel):
    """A memory. `score` is the cosine with the query it was found by."""

    id: str
    text: str
    kind: Kind
    source: str
    saved_at: datetime
    from_outside: bool
    score: float | None = None


class MemoryEntries(BaseModel):
    """Memories: best first for a query, else newest first. `note` says why the configured embedder was not used."""

    data: list[MemoryEntry]
    note: str = ""


@router.get("/v1/memories", responses=ERRORS)
async def list_memories(
    stepgate: Gateway,
    caller: By,
    query: Annotated[str | None, Query(max_length=1000)] = None,
    kind: Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> MemoryEntries:
    """The caller's memories; those that have to do with `query` when given."""
    if query is not None:
        recall = await stepgate.memory.search(caller.owner, query, limit=limit)
        return MemoryEntries(data=[_entry(memory) for memory in recall.memories], note=recall.fallback_reason or "")
    newest = await stepgate.memory.newest(caller.owner, kind=kind, limit=limit)
    return MemoryEntries(data=[_entry(memory) for memory in newest])


@router.delete("/v1/memories/{memory_id}", status_code=204, responses=ERRORS)
async def delete_memory(memory_id: str, stepgate: Gateway, caller: By) -> None:
    """Forget one; 404 when there is none of the caller's."""
    await stepgate.memory.delete(caller.owner, memory_id, by=caller.name)


def _entry(memory: Memory) -> MemoryEntry:
    return MemoryEntry(
        id=memory.id,
        text=memory.text,
        kind=memory.kind,
        source=memory.source,
        saved_at=datetime.fromtimestamp(memory.at, UTC),
        from_outside=memory.tainted,
        score=None if memory.score is None else round(memory.score, 3),
    )
