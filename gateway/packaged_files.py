"""Paths of the shipped `skills/` and `config/` folders. Separate from `bootstrap`, for commands that need nothing
else.
"""

from pathlib import Path

_INSTALLED = Path(__file__).resolve().parent / "shipped"
"""Where a wheel has the folders; a clone has them beside the packages."""

PACKAGE_ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parent.parent
"""The folder that holds `skills/` and `config/`."""

SHIPPED_VIEWS = PACKAGE_ROOT / "config" / "mcp_views"
"""The shipped views of the MCP server."""
