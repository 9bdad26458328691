"""Hooks of the feature `incident`."""

from agent.run_context.extensions import Extension
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.documents.parts import get_documents
from gateway.features.incident.tools import INCIDENT_EXTENSION, make_incident_tools


def list_tools(host: FeatureHost) -> tuple[Tool, ...]:
    """The eight tools."""
    return make_incident_tools(get_documents(host).library)


def list_extensions(_: FeatureHost) -> tuple[Extension, ...]:
    """The gates and the topic of incident rooms."""
    return (INCIDENT_EXTENSION,)
