"""Paths of the packaged `skills/` and `config/` folders. Separate from `bootstrap`, for commands that need nothing
else.
"""

from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds the packages, `skills/` and `config/`."""

SHIPPED_VIEWS = PACKAGE_ROOT / "config" / "mcp_views"
"""The shipped views of the MCP server."""
