"""Hooks of the feature `protocols`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent.runs.intake_ports import RequestHandler
from gateway.feature_host import FeatureHost, RunServices
from gateway.features.protocols.engine import TaskService, TaskStore, make_task_handler
from gateway.features.protocols.parts import get_tasks


def build_tasks(host: FeatureHost, runs: RunServices) -> TaskService:
    """The stored tasks, which start runs."""
    clock = host.context.store.clock
    tasks = TaskService(TaskStore(host.statements, clock), runs.service, room=host.settings.task_room, clock=clock)
    host.context.stack.push_async_callback(tasks.aclose)
    return tasks


def list_request_handlers(host: FeatureHost) -> tuple[RequestHandler[Any], ...]:
    """The handler of requests to run a task."""
    return (make_task_handler(get_tasks(host)),)


@asynccontextmanager
async def watch_tasks(host: FeatureHost) -> AsyncIterator[None]:
    """Follows the runs of tasks that an earlier process started."""
    await get_tasks(host).resume_watching()
    yield
