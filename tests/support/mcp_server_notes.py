"""Somebody else's MCP server whose one tool changes something: `python -m tests.support.mcp_server_notes FILE`."""

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer


def build(path: Path) -> MCPServer:
    """The server; what it is told stands in the file, a line each."""
    server = MCPServer("notes")

    @server.tool()
    def note(text: str) -> str:
        """Write a note down."""
        with path.open("a") as file:
            file.write(f"{text}\n")
        return "noted"

    return server


if __name__ == "__main__":
    asyncio.run(build(Path(sys.argv[1])).run_stdio_async())
