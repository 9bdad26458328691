"""The state of an external MCP server in one line for people."""

from collections.abc import Iterable

from mcp_tools.client.sanitize import format_names


def format_status_line(status: str, tools: int, start: str, reason: str, quarantined: Iterable[str]) -> str:
    """The status, the number of tools, the progress of the start, problems and quarantined tools."""
    line = f"{status}, {tools} {'tool' if tools == 1 else 'tools'}"
    line += " (stopped while unused; a call starts it)" if status == "idle" else ""
    line += f" ({start})" if start else ""
    line += f": {reason}" if reason else ""
    if names := list(quarantined):
        line += f"; quarantined: {format_names(names)} (see `stepgate mcp-servers review`)"
    return line
