"""The MCP server on stdin and stdout. Started by `stepgate mcp`."""

import sys

from mcp.server.stdio import stdio_server

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.doors.mcp import STATE_KEY, build_served
from gateway.feature_loader import load_features
from gateway.packaged_files import SHIPPED_VIEWS
from mcp_tools.mapped_stream import Item, MappedStream
from mcp_tools.server.mcp_server import build_server
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import View, load_configured_views, make_default_view


async def serve_stdio(settings: Settings, view_id: str = "", chosen: str | None = None) -> None:
    """Serves until stdin ends. `view_id` names a view other than that of `/mcp`; `chosen` are toolsets
    in place of those of the settings.

    Raises `ConfigError` for an unknown view, and `BadRequestError` for an unknown toolset.
    """
    toolsets = Toolsets(load_features(settings.features).list_toolsets())
    view = _choose_view(settings, view_id, toolsets).choose_toolsets(chosen, toolsets)
    async with build_gateway(settings, recover=False) as stepgate:
        server = build_server(lambda: build_served(stepgate), settings.data_dir / STATE_KEY, view, toolsets)
        async with stdio_server() as (reading, writing):
            await server.run(MappedStream(reading, _warn_if_invalid), writing, server.create_initialization_options())


def _choose_view(settings: Settings, view_id: str, toolsets: Toolsets) -> View:
    if not view_id:
        return make_default_view(settings.mcp_toolsets, toolsets)
    views = load_configured_views(settings, SHIPPED_VIEWS, toolsets)
    if view_id not in views:
        raise ConfigError(f"there is no view {view_id!r}; known views: {', '.join(views)}")
    return views[view_id]


def _warn_if_invalid(item: Item) -> Item:
    """Reports an invalid line on stderr, which the server drops silently."""
    if isinstance(item, Exception):
        print(
            "stepgate: a line on stdin is not a JSON-RPC message and is ignored; `stepgate mcp` is for MCP clients, "
            "people use `stepgate ask`",
            file=sys.stderr,
        )
    return item
