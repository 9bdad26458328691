"""The composition root's part for the pipeline builder: its state, its tools, its conversations."""

import time
from typing import TYPE_CHECKING

from agent.builder.builder import PipelineBuilder
from agent.builder.conversations import BuilderConversations, Terms
from agent.builder.messages import MessageLog
from agent.builder.sources import SourceStore
from agent.builder.store import BuilderStore
from agent.core.audit import AuditLog
from agent.core.config import Settings
from agent.core.ephemeral import Ephemeral, LocalEphemeral
from agent.core.llm.tiers import ModelTiers
from agent.core.rooms import Rooms
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.knowledge.collection_store import CollectionStore
from agent.knowledge.job_runner import IngestJobs
from agent.knowledge.library import Library
from agent.subagents.sources import by_words
from agent.subagents.spawn import spawn_tools
from agent.tools import Tool
from gateway.stores import statements_of
from mcp_tools.builtin.pipelines import pipeline_tools
from mcp_tools.builtin.pipelines_by_rule import SuggestPipelineTool

if TYPE_CHECKING:
    from agent.core.journal_postgres import PostgresStore
    from agent.core.journal_sqlite import SqliteStore

ROOM = "pipelines"
"""The room that answers the messages of conversations."""


def ephemeral_of(settings: Settings) -> Ephemeral:
    """Where messages are kept for a while: in Redis, where one is set, else in this process."""
    if settings.redis_url is None:
        return LocalEphemeral()
    from agent.core.ephemeral_redis import RedisEphemeral  # noqa: PLC0415 - 0.1 s of start-up that most need not pay

    return RedisEphemeral(settings.redis_url.get_secret_value(), settings.redis_prefix)


def builder_of(
    settings: Settings,
    store: "SqliteStore | PostgresStore",
    library: Library,
    jobs: IngestJobs,
    ephemeral: Ephemeral,
    audit: AuditLog,
) -> PipelineBuilder:
    """The builder, in the store."""
    statements = statements_of(store)
    return PipelineBuilder(
        BuilderStore(statements, time.time),
        SourceStore(statements, settings.readable_roots, time.time, audit),
        MessageLog(ephemeral, settings.conversation_message_seconds),
        library,
        CollectionStore(statements, time.time),
        jobs,
        by_words(settings.readable_roots),
        time.time,
        audit,
    )


def builder_tools(builder: PipelineBuilder) -> list[Tool]:
    """The tools of conversations, and those that start sub-agents: what these find is kept in the conversation."""
    return [*pipeline_tools(builder), SuggestPipelineTool(builder), *spawn_tools(keeper=builder.keeper)]


def conversations_of(
    settings: Settings,
    builder: PipelineBuilder,
    service: AgentService[Run],
    models: ModelTiers,
    *,
    follows: bool,
) -> BuilderConversations:
    """The conversations, as the operator wants them. `follows` as in `BuilderConversations`."""
    terms = Terms(
        room=ROOM,
        requires_model=settings.conversations_require_llm,
        messages_per_minute=settings.conversation_messages_per_minute,
        archive_days=settings.conversation_archive_days,
    )
    has_model = models.configured and settings.executor_mode != "rules"
    return BuilderConversations(builder, service, terms, has_model=has_model, clock=time.time, follows=follows)


def rooms_of(rooms: Rooms, settings: Settings) -> Rooms:
    """The rooms; where conversations may go without a model, rules take over in every room."""
    if settings.conversations_require_llm:
        return rooms
    return Rooms([room.model_copy(update={"requires_model": False}) for room in rooms], rooms.default)
