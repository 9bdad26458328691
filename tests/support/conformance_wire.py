"""The two eras of MCP as bytes on the wire, for tests that look at more than the official client shows."""

from typing import Any

import httpx

from mcp_tools.server.tasks import TASKS_EXTENSION
from tests.support.script import plans, says, script

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
BEGIN = {"task": "search, compute", "wait_s": 0}
SLOW = script(
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("It is 42.", to="completion", delay_s=5),  # others at work on the machine included
)


async def modern(
    url: str, method: str, params: dict[str, Any], headers: dict[str, str] | None = None, *, tasks: bool = False
) -> Any:
    """One request of 2026-07-28, as bytes on the wire; the JSON-RPC answer."""
    if tasks:
        declared: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
        params = {"_meta": {**META, "io.modelcontextprotocol/clientCapabilities": declared}, **params}
    name = str(params.get("name") or params.get("uri") or params.get("taskId") or "")
    routing = {"mcp-protocol-version": "2026-07-28", "mcp-method": method} | ({"mcp-name": name} if name else {})
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    async with httpx.AsyncClient() as client:
        return (await client.post(f"{url}/mcp/all", json=body, headers={**ACCEPT, **routing, **(headers or {})})).json()


async def session_of_2025(url: str) -> dict[str, str]:
    """The headers of a new session of 2025-11-25."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    headers = {**ACCEPT, "mcp-protocol-version": "2025-11-25"}
    async with httpx.AsyncClient() as client:
        begun = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await client.post(f"{url}/mcp", json=begun, headers=headers)
        headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await client.post(f"{url}/mcp", json=ready, headers=headers)).status_code == 202
    return headers
