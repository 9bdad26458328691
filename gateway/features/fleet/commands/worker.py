"""`stepgate worker`: executes runs and jobs from the queue, without doors."""

import asyncio
from typing import Annotated

import typer

from agent.core.errors import ConfigError
from gateway.cli.serve import choose_loop
from gateway.cli.session import load_command_settings
from gateway.garbage_collector import pause_garbage_collector
from gateway.quiet_interrupt import QuietInterrupt


def worker(
    lanes: Annotated[str | None, typer.Option(help="Lanes to take work from (AGENT_QUEUE_LANES).")] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Runs of each lane at a time (AGENT_QUEUE_SLOTS).")] = None,
    port: Annotated[int | None, typer.Option(help="Port of /health and /metrics (AGENT_WORKER_PORT).")] = None,
) -> None:
    """Take work from the queue (AGENT_DISPATCH=queue). SIGTERM and Ctrl-C hand it back."""
    settings = load_command_settings(queue_lanes=lanes, queue_slots=slots, worker_port=port)
    if settings.dispatch != "queue":
        raise ConfigError(
            "AGENT_DISPATCH: a worker takes work from the queue; set it to `queue` here and at the gateways"
        )
    if settings.queue_slots == 0:
        raise ConfigError("AGENT_QUEUE_SLOTS: a worker needs at least 1; 0 is for gateways that leave all to workers")
    with QuietInterrupt(), pause_garbage_collector():
        from gateway.features.fleet.commands.worker_server import run_worker  # noqa: PLC0415 - the whole engine; `--help` needs none
    with asyncio.Runner(loop_factory=choose_loop()) as runner:
        runner.run(run_worker(settings))
