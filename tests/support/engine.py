"""A whole engine in process: real SQLite on disk (PostgreSQL by `database_url`), real tools, a scripted model."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agent.core.config import Settings
from agent.core.custody import ServiceLimits, worker_name
from agent.core.embedder import Embedder
from agent.core.events import Event
from agent.core.journal_sqlite import SqliteStore
from agent.core.language import LanguageDetector
from agent.core.llm.tiers import ModelTiers
from agent.core.memory import MemoryStore
from agent.core.models import AgentRequest, AgentResponse, Room
from agent.core.net import SafeClient
from agent.core.response import respond
from agent.core.rooms import Rooms
from agent.core.service import AgentService
from agent.execution.executor import RunExecutor
from agent.execution.run import Engine, Observer, Run
from agent.execution.stages.guard import admit
from agent.execution.subagents import SubAgentStaff
from agent.execution.workflow import drive
from agent.knowledge.library import Library
from agent.skills import SkillLibrary, SkillRoot
from agent.subagents.registry import SUBAGENTS, Kind
from agent.subagents.spawn import spawn_tools
from agent.tools import Tool, ToolRegistry
from gateway.bootstrap import HOME
from gateway.stores import library_of, open_store, staff_of, vectors_of
from mcp_tools.builtin import builtin_tools
from tests.support.script import Script
from tests.support.scripted_client import ScriptedClient


@dataclass
class Bench:
    """The engine and what tests look at."""

    engine: Engine
    service: AgentService[Run]
    client: ScriptedClient
    store: SqliteStore
    """Tests that look into the store itself are on SQLite."""
    library: Library

    async def run(self, prompt: str, **request: Any) -> AgentResponse:
        """Carry out a request to its end; a failed run's response too."""
        return respond(await self.events(prompt, **request))

    async def events(self, prompt: str, **request: Any) -> list[Event]:
        """Carry out a request; its whole log."""
        run_id = await self.service.start(AgentRequest(prompt=prompt, **request))
        return [event async for event in self.service.events(run_id)]


@asynccontextmanager
async def engine_bench(
    folder: Path,
    script: Script | None,
    *,
    tools: Sequence[Tool] = (),
    skill_roots: Sequence[Path] = (),
    room: Room | None = None,
    worker: str | None = None,
    embedder: Embedder | None = None,
    driver: Callable[[Run], Awaitable[None]] = drive,
    observers: tuple[Observer, ...] = (),
    kinds: Sequence[Kind] = SUBAGENTS,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """An engine on `folder`; rules mode when there is no script. `tools` join the builtin ones."""
    configured = Settings(_env_file=None, data_dir=folder, skills_user_dir=False, stream_coalesce_ms=0, **settings)
    store = await open_store(configured)
    vectors = vectors_of(configured, store)
    memory = MemoryStore(vectors, embedder, time.time)
    client_of_sources = SafeClient(configured.fetch_allow_hosts)
    library = library_of(configured, store, vectors, embedder, client_of_sources)
    builtins = builtin_tools(configured, memory, library)
    registry = ToolRegistry()
    registry.register(*builtins.tools, *spawn_tools(kinds), *tools)
    roots = [SkillRoot(path, "test") for path in skill_roots] + [SkillRoot(HOME / "skills", "shipped")]
    client = ScriptedClient(script or Script())
    models = ModelTiers(client, "small", "large", 5.0, 1000) if script is not None else ModelTiers()
    languages = LanguageDetector()
    engine = Engine(
        configured,
        store.journal,
        store.conversations,
        models,
        registry,
        SkillLibrary.load(roots),
        memory,
        languages,
        subagents=SubAgentStaff(staff_of(configured, library, client_of_sources, languages).materials, kinds),
        observers=observers,
    )
    chosen = room or Room(id="test")
    rooms = Rooms([chosen, replace_planning(chosen)], chosen.id)
    name = worker or worker_name()

    def admit_here(request: AgentRequest, wanted: Room, narrowed: bool) -> None:
        admit(request, wanted, registry, engine.skills, configured, narrowed=narrowed)

    service = AgentService(
        store.journal,
        RunExecutor(engine, name, driver),
        rooms,
        admit_here,
        worker=name,
        limits=ServiceLimits(lease_s=configured.lease_seconds),
    )
    try:
        yield Bench(engine, service, client, cast("SqliteStore", store), library)
    finally:
        await service.custody.begin_drain(0)
        await builtins.aclose()
        await client_of_sources.aclose()
        await memory.close()
        await store.close()


def replace_planning(room: Room) -> Room:
    """The same room as a plain model."""
    return room.model_copy(update={"id": "plain", "planning": False})
