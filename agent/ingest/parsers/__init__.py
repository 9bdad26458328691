"""Parsers convert a file to a `ParserOutput` in a worker process that may crash. Use them through `ParserPool`."""

from agent.ingest.parsers.limits import ParserLimits
from agent.ingest.parsers.pool import ParserPool

__all__ = ["ParserLimits", "ParserPool"]
