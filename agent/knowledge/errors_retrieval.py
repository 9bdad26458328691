"""The failures of retrieval."""

from agent.core.errors import AgentError


class MemoryNoResultsError(AgentError):
    """Raised by a search in which nothing reached the asked relevance: search more broadly, or ask the user what is
    meant. A collection that does not exist is a `NotFoundError`, raised by who keeps the collections."""

    code = "ERR_MEMORY_NO_RESULTS"
