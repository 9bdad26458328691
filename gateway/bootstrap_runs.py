"""The runs' part of the composition root: the engine, the service that runs it, and what starts runs through it."""

import logging
from functools import partial

from agent.core.errors import ConfigError
from agent.core.models import AgentRequest, Room
from agent.core.own_ids import OwnIds
from agent.execution.executor import RunExecutor
from agent.execution.graph import build_langgraph_driver
from agent.execution.stages.guard import validate_request
from agent.execution.subagent_runner import SubAgentRunner
from agent.execution.workflow import drive
from agent.llm.tiers import ModelTiers
from agent.policy.redaction.requests import redact_request
from agent.run_context.engine import Engine, Observer
from agent.run_context.ground_sources import GroundSources
from agent.run_context.run import Run
from agent.run_context.token_estimates import estimate_first_call_tokens
from agent.runs.conversation_tree import ConversationTree
from agent.runs.rooms import Rooms
from agent.runs.run_intake import RunIntake
from agent.runs.run_worker import RunWorker, ServiceLimits
from agent.runs.service import Admission, AgentService
from agent.storage.prompt_log import PromptLog
from agent.text.language import LanguageDetector
from gateway.access.unshared_sources import UnsharedSources
from gateway.bootstrap_access import Access
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_dispatch import Dispatch
from gateway.feature_host import FeatureHost
from gateway.model_probe.idle_prober import IdleProber
from gateway.observe.logs import log_run
from gateway.observe.run_observers import observe_awaited_ends, observe_slots, observe_use_of_model
from gateway.observe.traces import RunTraces, build_tracer_provider


def build_engine(
    context: BuildContext,
    host: FeatureHost,
    models: ModelTiers,
    access: Access,
    prober: IdleProber,
) -> Engine:
    """Builds the engine that all runs of this process share. Raises `ConfigError`."""
    settings, tools, webhooks = context.settings, host.tools, host.webhooks
    prompts = PromptLog(context.statements, settings.keep_prompts, context.store.clock)
    return Engine(
        settings,
        context.store.journal,
        context.store.conversations,
        models,
        tools.registry,
        host.rooms.skills,
        host.memory.store,
        LanguageDetector(),
        settings.list_secrets(),
        subagents=SubAgentRunner(host.subagents),
        observers=(
            context.metrics.observe_event,
            observe_slots(access.run_concurrency),
            observe_use_of_model(prober),
            *_build_trace_observers(context),
        ),
        end_observers=(
            log_run,
            access.usage.record_end,
            *((observe_awaited_ends(webhooks),) if webhooks is not None else ()),
        ),
        quota_reservations=access.quotas,
        prompts=prompts if settings.keep_prompts else None,
        extensions=context.extensions,
        ground=GroundSources(tools.builtins.walk_files, tools.list_instructions, context.extensions.collections),
    )


def build_agent_service(
    context: BuildContext, engine: Engine, rooms: Rooms, access: Access, dispatch: Dispatch
) -> AgentService[Run]:
    """The service that accepts runs and executes this process's share. Raises `ConfigError` if LangGraph is set
    but not installed.
    """
    settings = context.settings

    async def check_quota(key: str, request: AgentRequest, room: Room) -> None:
        if engine.models.is_configured:
            tokens = estimate_first_call_tokens(request, room, settings.llm_max_tokens)
            await access.quotas.check_token_rate(key, tokens)

    admission = Admission(
        partial(
            validate_request,
            registry=engine.registry,
            skills=engine.skills,
            settings=settings,
            sees_pictures=engine.models.sees_pictures,
        ),
        redact_request=partial(redact_request, values=engine.secrets),
        check_quota=check_quota,
        list_unshared=UnsharedSources(context.keys, settings).list_for,
        list_approval_exempt=engine.registry.list_approval_exempt,
        run_concurrency=access.run_concurrency,
    )
    driver = build_langgraph_driver() if settings.workflow == "langgraph" else drive
    executor = RunExecutor(engine, context.worker, driver)
    limits = ServiceLimits(settings.max_concurrent_runs, settings.max_queued_runs, settings.lease_seconds)
    make_worker = dispatch.make_worker or RunWorker[Run]
    worker = make_worker(engine.journal, executor, worker=context.worker, limits=limits)
    if dispatch.register_worker is not None:
        dispatch.register_worker(worker)
    return AgentService(
        engine.journal,
        worker,
        executor,
        rooms,
        admission,
        audit=context.audit,
        progress=engine.progress,
        client_requests=engine.client_requests,
    )


log = logging.getLogger(__name__)
OWN_IDS_KEY = "own_ids.key"
"""File in the data folder: the key by which this gateway recognises the ids that it has made."""


def build_intake(context: BuildContext, service: AgentService[Run]) -> RunIntake:
    """The way from requests to runs, before features add their kinds of requests."""
    own_ids = OwnIds(context.settings.data_dir / OWN_IDS_KEY)
    return RunIntake(service, own_ids, ConversationTree(context.statements, context.store.clock))


def _build_trace_observers(context: BuildContext) -> tuple[Observer, ...]:
    """The observer that exports OpenTelemetry spans, if an endpoint is set. Without the extra a warning says what to
    install: many machines set the variable for all of their programs.
    """
    endpoint = context.settings.otel_endpoint
    if endpoint is None:
        return ()
    try:
        provider = build_tracer_provider(endpoint)
    except ConfigError as error:
        log.warning("no traces are exported: %s", error.message)
        return ()
    context.stack.callback(provider.shutdown)
    return (RunTraces(provider.get_tracer("stepgate"), content=context.settings.otel_content).observe_event,)
