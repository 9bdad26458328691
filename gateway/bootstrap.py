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
from agent.core.config import Settings
from agent.core.custody import ServiceLimits, worker_name
from agent.core.errors import AgentError, ConfigError, ModelError
from agent.core.journal import Journal
from agent.core.keys import KeyStore
from agent.core.language import LanguageDetector
from agent.core.llm.http import HttpModelClient, production_transport
from agent.core.llm.port import ModelClient
from agent.core.llm.retrying import RetryingClient
from agent.core.llm.sdk import LiteLLMClient
from agent.core.llm.tiers import ModelTiers
from agent.core.memory import MemoryStore
from agent.core.models import AgentRequest, Room
from agent.core.net import SafeClient
from agent.core.rooms import Rooms, load_rooms
from agent.core.service import AgentService
from agent.core.tasks import TaskService
from agent.execution.executor import RunExecutor
from agent.execution.gates import refuse_unknown_gates
from agent.execution.graph import langgraph_driver
from agent.execution.run import Engine, Observer, Run
from agent.execution.stages.guard import admit
from agent.execution.workflow import drive
from agent.knowledge.corpus_index import CorpusIndexer
from agent.knowledge.job_runner import IngestJobs
from agent.knowledge.jobs import JobStore
from agent.knowledge.library import Library
from agent.skills import SkillLibrary, skill_roots
from agent.tools import ToolRegistry
from gateway.builder import builder_of, builder_tools, conversations_of, ephemeral_of, rooms_of
from gateway.gatekeeper import Gatekeeper, KeyPurse, demands_key
from gateway.home import HOME as HOME  # noqa: PLC0414 - told on to those who wire a part of it
from gateway.home import SHIPPED_VIEWS
from gateway.idempotency_store import IdempotencyStore
from gateway.observe.metrics import Metrics
from gateway.observe.traces import RunTraces, provider
from gateway.stores import corpus_of, embedder_of, library_of, open_store, staff_of, statements_of, tasks_of, vectors_of
from mcp_tools.builtin import builtin_tools
from mcp_tools.mcp_config import read_servers
from mcp_tools.server_curated import check_rooms, views_of

if TYPE_CHECKING:
    from mcp_tools.hub import McpHub, McpServer

log = logging.getLogger(__name__)

Foreign = Literal["started", "remembered", "ignored"]
"""What is done with other people's MCP servers: connect to them, take their tools from the last good lists without
starting anything, or nothing at all."""


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One line of `/ready` and `stepgate doctor`."""

    ok: bool
    detail: str


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

    async def readiness(self) -> dict[str, ComponentStatus]:
        """Whether requests can be served, component by component. Models being down is no reason not to: the
        gateway then works by rules; it is reported all the same."""
        status = {
            "store": await self._store(),
            "models": await self._models(),
            "memory": await self._memory(),
            "gateway": self._gateway(),
        }
        if self.settings.redis_url is not None:
            status["redis"] = await self._redis()
        for name, server in self.servers.items():
            detail = f"{server.status}, {len(server.tools)} tools" + (f": {server.reason}" if server.reason else "")
            status[f"mcp:{name}"] = ComponentStatus(server.status in ("ready", "disabled"), detail)
        return status

    async def _store(self) -> ComponentStatus:
        try:
            await self.journal.check()
        except AgentError as error:
            return ComponentStatus(False, error.message)
        if self.settings.database_url is not None:
            return ComponentStatus(True, "PostgreSQL (AGENT_DATABASE_URL)")
        return ComponentStatus(True, f"SQLite at {self.settings.database_path}")

    async def _redis(self) -> ComponentStatus:
        try:
            return ComponentStatus(True, await self.conversations.builder.messages.check())
        except AgentError as error:
            return ComponentStatus(False, error.message)

    async def _memory(self) -> ComponentStatus:
        try:
            return ComponentStatus(True, await self.memory.check())
        except AgentError as error:
            return ComponentStatus(False, error.message)

    async def _models(self) -> ComponentStatus:
        if self.models.client is None:
            return ComponentStatus(True, "no model is configured: rules mode (set AGENT_MODEL_FAST)")
        where = self.settings.llm_base_url or "LiteLLM"
        try:
            await self.models.client.check()
        except ModelError as error:
            return ComponentStatus(False, error.message)
        return ComponentStatus(True, f"{where}: fast={self.models.fast}, high={self.models.high or self.models.fast}")

    def _gateway(self) -> ComponentStatus:
        if self.service.custody.draining:
            return ComponentStatus(False, "draining: the gateway is stopping")
        return ComponentStatus(True, f"{self.service.custody.live_count} runs under way")


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
        )
        _check(rooms, settings)
        rooms = rooms_of(rooms, settings)
        skills = SkillLibrary.load(skill_roots(settings, shipped=HOME / "skills", cwd=Path.cwd(), home=Path.home()))
        for diagnostic in skills.diagnostics:
            log.warning("%s", diagnostic)
        vectors, embedder = vectors_of(settings, store), embedder_of(settings)
        memory = MemoryStore(vectors, embedder, time.time)
        stack.push_async_callback(memory.close)
        client = SafeClient(settings.fetch_allow_hosts)
        stack.push_async_callback(client.aclose)
        library = library_of(settings, store, vectors, embedder, client)
        builtins = builtin_tools(settings, memory, library)
        stack.push_async_callback(builtins.aclose)
        registry = ToolRegistry()
        jobs = IngestJobs(JobStore(statements_of(store), time.time), library, settings.readable_roots)
        stack.push_async_callback(jobs.aclose)
        ephemeral = ephemeral_of(settings)
        stack.push_async_callback(ephemeral.aclose)
        builder = builder_of(settings, store, library, jobs, ephemeral)
        registry.register(*builtins.tools, *builder_tools(builder))
        hub = _hub(settings, registry) if foreign != "ignored" else None
        if hub is not None:
            stack.push_async_callback(hub.aclose)
        models = await _models(settings)
        if models.client is not None:
            stack.push_async_callback(models.client.aclose)
        metrics, languages = Metrics(), LanguageDetector()
        keys = KeyStore(statements_of(store), time.time)
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
            observers=(metrics.observe, *_traces(settings, stack)),
            purse=KeyPurse(keys),
        )
        service = _service(engine, rooms)
        tasks = TaskService(tasks_of(store), service, room=settings.task_room, clock=time.time)
        stack.push_async_callback(tasks.aclose)
        conversations = conversations_of(settings, builder, service, models)
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
            Gatekeeper(keys, demanded=demands_key(settings)),
            IdempotencyStore(statements_of(store)),
            jobs,
            conversations,
        )
        if hub is not None:
            _mount(hub, foreign)
        async with _carried_on(gateway, recover=recover):
            yield gateway


@asynccontextmanager
async def _carried_on(gateway: Stepgate, *, recover: bool) -> AsyncIterator[None]:
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
    try:
        yield
    finally:
        left = await custody.begin_drain(gateway.settings.drain_seconds)
        if left:
            log.warning("%d %s left for the next start", left, "run is" if left == 1 else "runs are")
        watch.cancel()
        await asyncio.wait([watch])


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


def _hub(settings: Settings, registry: ToolRegistry) -> "McpHub | None":
    """The client side of MCP, where servers are configured."""
    servers, problems = read_servers(settings.mcp_servers_path)
    for problem in problems:
        log.warning("%s", problem)
    if not servers:
        return None
    from mcp_tools.hub import McpHub  # noqa: PLC0415 - the SDK is a third of the start-up, and most have no servers

    return McpHub(servers, registry, settings.data_dir / "mcp")


def _mount(hub: "McpHub", foreign: Foreign) -> None:
    """Connect to the servers, or only mount what they last offered."""
    if foreign == "started":
        hub.start()
        return
    for server in hub.servers.values():
        if server.status != "disabled":
            server.recall()


def _driver(settings: Settings) -> Callable[[Run], Awaitable[None]]:
    """Who walks runs through their stages. `ConfigError` where LangGraph is asked for and not installed."""
    return langgraph_driver() if settings.workflow == "langgraph" else drive


def _service(engine: Engine, rooms: Rooms) -> AgentService[Run]:
    worker = worker_name()
    settings = engine.settings

    def admit_here(request: AgentRequest, room: Room) -> None:
        admit(request, room, engine.registry)

    limits = ServiceLimits(settings.max_concurrent_runs, settings.max_queued_runs, settings.lease_seconds)
    executor = RunExecutor(engine, worker, _driver(settings))
    return AgentService(engine.journal, executor, rooms, admit_here, worker=worker, limits=limits)


async def _models(settings: Settings) -> ModelTiers:
    """The lean client for an endpoint by URL, LiteLLM's SDK for a provider by name, nothing in rules mode."""
    if not settings.llm_configured:
        return ModelTiers()
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    adapter: ModelClient
    fast = settings.model_fast
    if settings.llm_base_url is not None:
        endpoint = HttpModelClient(settings.llm_base_url, key, transport=production_transport())
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
    )


async def _first_model(endpoint: HttpModelClient) -> str:
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
