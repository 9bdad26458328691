"""`Principal`: on whose behalf something is done."""

from dataclasses import dataclass

from agent.core.errors import BadRequestError
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

    @property
    def name(self) -> str:
        """Who it is, for a person who reads what was done."""
        return f"{self.owner} (key {self.key})" if self.key else self.owner

    def narrowed(self, request: AgentRequest) -> AgentRequest:
        """The request with no more tools than the key allows. `BadRequestError` for a call of another one."""
        if self.tools is None:
            return request
        calls = request.metadata.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            name = call.get("tool", call.get("name")) if isinstance(call, dict) else None
            if isinstance(name, str) and name not in self.tools:
                allowed = ", ".join(self.tools) or "none"
                raise BadRequestError(
                    f"this API key does not allow the tool {name!r}; it allows {allowed}", param="metadata.tool_calls"
                )
        wanted = request.metadata.get("tools")
        tools = [name for name in self.tools if name in wanted] if isinstance(wanted, list) else list(self.tools)
        return request.model_copy(update={"metadata": {**request.metadata, "tools": tools}})
