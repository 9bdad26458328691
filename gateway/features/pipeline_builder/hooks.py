"""Hooks of the feature `pipeline_builder`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agent.run_context.extensions import Extension
from agent.runs.intake_ports import RequestHandler
from agent.subagents import KeepResult, RegisteredSubAgent
from agent.text.language import LanguageDetector
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.documents.parts import get_documents
from gateway.features.pipeline_builder.bootstrap_pipeline_builder import build_pipeline_tools, register_source_agents
from gateway.features.pipeline_builder.engine.conversations import BuilderConversations, make_message_handler
from gateway.features.pipeline_builder.engine.owned_messages import OwnedMessages
from gateway.features.pipeline_builder.engine.pipeline_hooks import PipelineHooks
from gateway.features.pipeline_builder.parts import get_builder, get_conversations


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tools of conversations."""
    return build_pipeline_tools(get_builder(host))


def list_extensions(host: FeatureHost) -> tuple[Extension, ...]:
    """What answers about pipelines end with."""
    return (Extension("pipelines", hooks=(PipelineHooks(get_builder(host).store),)),)


def list_subagents(host: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """The sub-agents that look at sources."""
    documents, builder = get_documents(host), get_builder(host)
    return register_source_agents(
        host.settings, documents.library, documents.connectors, LanguageDetector(), builder.find_source
    )


def make_result_keeper(host: FeatureHost) -> Callable[[str], KeepResult]:
    """What stores the results of sub-agents in conversations."""
    return get_builder(host).make_result_keeper


def list_request_handlers(host: FeatureHost) -> tuple[RequestHandler[Any], ...]:
    """The handler of messages to conversations."""
    return (make_message_handler(get_conversations(host)),)


def find_conversations(host: FeatureHost) -> BuilderConversations:
    """The conversations of the room `pipelines`."""
    return get_conversations(host)


def list_owned_stores(host: FeatureHost) -> tuple[OwnedMessages, ...]:
    """The messages of owners."""
    return (OwnedMessages(host.statements, get_builder(host).messages),)


def list_readiness_checks(host: FeatureHost) -> Mapping[str, Callable[[], Awaitable[str]]]:
    """The check of Redis, where it keeps the messages."""
    return {} if host.settings.redis_url is None else {"redis": get_builder(host).messages.check}


@asynccontextmanager
async def resume_conversations(host: FeatureHost) -> AsyncIterator[None]:
    """Completes what ended while no process watched."""
    await get_conversations(host).resume()
    yield
