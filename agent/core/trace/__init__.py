"""The `steps` trace: a projection of a run's log, with what became of every tool call."""

from agent.core.trace.details import SHOWN_CHARS, shorten
from agent.core.trace.projection import Projection, project, projected

__all__ = ["SHOWN_CHARS", "Projection", "project", "projected", "shorten"]
