"""A whole engine in process: real SQLite on disk (PostgreSQL by `database_url`), real tools, a scripted model."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from agent.core.events import Event
from agent.core.models import AgentRequest, AgentResponse, Room
from agent.core.settings import Settings
from agent.execution.executor import RunExecutor
from agent.execution.stages.guard import validate_request
from agent.execution.subagent_runner import SubAgentRunner
from agent.execution.workflow import drive
from agent.llm.embedder import Embedder
from agent.llm.tiers import ModelTiers
from agent.net import SafeClient
from agent.run_context.engine import Engine, Observer
from agent.run_context.extensions import Extension, merge_extensions
from agent.run_context.ground_sources import GroundCollections, GroundSources
from agent.run_context.memory import MemoryStore
from agent.run_context.run import Run
from agent.runs.response import build_response
from agent.runs.rooms import Rooms
from agent.runs.run_worker import RunWorker, ServiceLimits, make_worker_name
from agent.runs.service import Admission, AgentService
from agent.skills import SkillLibrary, SkillRoot
from agent.storage.journal_sqlite import SqliteStore
from agent.subagents import RegisteredSubAgent, SubAgentClass, make_spawn_tools, register_subagents
from agent.text.language import LanguageDetector
from agent.tools import Tool, ToolRegistry
from gateway.bootstrap_database import open_store
from gateway.bootstrap_memory import build_vector_index
from gateway.features.documents.bootstrap_documents import build_connectors, build_library
from gateway.features.documents.engine.document_runs import DOCUMENT_EXTENSION
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.subagents.researcher import Researcher
from gateway.features.documents.tools import make_document_tools
from gateway.features.documents.tools.knowledge import measure_relevance
from gateway.features.incident.tools import INCIDENT_EXTENSION, make_incident_tools
from gateway.features.pipeline_builder.bootstrap_pipeline_builder import register_source_agents
from gateway.features.pipeline_builder.engine.subagents.pipeline_validator import PipelineValidator
from gateway.features.pipeline_builder.engine.subagents.source_analyzer import SourceAnalyzer
from gateway.features.studio.engine.intent_routing import INTENT_EXTENSION
from gateway.features.studio.engine.subagents.studio import STUDIO_AGENTS
from gateway.packaged_files import PACKAGE_ROOT
from mcp_tools.builtin import make_builtin_tools
from tests.support.script import Script
from tests.support.scripted_client import ScriptedClient

SUBAGENTS: tuple[SubAgentClass, ...] = (SourceAnalyzer, PipelineValidator, Researcher, *STUDIO_AGENTS)
"""The sub-agents of all features."""
EXTENSIONS = (INCIDENT_EXTENSION, DOCUMENT_EXTENSION, INTENT_EXTENSION)
"""What features add to the runs of tests."""


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
        return build_response(await self.events(prompt, **request))

    async def events(self, prompt: str, **request: Any) -> list[Event]:
        """Carry out a request; its whole log."""
        run_id = await self.service.start_run(AgentRequest(prompt=prompt, **request))
        return [event async for event in self.service.follow_events(run_id)]


def _register(
    kinds: Sequence[SubAgentClass],
    settings: Settings,
    library: Library,
    client: SafeClient,
    languages: LanguageDetector,
) -> list[RegisteredSubAgent]:
    """The sub-agents of these kinds, with what their features give them."""
    sources = register_source_agents(settings, library, build_connectors(settings, client), languages)
    known = {one.kind: one for one in sources}
    return [known.get(kind) or register_subagents((kind,))[0] for kind in kinds]


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
    kinds: Sequence[SubAgentClass] = SUBAGENTS,
    extensions: Sequence[Extension] = EXTENSIONS,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """An engine on `folder`; rules mode when there is no script. `tools` join the builtin ones."""
    configured = Settings(_env_file=None, data_dir=folder, skills_dirs=(), stream_coalesce_ms=0, **settings)
    store = await open_store(configured)
    vectors = build_vector_index(configured, store)
    memory = MemoryStore(vectors, embedder, time.time)
    client_of_sources = SafeClient(configured.fetch_allow_hosts)
    library = build_library(configured, store, vectors, embedder, client_of_sources)
    builtins = make_builtin_tools(configured, memory)
    registry = ToolRegistry()
    registry.register(*make_document_tools(configured, library), *make_incident_tools(library))
    registry.register(*builtins.tools, *make_spawn_tools(kinds), *tools)
    roots = [SkillRoot(path, "test") for path in skill_roots] + [SkillRoot(PACKAGE_ROOT / "skills", "shipped")]
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
        configured.list_secrets(),
        subagents=SubAgentRunner(_register(kinds, configured, library, client_of_sources, languages)),
        observers=observers,
        extensions=merge_extensions(extensions),
        ground=GroundSources(
            builtins.walk_files,
            collections=GroundCollections(library.list_collections, partial(measure_relevance, library)),
        ),
    )
    chosen = room or Room(id="test")
    rooms = Rooms([chosen, replace_planning(chosen)], chosen.id)
    name = worker or make_worker_name()

    def validate(request: AgentRequest, wanted: Room, owner: str | None) -> None:
        sees = engine.models.sees_pictures
        validate_request(
            request, wanted, owner, registry=registry, skills=engine.skills, settings=configured, sees_pictures=sees
        )

    executor = RunExecutor(engine, name, driver)
    limits = ServiceLimits(lease_s=configured.lease_seconds)
    service = AgentService(
        store.journal,
        RunWorker[Run](store.journal, executor, worker=name, limits=limits),
        executor,
        rooms,
        Admission(validate, list_approval_exempt=registry.list_approval_exempt),
    )
    try:
        yield Bench(engine, service, client, cast("SqliteStore", store), library)
    finally:
        await service.worker.begin_drain(0)
        await builtins.aclose()
        await client_of_sources.aclose()
        await memory.close()
        await store.close()


def replace_planning(room: Room) -> Room:
    """The same room as a plain model."""
    return room.model_copy(update={"id": "plain", "planning": False})
