"""Context variables for log lines."""

from contextvars import ContextVar

run_id: ContextVar[str] = ContextVar("run_id", default="")
"""The run that the current task executes; added to its log lines."""
