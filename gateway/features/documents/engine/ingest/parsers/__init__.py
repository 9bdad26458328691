"""Parsers convert a file to a `ParserOutput` in a worker process that may crash. Use them through `ParserPool`."""

from gateway.features.documents.engine.ingest.parsers.limits import ParserLimits
from gateway.features.documents.engine.ingest.parsers.pool import ParserPool

__all__ = ["ParserLimits", "ParserPool"]
