"""`Principal`: on whose behalf the engine works, and with which limits."""

from dataclasses import dataclass
from typing import Final

from agent.core.errors import BadRequestError, ScopeError
from agent.core.models import LOCAL_OWNER, AgentRequest
from agent.core.models.request import read_explicit_tool_calls

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
    scopes: frozenset[str] | None = None
    """The scopes of the key or token; None for the machine's owner, who needs no key."""
    is_operator: bool = False
    """Whether the principal types commands on this machine."""

    @property
    def is_identified(self) -> bool:
        """Whether the principal is known by more than the address they call from: by a key, by a token of another
        issuer (whose owner is never `local`), or by a terminal on this machine.
        """
        return self.key_id is not None or self.owner != LOCAL_OWNER or self.is_operator

    @property
    def may_skip_approval(self) -> bool:
        """Whether a call that the principal names with its arguments counts as approved. A caller without a key may
        be a web page that sends requests blindly, so theirs are treated as a plan.
        """
        return self.may_approve and self.is_identified

    @property
    def name(self) -> str:
        """The principal's name for audit records and approvals."""
        return self.display_name or (f"{self.owner} (key {self.key_id})" if self.key_id else self.owner)

    def require_approval_right(self) -> None:
        """Raises `ScopeError` if the principal may not decide on approvals."""
        if not self.may_approve:
            who = f"the API key {self.key_id}" if self.key_id else f"the token of {self.owner}"
            raise ScopeError(f"{who} lacks the scope 'approve'", scope="approve")

    def may_call(self, tool: str) -> bool:
        """Whether the principal's key, if it has a list of tools, names this one."""
        return self.tools is None or tool in self.tools

    def require_tool(self, tool: str) -> None:
        """Raises `ScopeError` if the principal's key has a list of tools without this one."""
        if self.tools is not None and tool not in self.tools:
            who = f"the API key {self.key_id}" if self.key_id else f"the token of {self.owner}"
            allowed = ", ".join(self.tools) or "none"
            raise ScopeError(
                f"{who} does not allow the tool {tool!r}, which this needs; it allows {allowed}", tool=tool
            )

    def restrict_request(self, request: AgentRequest) -> AgentRequest:
        """The request with no more tools than the key allows. Raises `BadRequestError` for a call of
        another.
        """
        if self.tools is None:
            return request
        for call in read_explicit_tool_calls(request):
            if call.tool not in self.tools:
                allowed = ", ".join(self.tools) or "none"
                raise BadRequestError(
                    f"this API key does not allow the tool {call.tool!r}; it allows {allowed}",
                    param="metadata.tool_calls",
                )
        wanted = request.metadata.get("tools")
        tools = [name for name in self.tools if name in wanted] if isinstance(wanted, list) else list(self.tools)
        return request.model_copy(update={"metadata": {**request.metadata, "tools": tools}})


LOCAL: Final = Principal()
"""The principal of callers on this machine without a key."""
