"""`Principal`: on whose behalf the engine works, and with which limits."""

from dataclasses import dataclass
from typing import Final

from agent.core.errors import BadRequestError, ScopeError
from agent.core.models import LOCAL_OWNER, AgentRequest

STATE_KEY = "principal"
"""Attribute of an HTTP request's state in which a door leaves the principal for the MCP server behind it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner of what is read and written, and the limits of their API key.

    `key_id` is the API key that pays; None without one. `tools` and `parallel_runs` are None without such a limit.
    `display_name` names a person who has no key, such as the one at a terminal.
    """

    owner: str = LOCAL_OWNER
    key_id: str | None = None
    tools: tuple[str, ...] | None = None
    parallel_runs: int | None = None
    may_approve: bool = True
    display_name: str = ""

    @property
    def name(self) -> str:
        """Returns the principal's name for audit records and approvals."""
        return self.display_name or (f"{self.owner} (key {self.key_id})" if self.key_id else self.owner)

    def require_approval_right(self) -> None:
        """Raises `ScopeError` if the principal may not decide on approvals."""
        if not self.may_approve:
            who = f"the API key {self.key_id}" if self.key_id else f"the token of {self.owner}"
            raise ScopeError(f"{who} lacks the scope 'approve'", scope="approve")

    def restrict_request(self, request: AgentRequest) -> AgentRequest:
        """Returns the request with no more tools than the key allows. Raises `BadRequestError` for a call of
        another.
        """
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


LOCAL: Final = Principal()
"""The principal of callers on this machine without a key."""
