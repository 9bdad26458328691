"""Which process does what: the port `Dispatcher`, its local driver, and its driver on a queue in PostgreSQL."""

from agent.dispatch.local import LocalDispatcher
from agent.dispatch.port import (
    LANES,
    MAX_ATTEMPTS,
    RUN_JOB,
    DeadJobError,
    Dispatcher,
    Job,
    JobHandler,
    Lane,
    PostponeJobError,
    drain_tasks,
)

__all__ = [
    "DeadJobError",
    "Dispatcher",
    "Job",
    "JobHandler",
    "LANES",
    "Lane",
    "LocalDispatcher",
    "MAX_ATTEMPTS",
    "PostponeJobError",
    "RUN_JOB",
    "drain_tasks",
]
