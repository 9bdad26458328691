"""`Principal`: on whose behalf something is done."""

from dataclasses import dataclass

from agent.core.models import LOCAL_OWNER, AgentRequest

STATE = "principal"
"""Where a door leaves it, in the state of a request, for the server behind."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner of what is reached, the id of the API key that pays, the tools that key allows and how many runs at the
    same time (None: all of them, any number)."""

    owner: str = LOCAL_OWNER
    key: str | None = None
    tools: tuple[str, ...] | None = None
    parallel_runs: int | None = None

    def narrowed(self, request: AgentRequest) -> AgentRequest:
        """The request with no more tools than the key allows."""
        if self.tools is None:
            return request
        wanted = request.metadata.get("tools")
        tools = [name for name in self.tools if name in wanted] if isinstance(wanted, list) else list(self.tools)
        return request.model_copy(update={"metadata": {**request.metadata, "tools": tools}})
