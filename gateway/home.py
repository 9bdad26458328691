"""Where the product's own `skills/` and `config/` lie; apart from the wiring, for commands that need nothing else."""

from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
"""The folder that holds the packages, `skills/` and `config/`."""

SHIPPED_VIEWS = HOME / "config" / "mcp_views"
"""The views of the MCP server that come with the product."""
