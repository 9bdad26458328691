"""An MCP server over stdio with two tools: notes in a file beside it."""

from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

NOTES = Path(__file__).with_name("notes.txt")
server = MCPServer("notes")


@server.tool()
def write_note(text: str) -> str:
    """Write a note down."""
    with NOTES.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return "written"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_notes() -> str:
    """List all notes, the oldest first."""
    return NOTES.read_text("utf-8") if NOTES.exists() else "There are no notes."


server.run()
