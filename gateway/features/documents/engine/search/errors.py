"""Errors of retrieval."""

from agent.core.errors import RequestError


class MemoryNoResultsError(RequestError):
    """Raised by a search whose results all stay below the requested relevance.

    Callers search more broadly or ask the user what is meant. An unknown collection raises `NotFoundError` instead.
    """

    code = "ERR_MEMORY_NO_RESULTS"
