"""Parsers: a file becomes a `ParserOutput`, in a worker process that may die of it. `ParserPool` is the only door."""

from agent.knowledge.parsers.limits import ParserLimits
from agent.knowledge.parsers.pool import ParserPool

__all__ = ["ParserLimits", "ParserPool"]
