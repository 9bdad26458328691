"""Somebody else's MCP server whose tools are what a file says: `python -m tests.support.mcp_server_listed FILE`.

The file holds a JSON list of tools as `tools/list` gives them; every call of any tool is answered with its name.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, Tool
from starlette.types import ASGIApp, Receive, Scope, Send


class Changing(MCPServer):
    """The server; `calls` are the names that were called."""

    def __init__(self, path: Path) -> None:
        super().__init__("changing")
        self._path = path
        self.calls: list[str] = []

    async def list_tools(self) -> list[Tool]:
        return [Tool.model_validate(item) for item in json.loads(self._path.read_text("utf-8"))]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        self.calls.append(name)
        return CallToolResult(content=[TextContent(type="text", text=f"called {name}")])


class HeaderRecorder:
    """Everything a request says about itself, as text: its line, its headers, its body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.seen: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def list_notifications() -> Any:
            message = await receive()
            self.seen.append(repr(message.get("body", b"")))
            return message

        if scope["type"] == "http":
            self.seen.append(f"{scope['method']} {scope['path']}?{scope['query_string']!r} {scope['headers']!r}")
        await self._app(scope, list_notifications, send)


def offer(path: Path, **descriptions: str) -> None:
    """Write the file: one tool a name, which takes a text."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [{"name": name, "description": said, "inputSchema": schema} for name, said in descriptions.items()]
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(tools), "utf-8")
    draft.replace(path)


if __name__ == "__main__":
    asyncio.run(Changing(Path(sys.argv[1])).run_stdio_async())
