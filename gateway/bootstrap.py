"""The composition root: builds every part of the gateway from the settings and connects them.

`build_gateway` is the list of steps; each is a function of a `bootstrap_*` module. They choose the implementations of
the kernel; each feature chooses its own.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from agent.core.cancellation import cancel_and_wait
from agent.core.entry_points import InstalledExtension
from agent.core.settings import Settings
from agent.execution.first_decision import build_first_decision
from agent.execution.plan_sources import order_sources
from agent.llm.embedder import Embedder
from agent.llm.tiers import ModelTiers
from agent.run_context.engine import Engine
from agent.run_context.extensions import merge_extensions
from agent.run_context.memory import MemoryStore
from agent.run_context.run import Run
from agent.runs.client_conversations import ClientConversations
from agent.runs.conversation_list import ConversationList
from agent.runs.retention import RunRetention
from agent.runs.rooms import Rooms
from agent.runs.run_intake import RunIntake
from agent.runs.run_search import RunSearch
from agent.runs.service import AgentService
from agent.runs.sessions import SessionStore
from agent.skills import SkillLibrary
from agent.storage.api_keys import KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.journal import Journal
from agent.storage.owners import OwnerDeletion
from agent.storage.prompt_log import PromptLog
from agent.storage.usage import UsageLedger
from agent.tools import ToolRegistry
from gateway.access.authentication import CACHE_SECONDS, Authenticator
from gateway.access.idempotency_store import IdempotencyStore
from gateway.access.quota_reservations import KeyQuotas
from gateway.access.run_concurrency import MeteredRunConcurrency
from gateway.bootstrap_access import build_access
from gateway.bootstrap_context import BuildContext, open_context
from gateway.bootstrap_database import Storage
from gateway.bootstrap_dispatch import Dispatch, build_dispatch
from gateway.bootstrap_memory import build_memory
from gateway.bootstrap_rooms import load_rooms_and_skills
from gateway.bootstrap_runs import build_agent_service, build_engine, build_intake
from gateway.bootstrap_tools import build_tools
from gateway.configured_features import collect_tables, list_retentions
from gateway.feature_host import FeatureHost, RunServices
from gateway.foreign_servers import ForeignServers
from gateway.live_models import LiveModels, open_models
from gateway.model_probe.idle_prober import IdleProber, build_prober
from gateway.observe.metrics import Metrics

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
    engine: Engine
    """What all runs of this process share."""
    service: AgentService[Run]
    intake: RunIntake
    rooms: Rooms
    skills: SkillLibrary
    registry: ToolRegistry
    journal: Journal
    models: ModelTiers
    live_models: LiveModels
    prober: IdleProber
    """Measures the model while the gateway is idle."""
    foreign: ForeignServers | None
    """Foreign MCP servers; None if they are left out."""
    memory: MemoryStore
    metrics: Metrics
    keys: KeyStore
    authenticator: Authenticator
    idempotency: IdempotencyStore
    audit: StoredAuditLog
    sessions: SessionStore
    client_conversations: ClientConversations
    conversation_list: ConversationList
    run_search: RunSearch
    prompts: PromptLog
    owners: OwnerDeletion
    embedder: Embedder | None
    """The configured embedder; None if texts are found by their words only."""
    extensions: tuple[InstalledExtension, ...]
    """Tools, gates, connectors and parsers of installed packages, those that were skipped included."""
    quotas: KeyQuotas
    host: FeatureHost
    """The features in use, with what they have built."""
    usage: UsageLedger
    dispatch: Dispatch
    """How work reaches processes."""
    retention: RunRetention

    def get_part(self, feature: str) -> Any:
        """The part that a feature has built. Raises `ConfigError` if it is off."""
        return self.host.get_part(feature)

    def get_services(self, feature: str) -> Any:
        """Gets what a feature starts runs with. Raises `ConfigError` if it is off."""
        return self.host.get_services(feature)

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
        context = await open_context(settings, stack, storage, recover=recover)
        gateway, run_concurrency = await _assemble(
            context, with_foreign=foreign != "ignored", skip_broken_rooms=skip_broken_rooms
        )
        if gateway.foreign is not None:
            await (gateway.foreign.start() if foreign == "started" else gateway.foreign.restore_cached_tools())
        # At the end features stop starting runs, then runs are drained, then features send what their ends caused.
        async with (
            gateway.host.run_around(),
            _run_background_work(gateway, run_concurrency, recover=recover),
            gateway.host.run_background(),
        ):
            yield gateway


async def _assemble(
    context: BuildContext, *, with_foreign: bool, skip_broken_rooms: bool
) -> tuple[Stepgate, MeteredRunConcurrency]:
    """The gateway, in which nothing runs yet, and its counter of parallel runs."""
    loaded = load_rooms_and_skills(context, skip_broken=skip_broken_rooms)
    clock, memory = context.store.clock, build_memory(context)
    tools = build_tools(context, loaded.rooms, memory.store, with_foreign=with_foreign)
    # Tools may start runs and runs call tools: hooks ask for the gateway when they are called. Without foreign servers
    # the names of their tools are unknown.
    host = FeatureHost(
        context, loaded, memory, tools, lambda: gateway, checks_rooms=with_foreign and not skip_broken_rooms
    )
    await host.build_parts()
    host.register_tools()
    extensions = context.installed.add_gates(merge_extensions(host.list_extensions()))
    order_sources(extensions.plan_sources)  # a feature's source with a wrong place stops the start, not the runs
    host.context = context = replace(context, extensions=extensions)
    live_models = await open_models(context)
    models = live_models.tiers
    loaded.rooms.list_models = models.list_upstream_names
    dispatch = build_dispatch(context, host)
    await host.prepare()
    access = await build_access(context)
    prober = build_prober(context, live_models)
    engine = build_engine(context, host, models, access, prober)
    service = build_agent_service(context, engine, loaded.rooms, access, dispatch)
    intake = build_intake(context, service)
    await host.build_services(RunServices(service, intake, models, access.authenticator))
    statements, ledger = context.statements, access.usage.ledger
    gateway = Stepgate(
        settings=context.settings,
        engine=engine,
        service=service,
        intake=intake,
        rooms=loaded.rooms,
        skills=loaded.skills,
        registry=tools.registry,
        journal=context.store.journal,
        models=models,
        live_models=live_models,
        prober=prober,
        foreign=tools.foreign,
        memory=memory.store,
        metrics=context.metrics,
        keys=context.keys,
        authenticator=access.authenticator,
        idempotency=IdempotencyStore(statements, clock),
        audit=context.audit,
        sessions=SessionStore(statements),
        client_conversations=ClientConversations(statements, clock, intake.own_ids, context.store.conversations),
        conversation_list=ConversationList(statements),
        run_search=RunSearch(statements),
        prompts=PromptLog(statements, context.settings.keep_prompts, clock),
        owners=_build_owner_deletion(context, host, service, ledger),
        embedder=memory.embedder,
        extensions=context.installed.list_all(),
        quotas=access.quotas,
        host=host,
        usage=ledger,
        dispatch=dispatch,
        retention=_build_retention(context, ledger),
    )
    return gateway, access.run_concurrency


def _build_owner_deletion(
    context: BuildContext, host: FeatureHost, service: AgentService[Run], ledger: UsageLedger
) -> OwnerDeletion:
    """What deletes everything of an owner, features' tables and stores included."""
    return OwnerDeletion(
        context.statements,
        service,
        host.memory.store,
        context.audit,
        ledger,
        key_cache_seconds=CACHE_SECONDS,
        stores=host.list_owned_stores(),
        features_off=context.features.list_unreachable_keepers(),
        tables=collect_tables(context.features),
        clock=context.store.clock,
    )


def _build_retention(context: BuildContext, ledger: UsageLedger) -> RunRetention:
    """What deletes runs because of their age, features' rows included."""
    return RunRetention(
        context.statements,
        ledger,
        context.audit,
        keep_days=context.settings.keep_days,
        holder=context.worker,
        run_tables=collect_tables(context.features).of_runs,
        list_features=lambda: list_retentions(context.features),
        clock=context.store.clock,
        count_pruned=context.metrics.count_pruned_runs,
    )


@asynccontextmanager
async def _run_background_work(
    gateway: Stepgate, run_concurrency: MeteredRunConcurrency, *, recover: bool
) -> AsyncIterator[None]:
    """Resumes what earlier processes left, maintains leases meanwhile, and drains the runs at the end."""
    worker = gateway.service.worker
    if recover:
        resumed = await worker.recover_runs()
        if resumed:
            log.info("resumed %d unfinished %s", resumed, "run" if resumed == 1 else "runs")
        await gateway.dispatch.dispatcher.start()
    leases = asyncio.create_task(worker.maintain_leases(recover=recover), name="leases of runs")
    models = asyncio.create_task(gateway.live_models.watch(), name="changes of models")
    probe = asyncio.create_task(_measure_model(gateway, recover=recover), name="measurement of the model")
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
        await cancel_and_wait(leases, slots, models, probe, old_runs)


async def _measure_model(gateway: Stepgate, *, recover: bool) -> None:
    """Measures the model while nothing runs, unless this process runs only one command."""
    if recover:
        gateway.live_models.start()
        await gateway.prober.watch(
            lambda: gateway.service.worker.live_count,
            lambda: build_first_decision(gateway.engine, gateway.rooms.get(None, None)),
        )


async def _forget_old_runs(gateway: Stepgate, *, recover: bool) -> None:
    """Deletes what is older than `AGENT_KEEP_DAYS`, unless this process runs only one command."""
    if recover:
        await gateway.retention.run()
