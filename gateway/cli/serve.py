"""`stepgate serve`: the gateway as a process."""

import asyncio
from collections.abc import Callable
from typing import Annotated

import typer

from gateway.cli.session import settings_of_command
from gateway.loading import Loading


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind (AGENT_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind, 0 for a free one (AGENT_PORT).")] = None,
) -> None:
    """Start the gateway. SIGTERM and Ctrl-C drain it."""
    settings = settings_of_command(host=host, port=port)
    with Loading():
        from gateway.cli.server import run_server  # noqa: PLC0415 - the whole gateway; other commands do not need it

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        raise SystemExit(runner.run(run_server(settings)))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it is installed (not on Windows)."""
    try:
        import uvloop  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
