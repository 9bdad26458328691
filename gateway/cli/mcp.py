"""`stepgate mcp`: the MCP server over stdio, for IDEs that start their servers themselves, and its entries in them."""

import asyncio
import logging
from typing import Annotated

import typer

from gateway.cli.mcp_install import install
from gateway.cli.session import load_command_settings, set_up_logging
from gateway.quiet_interrupt import QuietInterrupt

app = typer.Typer(
    help="Serve MCP over stdin and stdout. `mcp install CLIENT` adds Stepgate to an IDE.", invoke_without_command=True
)


app.command(no_args_is_help=True)(install)


@app.callback()
def mcp(
    context: typer.Context,
    toolsets: Annotated[
        str | None,
        typer.Option(help="The toolsets that are listed, such as default,schedules; all lists every tool."),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            help="The view, as at /mcp/NAME: all, one that is shipped, or one of mcp_views in the data folder."
        ),
    ] = "",
) -> None:
    """Serve MCP over stdin and stdout. Shares the data folder with a running gateway."""
    if context.invoked_subcommand is not None:
        return
    settings = load_command_settings()
    set_up_logging(settings, logging.WARNING)
    with QuietInterrupt():
        from gateway.cli.stdio import serve_stdio  # noqa: PLC0415 - the engine and the SDK; other commands do not need it

    asyncio.run(serve_stdio(settings, view, toolsets))
