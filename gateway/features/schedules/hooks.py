"""Hooks of the feature `schedules`."""

from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.schedules.tools.schedules import make_schedule_tools


def list_tools(host: FeatureHost) -> list[Tool]:
    """Returns the tools for schedules. They ask for the service when they are called."""
    return [*make_schedule_tools(lambda: host.get_gateway().schedules.service)]
