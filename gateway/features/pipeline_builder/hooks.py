"""Hooks of the feature `pipeline_builder`."""

from typing import Any

from agent.runs.run_intake import RequestHandler
from agent.subagents.registry import RegisteredSubAgent
from agent.text.language import LanguageDetector
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.pipeline_builder.bootstrap_pipeline_builder import build_pipeline_tools, register_source_agents
from gateway.features.pipeline_builder.engine.conversations import make_message_handler


def list_tools(host: FeatureHost) -> list[Tool]:
    """Returns the tools of conversations."""
    return build_pipeline_tools(host.get_part("pipeline_builder"))


def list_subagents(host: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """Returns the sub-agents that look at sources."""
    documents, builder = host.get_part("documents"), host.get_part("pipeline_builder")
    return register_source_agents(
        host.settings, documents.library, documents.connectors, LanguageDetector(), builder.find_source
    )


def list_request_handlers(host: FeatureHost) -> tuple[RequestHandler[Any], ...]:
    """Returns what accepts messages to conversations."""
    return (make_message_handler(host.get_part("conversations")),)
