"""`stepgate serve`: runs the gateway."""

import asyncio
from collections.abc import Callable
from typing import Annotated

import typer

from gateway.cli.session import load_command_settings
from gateway.quiet_interrupt import QuietInterrupt


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind (AGENT_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind, 0 for a free one (AGENT_PORT).")] = None,
) -> None:
    """Start the gateway. SIGTERM and Ctrl-C drain it."""
    settings = load_command_settings(host=host, port=port)
    with QuietInterrupt():
        from gateway.cli.server import run_server  # noqa: PLC0415 - the whole gateway; other commands do not need it

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        raise SystemExit(runner.run(run_server(settings)))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns uvloop's loop if it is installed (not on Windows)."""
    try:
        import uvloop  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
