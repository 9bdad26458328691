"""The `steps` trace of a run and the results of its tool calls, projected from the log."""

from agent.core.trace.details import MAX_TEXT_CHARS, shorten
from agent.core.trace.projection import Projection, build_projection, build_trace

__all__ = ["MAX_TEXT_CHARS", "Projection", "build_trace", "build_projection", "shorten"]
