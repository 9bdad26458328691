"""What is going on in this task, for log lines."""

from contextvars import ContextVar

run_id: ContextVar[str] = ContextVar("run_id", default="")
"""The run that is being carried out; whatever its tasks log belongs to it."""
