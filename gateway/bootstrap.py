"""The composition root: the only module that chooses adapters from settings and connects them."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent.core.entry_points import InstalledExtension
from agent.core.models import AgentRequest, Room
from agent.core.settings import Settings
from agent.dispatch.port import RUN_JOB
from agent.execution.executor import RunExecutor
from agent.execution.graph import build_langgraph_driver
from agent.execution.stages.guard import validate_request
from agent.execution.workflow import drive
from agent.ingest.collections import Library
from agent.ingest.corpus_index import CorpusIndexer
from agent.ingest.job_runner import IngestJobs
from agent.ingest.jobs import JobStore
from agent.llm.embedder import Embedder
from agent.llm.tiers import ModelTiers
from agent.memory.store import MemoryStore
from agent.net import SafeClient
from agent.owners import OwnerDeletion
from agent.pipeline_builder.conversations import BuilderConversations
from agent.policy.redaction.requests import redact_request
from agent.rooms import Rooms
from agent.run_context.extensions import merge_extensions
from agent.run_context.ground import GroundSources
from agent.run_context.run import Engine, Observer, Run
from agent.run_context.token_estimates import estimate_first_call_tokens
from agent.runs.client_conversations import ClientConversations
from agent.runs.queue_run_worker import QueueRunWorker
from agent.runs.recipe_maker import RecipeMaker
from agent.runs.retention import RunRetention
from agent.runs.run_intake import RunIntake
from agent.runs.run_worker import ServiceLimits, worker_name
from agent.runs.service import AgentService
from agent.runs.sessions import SessionStore
from agent.runs.tasks import TaskService
from agent.runs.usage_recorder import UsageRecorder
from agent.skills import SkillLibrary
from agent.storage.api_keys import KeyStore
from agent.storage.audit import AuditLog, StoredAuditLog
from agent.storage.journal import Journal
from agent.storage.key_budgets import KeyBudgets
from agent.storage.usage import UsageLedger
from agent.studio.generated_tools.service import GeneratedTools
from agent.studio.room_checks import check_rooms_at_start
from agent.studio.room_editor import RoomEditor
from agent.text.language import LanguageDetector
from agent.tools import ToolRegistry
from gateway.auth.authentication import CACHE_SECONDS, Authenticator, is_key_required
from gateway.auth.external_tokens import build_token_verifier
from gateway.bootstrap_database import Storage, build_statements, open_store
from gateway.bootstrap_dispatch import Dispatch, build_dispatch
from gateway.bootstrap_extensions import InstalledExtensions
from gateway.bootstrap_models import build_models
from gateway.bootstrap_pipeline_builder import (
    build_conversations,
    build_pipeline_builder,
    build_pipeline_tools,
    build_ttl_store,
)
from gateway.bootstrap_recipes import add_recipes
from gateway.bootstrap_rooms import list_required_rooms, load_rooms_and_skills
from gateway.bootstrap_schedules import Schedules, build_schedules, build_webhooks
from gateway.bootstrap_stores import (
    build_connectors,
    build_corpus_indexer,
    build_embedder,
    build_library,
    build_rate_limiter,
    build_subagent_runner,
    build_task_store,
    build_vector_index,
)
from gateway.bootstrap_studio import Studio, add_room_editor, add_studio
from gateway.bootstrap_tools import add_generated_tools
from gateway.foreign_servers import ForeignServers, build_foreign_servers
from gateway.idempotency.store import IdempotencyStore
from gateway.limits.quota_reservations import KeyQuotas
from gateway.limits.rate_limiter import RateLimiter
from gateway.limits.run_concurrency import MeteredRunConcurrency
from gateway.observe.access_log import log_run
from gateway.observe.metrics import Metrics
from gateway.observe.traces import RunTraces, build_tracer_provider
from gateway.packaged_files import PACKAGE_ROOT as PACKAGE_ROOT  # noqa: PLC0414 - re-exported for callers that build a part of the gateway
from mcp_tools.builtin import BUILTIN_EXTENSIONS, builtin_tools
from mcp_tools.builtin.schedules import make_schedule_tools

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpServer

log = logging.getLogger(__name__)

McpServersMode = Literal["started", "remembered", "ignored"]
"""How foreign MCP servers are treated: `started` connects to them, `remembered` takes their tools from the last lists,
`ignored` leaves them out."""


@dataclass(frozen=True, slots=True)
class Stepgate:
    """The assembled gateway."""

    settings: Settings
    service: AgentService[Run]
    intake: RunIntake
    rooms: Rooms
    skills: SkillLibrary
    registry: ToolRegistry
    journal: Journal
    models: ModelTiers
    foreign: ForeignServers | None
    """Foreign MCP servers; None if they are left out."""
    memory: MemoryStore
    library: Library
    corpus: CorpusIndexer
    tasks: TaskService
    metrics: Metrics
    keys: KeyStore
    authenticator: Authenticator
    idempotency: IdempotencyStore
    jobs: IngestJobs
    conversations: BuilderConversations
    audit: StoredAuditLog
    sessions: SessionStore
    client_conversations: ClientConversations
    owners: OwnerDeletion
    embedder: Embedder | None
    """The configured embedder; None if texts are found by their words only."""
    extensions: tuple[InstalledExtension, ...]
    """Tools, gates, connectors and parsers of installed packages, those that were skipped included."""
    room_editor: RoomEditor
    quotas: KeyQuotas
    generated_tools: GeneratedTools
    studio: Studio
    recipes: RecipeMaker
    usage: UsageLedger
    dispatch: Dispatch
    """How work reaches processes."""
    schedules: Schedules
    retention: RunRetention

    @property
    def servers(self) -> Mapping[str, "McpServer"]:
        """Foreign MCP servers by name, as they are configured now."""
        return self.foreign.servers if self.foreign is not None else {}


@asynccontextmanager
async def build_gateway(
    settings: Settings,
    *,
    recover: bool = True,
    foreign: McpServersMode = "started",
    storage: "Storage | None" = None,
    skip_broken_rooms: bool = False,
) -> AsyncIterator[Stepgate]:
    """Builds the gateway and shuts it down on exit. With `recover` it also resumes abandoned runs, now and while it
    lives. `storage` replaces the store of the settings; it is closed on exit too. With `skip_broken_rooms` a room file
    that cannot be read does not stop the start: the editor names it.

    Raises `ConfigError`, `StoreNewerError` and `StoreError`, each with a one-line message.
    """
    async with AsyncExitStack() as stack:
        store = storage if storage is not None else await open_store(settings)
        stack.push_async_callback(store.close)
        installed = InstalledExtensions.with_parsers()
        extensions = installed.add_gates(merge_extensions(BUILTIN_EXTENSIONS))
        room_store, rooms, skills = load_rooms_and_skills(settings, stack, skip_broken=skip_broken_rooms)
        vectors, embedder = build_vector_index(settings, store), build_embedder(settings)
        audit = StoredAuditLog(build_statements(store), time.time)
        memory = MemoryStore(vectors, embedder, time.time, audit)
        stack.push_async_callback(memory.close)
        client = SafeClient(settings.fetch_allow_hosts)
        stack.push_async_callback(client.aclose)
        connectors = installed.add_connectors(build_connectors(settings, client), client)
        library = build_library(settings, store, vectors, embedder, client, audit, connectors)
        builtins = builtin_tools(settings, memory, library)
        stack.push_async_callback(builtins.aclose)
        registry = ToolRegistry()
        jobs = IngestJobs(JobStore(build_statements(store), time.time), library, settings.readable_roots)
        stack.push_async_callback(jobs.aclose)
        stack.push_async_callback((ephemeral := build_ttl_store(settings)).aclose)
        builder = build_pipeline_builder(settings, store, library, jobs, ephemeral, audit)
        registry.register(
            *builtins.tools,
            *build_pipeline_tools(builder),
            *make_schedule_tools(lambda: gateway.schedules.service),
        )
        installed.add_tools(registry)
        servers = (
            _build_servers(settings, registry, store, audit, rooms, client, stack) if foreign != "ignored" else None
        )
        models = await _open_models(settings, stack)
        metrics, worker, languages = Metrics(), worker_name(), LanguageDetector()
        dispatch = await build_dispatch(settings, store, rooms, skills, metrics, audit, worker, stack, recover=recover)
        keys = KeyStore(build_statements(store), time.time, audit)
        room_editor = add_room_editor(
            settings,
            rooms,
            registry,
            skills,
            extensions,
            keys,
            audit,
            servers,
            room_store,
            required=list_required_rooms(settings),
        )
        generated = await add_generated_tools(
            settings, build_statements(store), registry, rooms, builtins.roots, client, audit, keys, stack
        )
        studio = add_studio(
            settings, room_editor, registry, skills, library, keys, build_statements(store), audit, servers
        )
        recipes = add_recipes(build_statements(store), registry, skills, lambda: service)
        # Without foreign servers the names of their tools are unknown.
        check_rooms_at_start(() if foreign == "ignored" or skip_broken_rooms else rooms, room_editor.live.registries)
        rate_limiter = _open_rate_limiter(settings, stack)
        run_concurrency = MeteredRunConcurrency(rate_limiter)
        quotas = KeyQuotas(keys, KeyBudgets(keys, build_statements(store), time.time), rate_limiter=rate_limiter)
        usage = await stack.enter_async_context(_record_usage(store, recover=recover))
        webhooks, authenticator = (
            build_webhooks(settings, build_statements(store), client, lambda: service),
            _build_authenticator(settings, keys, quotas, rate_limiter),
        )
        engine = Engine(
            settings,
            store.journal,
            store.conversations,
            models,
            registry,
            skills,
            memory,
            languages,
            subagents=build_subagent_runner(settings, library, client, languages, builder.find_source, connectors),
            observers=(
                metrics.observe_event,
                log_run,
                run_concurrency.observe_event,
                usage.observe_event,
                webhooks.observe_event,
                *_build_trace_observers(settings, stack),
            ),
            quota_reservations=quotas,
            extensions=extensions,
            recipes=recipes.store,
            ground=GroundSources(builtins.walk_files, library.list_collections, lambda: _list_instructions(servers)),
        )
        service = _build_agent_service(engine, rooms, audit, quotas, run_concurrency, worker, dispatch)
        tasks = _open_tasks(settings, store, service, stack)
        conversations = build_conversations(settings, builder, service, models, follows=recover)
        stack.push_async_callback(conversations.aclose)
        intake = RunIntake(service, tasks, conversations, webhooks)
        gateway = Stepgate(
            settings,
            service,
            intake,
            rooms,
            skills,
            registry,
            store.journal,
            models,
            servers,
            memory,
            library,
            build_corpus_indexer(settings, store, vectors, embedder),
            tasks,
            metrics,
            keys,
            authenticator,
            IdempotencyStore(build_statements(store)),
            jobs,
            conversations,
            audit,
            SessionStore(build_statements(store)),
            ClientConversations(build_statements(store), time.time),
            OwnerDeletion(
                build_statements(store), service, library, memory, builder.messages, audit, CACHE_SECONDS, room_editor
            ),
            embedder,
            installed.list_all(),
            room_editor,
            quotas,
            generated,
            studio,
            recipes,
            usage.ledger,
            dispatch,
            build_schedules(
                settings,
                build_statements(store),
                service,
                tasks,
                intake,
                webhooks,
                keys,
                authenticator,
                metrics.count_ticks,
            ),
            RunRetention(
                build_statements(store),
                usage.ledger,
                audit,
                settings.keep_days,
                worker_name(),
                count_pruned=metrics.count_pruned_runs,
            ),
        )
        if servers is not None:
            await (servers.start() if foreign == "started" else servers.restore_cached_tools())
        # At the end no tick begins a run any more, then runs are drained, then the webhooks of their ends are sent.
        async with (
            gateway.schedules.send_webhooks(active=recover),
            _run_background_work(gateway, run_concurrency, recover=recover),
            gateway.schedules.start_ticks(active=recover),
        ):
            yield gateway


def _open_rate_limiter(settings: Settings, stack: AsyncExitStack) -> RateLimiter:
    """Returns the rate limiter, which `stack` closes."""
    rate_limiter = build_rate_limiter(settings)
    stack.push_async_callback(rate_limiter.aclose)
    return rate_limiter


def _open_tasks(settings: Settings, store: "Storage", service: AgentService[Run], stack: AsyncExitStack) -> TaskService:
    """Returns the tasks, which `stack` closes."""
    tasks = TaskService(build_task_store(store), service, room=settings.task_room, clock=time.time)
    stack.push_async_callback(tasks.aclose)
    return tasks


async def _open_models(settings: Settings, stack: AsyncExitStack) -> ModelTiers:
    """Returns the configured models, which `stack` closes."""
    models = await build_models(settings)
    if models.client is not None:
        stack.push_async_callback(models.client.aclose)
    return models


@asynccontextmanager
async def _record_usage(store: "Storage", *, recover: bool) -> AsyncIterator[UsageRecorder]:
    """Records the usage of ended runs while entered."""
    recorder = UsageRecorder(UsageLedger(build_statements(store), time.time))
    async with recorder.run(catches_up=recover):
        yield recorder


@asynccontextmanager
async def _run_background_work(
    gateway: Stepgate, run_concurrency: MeteredRunConcurrency, *, recover: bool
) -> AsyncIterator[None]:
    """Resumes what earlier processes left, maintains leases meanwhile, and drains the runs at the end."""
    worker = gateway.service.worker
    await gateway.room_editor.live.start()
    if recover:
        if gateway.settings.takes_ingestion:
            gateway.jobs.start()
        resumed = await worker.recover_runs()
        await gateway.tasks.resume_watching()
        await gateway.conversations.resume()
        if resumed:
            log.info("resumed %d unfinished %s", resumed, "run" if resumed == 1 else "runs")
        await gateway.dispatch.dispatcher.start()
    leases = asyncio.create_task(worker.maintain_leases(recover=recover), name="leases of runs")
    rooms = asyncio.create_task(gateway.room_editor.live.watch(), name="changes of rooms")
    tools = asyncio.create_task(gateway.generated_tools.watch(), name="changes of generated tools")
    old_runs = asyncio.create_task(_forget_old_runs(gateway, recover=recover), name="retention")
    slots = asyncio.create_task(run_concurrency.renew_slots(worker.list_billed_runs), name="slots of parallel runs")
    try:
        yield
    finally:
        drained = worker.begin_drain(gateway.settings.drain_seconds)
        await gateway.dispatch.dispatcher.drain(gateway.settings.drain_seconds)
        left = await drained
        if left:
            log.warning("%d unfinished %s left for the next start", left, "run" if left == 1 else "runs")
        background = (leases, slots, rooms, tools, old_runs)
        for task in background:
            task.cancel()
        await asyncio.wait(background)


async def _forget_old_runs(gateway: Stepgate, *, recover: bool) -> None:
    """Deletes what is older than `AGENT_KEEP_DAYS`, unless this process runs only one command."""
    if recover:
        await gateway.retention.run()


def _build_authenticator(
    settings: Settings, keys: KeyStore, quotas: KeyQuotas, rate_limiter: RateLimiter
) -> Authenticator:
    return Authenticator(
        keys,
        requires_key=is_key_required(settings),
        max_streams=settings.max_open_streams,
        token_verifier=build_token_verifier(settings),
        token_rates=quotas.token_rates,
        rate_limiter=rate_limiter,
    )


def _build_trace_observers(settings: Settings, stack: AsyncExitStack) -> tuple[Observer, ...]:
    """Returns the observer that exports OpenTelemetry spans, if an endpoint is set. Raises `ConfigError` without the
    extra.
    """
    if settings.otel_endpoint is None:
        return ()
    made = build_tracer_provider(settings.otel_endpoint)
    stack.callback(made.shutdown)
    return (RunTraces(made.get_tracer("stepgate"), content=settings.otel_content).observe_event,)


def _build_servers(
    settings: Settings,
    registry: ToolRegistry,
    store: "Storage",
    audit: AuditLog,
    rooms: Rooms,
    client: SafeClient,
    stack: AsyncExitStack,
) -> ForeignServers:
    """Returns the foreign MCP servers, which `stack` closes."""
    servers = build_foreign_servers(settings, registry, build_statements(store), audit, rooms, client)
    stack.push_async_callback(servers.aclose)
    return servers


def _list_instructions(foreign: ForeignServers | None) -> Mapping[str, str]:
    """Returns what the foreign servers say about their use, by name."""
    return {name: server.instructions for name, server in foreign.servers.items()} if foreign is not None else {}


def _choose_workflow_driver(settings: Settings) -> Callable[[Run], Awaitable[None]]:
    """Returns the function that drives a run through its stages. Raises `ConfigError` if LangGraph is set but not
    installed.
    """
    return build_langgraph_driver() if settings.workflow == "langgraph" else drive


def _build_agent_service(
    engine: Engine,
    rooms: Rooms,
    audit: AuditLog,
    quotas: KeyQuotas,
    run_concurrency: MeteredRunConcurrency,
    worker: str,
    dispatch: Dispatch,
) -> AgentService[Run]:
    settings = engine.settings

    secrets = settings.list_secrets()

    def validate(request: AgentRequest, room: Room) -> None:
        validate_request(request, room, engine.registry, engine.skills, settings)

    def remove_secrets(request: AgentRequest) -> AgentRequest:
        return redact_request(request, secrets)

    async def check_quota(key: str, request: AgentRequest, room: Room) -> None:
        if engine.models.is_configured:
            await quotas.check_token_rate(key, estimate_first_call_tokens(request, room, settings.llm_max_tokens))

    service = AgentService(
        engine.journal,
        RunExecutor(engine, worker, _choose_workflow_driver(settings)),
        rooms,
        validate,
        worker=worker,
        limits=ServiceLimits(settings.max_concurrent_runs, settings.max_queued_runs, settings.lease_seconds),
        audit=audit,
        redact_request=remove_secrets,
        check_quota=check_quota,
        run_concurrency=run_concurrency,
        progress=engine.progress,
        client_requests=engine.client_requests,
        queue=dispatch.queue,
    )
    if isinstance(service.worker, QueueRunWorker):
        dispatch.dispatcher.register(RUN_JOB, service.worker.execute_job)
    return service
