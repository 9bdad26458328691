"""The composition root: the only place that picks adapters from settings and wires them together."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.builder.conversations import BuilderConversations
from agent.core.audit import AuditLog, StoredAudit
from agent.core.config import Settings
from agent.core.credentials import Credentials
from agent.core.custody import ServiceLimits, worker_name
from agent.core.errors import ConfigError, ModelError
from agent.core.journal import Journal
from agent.core.key_budgets import KeyBudgets
from agent.core.keys import KeyStore
from agent.core.language import LanguageDetector
from agent.core.llm.port import ModelClient
from agent.core.llm.prices import Prices
from agent.core.llm.retrying import RetryingClient
from agent.core.llm.sdk import LiteLLMClient
from agent.core.llm.tiers import ModelTiers
from agent.core.memory import MemoryStore
from agent.core.models import AgentRequest, Room
from agent.core.net import SafeClient
from agent.core.rooms import Rooms, load_rooms
from agent.core.service import AgentService
from agent.core.sessions import SessionStore
from agent.core.statements import Statements
from agent.core.tasks import TaskService
from agent.execution.estimates import first_call
from agent.execution.executor import RunExecutor
from agent.execution.gates import refuse_unknown_gates
from agent.execution.graph import langgraph_driver
from agent.execution.run import Engine, Observer, Run
from agent.execution.screening import screened
from agent.execution.stages.guard import admit
from agent.execution.workflow import drive
from agent.knowledge.corpus_index import CorpusIndexer
from agent.knowledge.job_runner import IngestJobs
from agent.knowledge.jobs import JobStore
from agent.knowledge.library import Library
from agent.owners import Owners
from agent.skills import SkillLibrary, refuse_unknown_skills, skill_roots
from agent.tools import ToolRegistry
from gateway.builder import builder_of, builder_tools, conversations_of, ephemeral_of, rooms_of
from gateway.gatekeeper import CACHE_SECONDS, Gatekeeper, demands_key
from gateway.home import HOME as HOME  # noqa: PLC0414 - told on to those who wire a part of it
from gateway.home import SHIPPED_VIEWS
from gateway.idempotency_store import IdempotencyStore
from gateway.observe.lines import log_run
from gateway.observe.metrics import Metrics
from gateway.observe.traces import RunTraces, provider
from gateway.places import RunPlaces
from gateway.purse import KeyPurse
from gateway.stores import (
    corpus_of,
    embedder_of,
    library_of,
    meters_of,
    open_store,
    staff_of,
    statements_of,
    tasks_of,
    vectors_of,
)
from gateway.tokens import verifier_of
from mcp_tools.builtin import builtin_tools
from mcp_tools.mcp_config import read_servers
from mcp_tools.server_curated import check_rooms, views_of

if TYPE_CHECKING:
    from agent.core.llm.http import HttpModelClient
    from mcp_tools.hub import McpHub, McpServer

log = logging.getLogger(__name__)

Foreign = Literal["started", "remembered", "ignored"]
"""What is done with other people's MCP servers: connect to them, take their tools from the last good lists without
starting anything, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Stepgate:
    """The wired gateway."""

    settings: Settings
    service: AgentService[Run]
    rooms: Rooms
    skills: SkillLibrary
    registry: ToolRegistry
    journal: Journal
    models: ModelTiers
    servers: Mapping[str, "McpServer"]
    """Other people's MCP servers by name."""
    memory: MemoryStore
    library: Library
    corpus: CorpusIndexer
    tasks: TaskService
    metrics: Metrics
    keys: KeyStore
    gatekeeper: Gatekeeper
    idempotency: IdempotencyStore
    jobs: IngestJobs
    conversations: BuilderConversations
    audit: StoredAudit
    sessions: SessionStore
    owners: Owners


@asynccontextmanager
async def build(settings: Settings, *, recover: bool = True, foreign: Foreign = "started") -> AsyncIterator[Stepgate]:
    """Wire the gateway and take it down again. `recover` also takes up abandoned runs, now and while it lives.

    Raises `ConfigError`, `StoreNewerError` and `StoreError` with one clear line each."""
    async with AsyncExitStack() as stack:
        store = await open_store(settings)
        stack.push_async_callback(store.close)
        rooms = load_rooms(
            HOME / "config" / "rooms",
            *([settings.rooms_dir] if settings.rooms_dir else []),
            default=settings.default_room,
            guard_input={"injection": settings.guard_injection, "pii": settings.guard_pii},
        )
        _check(rooms, settings)
        rooms = rooms_of(rooms, settings)
        skills = SkillLibrary.load(skill_roots(settings, shipped=HOME / "skills", cwd=Path.cwd(), home=Path.home()))
        for diagnostic in skills.diagnostics:
            log.warning("%s", diagnostic)
        refuse_unknown_skills(rooms, skills)
        vectors, embedder = vectors_of(settings, store), embedder_of(settings)
        audit = StoredAudit(statements_of(store), time.time)
        memory = MemoryStore(vectors, embedder, time.time, audit)
        stack.push_async_callback(memory.close)
        client = SafeClient(settings.fetch_allow_hosts)
        stack.push_async_callback(client.aclose)
        library = library_of(settings, store, vectors, embedder, client, audit)
        builtins = builtin_tools(settings, memory, library)
        stack.push_async_callback(builtins.aclose)
        registry = ToolRegistry()
        jobs = IngestJobs(JobStore(statements_of(store), time.time), library, settings.readable_roots)
        stack.push_async_callback(jobs.aclose)
        ephemeral = ephemeral_of(settings)
        stack.push_async_callback(ephemeral.aclose)
        builder = builder_of(settings, store, library, jobs, ephemeral, audit)
        registry.register(*builtins.tools, *builder_tools(builder))
        hub = _hub(settings, registry, statements_of(store), audit) if foreign != "ignored" else None
        if hub is not None:
            stack.push_async_callback(hub.aclose)
        models = await _models(settings)
        if models.client is not None:
            stack.push_async_callback(models.client.aclose)
        metrics, languages = Metrics(), LanguageDetector()
        keys = KeyStore(statements_of(store), time.time, audit)
        meters = meters_of(settings)
        stack.push_async_callback(meters.aclose)
        places = RunPlaces(meters)
        purse = KeyPurse(keys, KeyBudgets(keys, statements_of(store), time.time), meters=meters)
        engine = Engine(
            settings,
            store.journal,
            store.conversations,
            models,
            registry,
            skills,
            memory,
            languages,
            subagents=staff_of(settings, library, client, languages, builder.find_source),
            observers=(metrics.observe, log_run, places.observe, *_traces(settings, stack)),
            purse=purse,
        )
        service = _service(engine, rooms, audit, purse, places)
        tasks = TaskService(tasks_of(store), service, room=settings.task_room, clock=time.time)
        stack.push_async_callback(tasks.aclose)
        conversations = conversations_of(settings, builder, service, models, follows=recover)
        stack.push_async_callback(conversations.aclose)
        gateway = Stepgate(
            settings,
            service,
            rooms,
            skills,
            registry,
            store.journal,
            models,
            hub.servers if hub else {},
            memory,
            library,
            corpus_of(store, vectors, embedder),
            tasks,
            metrics,
            keys,
            Gatekeeper(
                keys,
                demanded=demands_key(settings),
                max_streams=settings.max_open_streams,
                tokens=verifier_of(settings),
                minutes=purse.minutes,
                meters=meters,
            ),
            IdempotencyStore(statements_of(store)),
            jobs,
            conversations,
            audit,
            SessionStore(statements_of(store)),
            Owners(statements_of(store), service, library, memory, builder.messages, audit, CACHE_SECONDS),
        )
        if hub is not None:
            await (hub.start() if foreign == "started" else hub.recall())
        async with _carried_on(gateway, places, recover=recover):
            yield gateway


@asynccontextmanager
async def _carried_on(gateway: Stepgate, places: RunPlaces, *, recover: bool) -> AsyncIterator[None]:
    """Carry on what earlier processes left, watch over the runs meanwhile, and let them finish at the end."""
    custody = gateway.service.custody
    if recover:
        gateway.jobs.start()
        resumed = await custody.recover()
        await gateway.tasks.resume()
        await gateway.conversations.resume()
        if resumed:
            log.info("%s", "1 unfinished run goes on" if resumed == 1 else f"{resumed} unfinished runs go on")
    watch = asyncio.create_task(custody.watch(recover=recover), name="watch")
    keep = asyncio.create_task(places.keep(custody.paid), name="places")
    try:
        yield
    finally:
        left = await custody.begin_drain(gateway.settings.drain_seconds)
        if left:
            log.warning("%d %s left for the next start", left, "run is" if left == 1 else "runs are")
        for task in (watch, keep):
            task.cancel()
        await asyncio.wait([watch, keep])


def _check(rooms: Rooms, settings: Settings) -> None:
    """Raise `ConfigError` for a room's gate, or a room of the tasks or of an MCP view, that there is not."""
    refuse_unknown_gates(rooms)
    if settings.task_room not in (known := [room.id for room in rooms]):
        raise ConfigError(f"AGENT_TASK_ROOM: there is no room {settings.task_room!r}; known rooms: {', '.join(known)}")
    check_rooms(views_of(settings, SHIPPED_VIEWS).values(), rooms)


def _traces(settings: Settings, stack: AsyncExitStack) -> tuple[Observer, ...]:
    """Who turns runs into OpenTelemetry spans, where an endpoint is set. `ConfigError` without the extra."""
    if settings.otel_endpoint is None:
        return ()
    made = provider(settings.otel_endpoint)
    stack.callback(made.shutdown)
    return (RunTraces(made.get_tracer("stepgate"), content=settings.otel_content).observe,)


def _hub(settings: Settings, registry: ToolRegistry, statements: Statements, audit: AuditLog) -> "McpHub | None":
    """The client side of MCP, where servers are configured."""
    servers, problems = read_servers(settings.mcp_servers_path)
    for problem in problems:
        log.warning("%s", problem)
    if not servers:
        return None
    from mcp_tools.hub import McpHub  # noqa: PLC0415 - the SDK is a third of the start-up, and most have no servers
    from mcp_tools.pins_store import Pinning, PinStore  # noqa: PLC0415 - likewise

    pinning = Pinning(PinStore(statements, time.time, audit), settings.mcp_pin)
    return McpHub(servers, registry, settings.data_dir / "mcp", pinning, Credentials(settings.credentials_file))


def _driver(settings: Settings) -> Callable[[Run], Awaitable[None]]:
    """Who walks runs through their stages. `ConfigError` where LangGraph is asked for and not installed."""
    return langgraph_driver() if settings.workflow == "langgraph" else drive


def _service(engine: Engine, rooms: Rooms, audit: AuditLog, purse: KeyPurse, places: RunPlaces) -> AgentService[Run]:
    worker = worker_name()
    settings = engine.settings

    def admit_here(request: AgentRequest, room: Room, narrowed: bool) -> None:
        admit(request, room, engine.registry, engine.skills, settings, narrowed=narrowed)

    def screen(request: AgentRequest) -> AgentRequest:
        return screened(request, secrets)

    async def afford(key: str, request: AgentRequest, room: Room) -> None:
        if engine.models.configured:
            await purse.afford(key, first_call(request, room, settings.llm_max_tokens))

    secrets = settings.secret_values()
    limits = ServiceLimits(settings.max_concurrent_runs, settings.max_queued_runs, settings.lease_seconds)
    executor = RunExecutor(engine, worker, _driver(settings))
    return AgentService(
        engine.journal,
        executor,
        rooms,
        admit_here,
        worker=worker,
        limits=limits,
        audit=audit,
        screen=screen,
        afford=afford,
        places=places,
        progress=engine.progress,
    )


async def _models(settings: Settings) -> ModelTiers:
    """The lean client for an endpoint by URL, LiteLLM's SDK for a provider by name, nothing in rules mode."""
    if not settings.llm_configured:
        return ModelTiers()
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    adapter: ModelClient
    fast = settings.model_fast
    if settings.llm_base_url is not None:
        from agent.core.llm.http import HttpModelClient  # noqa: PLC0415 - aiohttp, which rules mode does not need

        endpoint = HttpModelClient(settings.llm_base_url, key)
        fast = fast or await _first_model(endpoint)
        adapter = endpoint
    else:
        adapter = LiteLLMClient(api_key=key)
    return ModelTiers(
        client=RetryingClient(adapter),
        fast=fast,
        high=settings.model_high,
        timeout_s=settings.llm_timeout_s,
        max_tokens=settings.llm_max_tokens,
        prices=Prices(settings.model_prices),
    )


async def _first_model(endpoint: "HttpModelClient") -> str:
    """The endpoint's first model. `ConfigError` when it cannot be asked: then a person has to name one."""
    try:
        names = await endpoint.models()
    except ModelError as error:
        await endpoint.aclose()
        raise ConfigError(
            f"AGENT_MODEL_FAST: name a model; the endpoint's list is out of reach: {error.message}"
        ) from error
    if not names:
        await endpoint.aclose()
        raise ConfigError("AGENT_MODEL_FAST: name a model; the endpoint lists none")
    return names[0]
