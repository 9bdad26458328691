"""`stepgate serve`: runs the gateway."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.cli.session import load_command_settings
from gateway.feature_loader import VARIABLE, find_hook, import_target, load_features
from gateway.garbage_collector import pause_garbage_collector
from gateway.quiet_interrupt import QuietInterrupt


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind (AGENT_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to bind, 0 for a free one (AGENT_PORT).")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes behind the port (AGENT_SERVE_WORKERS).")] = None,
) -> None:
    """Start the gateway. SIGTERM and Ctrl-C drain it."""
    settings = load_command_settings(host=host, port=port, serve_workers=workers)
    with asyncio.Runner(loop_factory=choose_loop()) as runner:
        raise SystemExit(runner.run(_choose_server(settings)(settings)))


def _choose_server(settings: Settings) -> Callable[[Settings], Coroutine[Any, Any, int]]:
    """The function that serves: in this process, or in several."""
    with QuietInterrupt(), pause_garbage_collector():
        if settings.serve_workers > 1:
            return _find_supervisor(settings)
        from gateway.cli.server import run_server  # noqa: PLC0415 - the whole gateway; other commands do not need it

        return run_server


def _find_supervisor(settings: Settings) -> Callable[[Settings], Coroutine[Any, Any, int]]:
    """The feature's function that serves in several processes. Raises `ConfigError` if it is off,
    and `FeatureConflictError`."""
    hook = find_hook(load_features(settings.features), lambda feature: feature.serve_workers, "several processes")
    if hook is None:
        raise ConfigError(
            f"AGENT_SERVE_WORKERS: several processes need the feature 'fleet', and {VARIABLE} leaves it out; switch it "
            "on, or leave AGENT_SERVE_WORKERS at 1"
        )
    serve_workers: Callable[[Settings], Coroutine[Any, Any, int]] = import_target(hook)
    return serve_workers


def choose_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop's loop if it is installed (not on Windows)."""
    try:
        import uvloop  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
