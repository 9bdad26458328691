"""The pipeline builder's part of the composition root: its state, its tools and its conversations."""

from collections.abc import Mapping

from agent.core.settings import Settings
from agent.storage.ttl_store import LocalTtlStore, TtlStore
from agent.subagents import RegisteredSubAgent, register_subagents
from agent.text.language import LanguageDetector
from agent.tools import Tool
from gateway.feature_host import FeatureHost, RunServices
from gateway.features.documents.engine.ingest.collection_store import CollectionStore
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.models import SourceType
from gateway.features.documents.parts import get_documents
from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.conversations import BuilderConversations, ConversationSettings
from gateway.features.pipeline_builder.engine.messages import MessageLog
from gateway.features.pipeline_builder.engine.subagents import (
    FindSource,
    PipelineValidator,
    SourceAnalyzer,
    SourceResources,
    find_by_address,
)
from gateway.features.pipeline_builder.parts import get_builder
from gateway.features.pipeline_builder.tools import SuggestPipelineTool, make_pipeline_tools

PIPELINES_ROOM = "pipelines"
"""The room of pipeline conversations."""


def build_pipeline_builder(host: FeatureHost) -> PipelineBuilder:
    """The pipeline builder over the store."""
    context, documents = host.context, get_documents(host)
    settings, statements = context.settings, context.statements
    ephemeral = _build_ttl_store(settings)
    context.stack.push_async_callback(ephemeral.aclose)
    return PipelineBuilder(
        BuilderConversationStore(statements, context.store.clock),
        documents.sources,
        MessageLog(ephemeral, settings.conversation_message_seconds),
        documents.library,
        CollectionStore(statements, context.store.clock),
        documents.jobs,
        find_by_address(settings.readable_roots),
        context.store.clock,
        context.audit,
    )


def build_pipeline_tools(builder: PipelineBuilder) -> list[Tool]:
    """The tools of conversations."""
    return [
        *make_pipeline_tools(builder),
        SuggestPipelineTool(builder),
    ]


def register_source_agents(
    settings: Settings,
    library: Library,
    connectors: Mapping[SourceType, Connector],
    languages: LanguageDetector,
    find_source: FindSource | None = None,
) -> tuple[RegisteredSubAgent, ...]:
    """The sub-agents that look at sources. Local files are read below the readable roots.

    Without `find_source`, sources are found by their own names only.
    """
    resources = SourceResources(
        library,
        connectors,
        settings.readable_roots,
        settings.data_dir / "workspaces",
        languages,
        find_source or find_by_address(settings.readable_roots),
    )
    return register_subagents((SourceAnalyzer, PipelineValidator), resources)


def build_conversations(host: FeatureHost, runs: RunServices) -> BuilderConversations:
    """The conversations with the operator's settings."""
    context, settings, models = host.context, host.settings, runs.models
    terms = ConversationSettings(
        room=PIPELINES_ROOM,
        requires_model=settings.conversations_require_llm,
        messages_per_minute=settings.conversation_messages_per_minute,
        archive_days=settings.conversation_archive_days,
    )

    def has_model() -> bool:
        return models.is_configured and settings.executor_mode != "rules"

    conversations = BuilderConversations(
        get_builder(host), runs.service, terms, has_model=has_model, clock=context.store.clock, follows=context.recover
    )
    context.stack.push_async_callback(conversations.aclose)
    return conversations


def _build_ttl_store(settings: Settings) -> TtlStore:
    """The store of short-lived messages: Redis if configured, else this process."""
    if settings.redis_url is None:
        return LocalTtlStore()
    from agent.storage.ttl_store_redis import RedisTtlStore  # noqa: PLC0415 - 0.1 s of start-up time, needed only with Redis

    return RedisTtlStore(settings.redis_url.get_secret_value(), settings.redis_prefix)
