"""Hooks of the feature `documents`."""

from agent.run_context.extensions import Extension
from agent.subagents.registry import RegisteredSubAgent, register_subagents
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.documents.engine.document_runs import DOCUMENT_EXTENSION
from gateway.features.documents.engine.subagents.researcher import Researcher
from gateway.features.documents.tools import make_document_tools


def list_tools(host: FeatureHost) -> tuple[Tool, ...]:
    """Returns the tools that search documents and answer from them."""
    return make_document_tools(host.settings, host.get_part("documents").library)


def list_subagents(_: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """Returns the researcher."""
    return register_subagents((Researcher,))


def list_extensions(_: FeatureHost) -> tuple[Extension, ...]:
    """Returns the plans of rooms with `knowledge`, and the answers with citations."""
    return (DOCUMENT_EXTENSION,)
