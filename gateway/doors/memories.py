"""`GET /v1/memories`, `DELETE /v1/memories/{id}`: list and delete the caller's memories."""

from typing import Annotated

from fastapi import APIRouter, Query

from agent.core.models import DeferredModel
from agent.run_context.memory import Kind
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from mcp_tools.builtin.memory_forms import MemoryEntry

router = APIRouter(tags=["memory"], route_class=DeferredRoute, dependencies=[require_scope("agent")])


class MemoryEntries(DeferredModel):
    """Memories: best first for a query, else newest first. `note` says why the configured embedder was not used."""

    data: list[MemoryEntry]
    note: str = ""


@router.get("/v1/memories", responses=ERRORS, dependencies=[require_tool("memory_search")])
async def list_memories(
    stepgate: Gateway,
    caller: CurrentCaller,
    query: Annotated[str | None, Query(max_length=1000)] = None,
    kind: Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> MemoryEntries:
    """List the caller's memories; with `query`, those relevant to it."""
    if query is not None:
        recall = await stepgate.memory.search(caller.owner, query, limit=limit)
        return MemoryEntries(data=MemoryEntry.from_records(recall.memories), note=recall.fallback_reason or "")
    newest = await stepgate.memory.list_newest(caller.owner, kind=kind, limit=limit)
    return MemoryEntries(data=MemoryEntry.from_records(newest))


@router.delete("/v1/memories/{memory_id}", status_code=204, responses=ERRORS)
async def delete_memory(memory_id: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Delete a memory; 404 if the caller has no such memory."""
    await stepgate.memory.delete(caller.owner, memory_id, by=caller.name)
