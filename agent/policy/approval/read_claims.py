"""Reads of foreign servers that are not trusted: a person is asked about them as reads, once for each server. Pure.

Such a server says of a tool that it only reads (`ToolSpec.read_claim`). Nobody vouches for that, so the call is handled
as a change in everything else: it is not repeated, and it is asked about. A yes to a question that names the server
covers its further reads in the run, and in a conversation whose id this gateway made or whose key is the same.
"""

from collections.abc import Iterable

from agent.core.run_state import RunState


def list_read_servers(state: RunState) -> frozenset[str]:
    """The servers whose reads a person has allowed, in this run or before in its conversation."""
    servers = set(state.retrieval.read_servers) if state.retrieval is not None else set()
    for request in state.approvals:
        decided = state.decisions.get(request.approval_id)
        if decided is not None and decided.decision == "approved" and not decided.edited:
            servers.update(item.read_claim for item in request.items if item.read_claim)
    return frozenset(servers)


def describe_read_claim(servers: Iterable[str]) -> str:
    """The reason to ask about reads of servers, as a clause."""
    names = list(dict.fromkeys(servers))
    named = ", ".join(repr(name) for name in names)
    if len(names) == 1:
        return f"this reads from the MCP server {named}, which is not trusted"
    return f"this reads from the MCP servers {named}, which are not trusted"
