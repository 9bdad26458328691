"""Hooks of the feature `protocols`."""

from typing import Any

from agent.runs.run_intake import RequestHandler
from gateway.feature_host import FeatureHost
from gateway.features.protocols.engine.tasks import make_task_handler


def list_request_handlers(host: FeatureHost) -> tuple[RequestHandler[Any], ...]:
    """Returns what accepts requests to run a task."""
    return (make_task_handler(host.get_part("tasks")),)
