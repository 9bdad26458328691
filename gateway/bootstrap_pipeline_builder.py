"""The pipeline builder's part of the composition root: its state, its tools and its conversations."""

import time
from typing import TYPE_CHECKING

from agent.core.models import Room
from agent.core.settings import Settings
from agent.ingest.collection_store import CollectionStore
from agent.ingest.collections import Library
from agent.ingest.job_runner import IngestJobs
from agent.llm.tiers import ModelTiers
from agent.pipeline_builder.builder import PipelineBuilder
from agent.pipeline_builder.conversation_store import BuilderConversationStore
from agent.pipeline_builder.conversations import BuilderConversations, ConversationSettings
from agent.pipeline_builder.messages import MessageLog
from agent.pipeline_builder.source_store import SourceStore
from agent.run_context.run import Run
from agent.runs.service import AgentService
from agent.storage.audit import AuditLog
from agent.storage.ttl_store import LocalTtlStore, TtlStore
from agent.subagents.source_context import find_by_address
from agent.subagents.spawn import spawn_tools
from agent.tools import Tool
from gateway.bootstrap_database import build_statements
from mcp_tools.builtin.pipelines import pipeline_tools
from mcp_tools.builtin.pipelines_by_rule import SuggestPipelineTool

if TYPE_CHECKING:
    from agent.storage.journal_postgres import PostgresStore
    from agent.storage.journal_sqlite import SqliteStore

PIPELINES_ROOM = "pipelines"
"""The room of pipeline conversations."""


def build_ttl_store(settings: Settings) -> TtlStore:
    """Returns the store of short-lived messages: Redis if configured, else this process."""
    if settings.redis_url is None:
        return LocalTtlStore()
    from agent.storage.ttl_store_redis import RedisTtlStore  # noqa: PLC0415 - 0.1 s of start-up time, needed only with Redis

    return RedisTtlStore(settings.redis_url.get_secret_value(), settings.redis_prefix)


def build_pipeline_builder(
    settings: Settings,
    store: "SqliteStore | PostgresStore",
    library: Library,
    jobs: IngestJobs,
    ephemeral: TtlStore,
    audit: AuditLog,
) -> PipelineBuilder:
    """Returns the pipeline builder over the store."""
    statements = build_statements(store)
    return PipelineBuilder(
        BuilderConversationStore(statements, time.time),
        SourceStore(statements, settings.readable_roots, time.time, audit),
        MessageLog(ephemeral, settings.conversation_message_seconds),
        library,
        CollectionStore(statements, time.time),
        jobs,
        find_by_address(settings.readable_roots),
        time.time,
        audit,
    )


def build_pipeline_tools(builder: PipelineBuilder) -> list[Tool]:
    """Returns the tools of conversations and of sub-agents, whose findings are stored in the conversation."""
    return [*pipeline_tools(builder), SuggestPipelineTool(builder), *spawn_tools(keeper=builder.result_keeper)]


def build_conversations(
    settings: Settings,
    builder: PipelineBuilder,
    service: AgentService[Run],
    models: ModelTiers,
    *,
    follows: bool,
) -> BuilderConversations:
    """Returns the conversations with the operator's settings. `follows` as in `BuilderConversations`."""
    terms = ConversationSettings(
        room=PIPELINES_ROOM,
        requires_model=settings.conversations_require_llm,
        messages_per_minute=settings.conversation_messages_per_minute,
        archive_days=settings.conversation_archive_days,
    )
    has_model = models.is_configured and settings.executor_mode != "rules"
    return BuilderConversations(builder, service, terms, has_model=has_model, clock=time.time, follows=follows)


def allow_room_without_model(room: Room, settings: Settings) -> Room:
    """Returns the room; if conversations may run without a model, it requires none."""
    if settings.conversations_require_llm:
        return room
    return room.model_copy(update={"requires_model": False})
