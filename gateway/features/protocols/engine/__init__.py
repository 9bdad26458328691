"""Tasks without a web framework: stored requests and their runs."""

from gateway.features.protocols.engine.task_store import MAX_RUN_NUMBER, Task, TaskRun, TaskStatus, TaskStore
from gateway.features.protocols.engine.tasks import TaskRunRequest, TaskService, make_task_handler

__all__ = [
    "MAX_RUN_NUMBER",
    "Task",
    "TaskRun",
    "TaskRunRequest",
    "TaskService",
    "TaskStatus",
    "TaskStore",
    "make_task_handler",
]
