"""The process of `stepgate worker`: a gateway without doors, and a small port for health checks and Prometheus."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version

import uvicorn
from fastapi import FastAPI
from starlette.routing import Route

from agent.core.settings import Settings
from gateway.access.authentication import read_key
from gateway.access.origin_check import OriginCheckMiddleware
from gateway.bootstrap import Stepgate, build_gateway
from gateway.cli.bind_address import bind_socket
from gateway.doors import catalogue
from gateway.garbage_collector import pause_garbage_collector
from gateway.render import error_responses

log = logging.getLogger(__name__)

PATHS = frozenset({"/health", "/healthz", "/ready", "/readyz", "/metrics"})
CLOSE_SECONDS = 1


async def run_worker(settings: Settings) -> None:
    """Takes work from the queue until a signal, then drains: what is not done in time is handed to other processes.

    Raises `ConfigError` and `StoreError`.
    """
    stopping = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        with pause_garbage_collector():
            stepgate = await stack.enter_async_context(build_gateway(settings))
        stack.enter_context(_capture_signals(stopping))
        address = ""
        if settings.worker_port is not None:
            listening = stack.enter_context(bind_socket(settings.model_copy(update={"port": settings.worker_port})))
            server = _StatusServer(settings, stepgate)
            serving = asyncio.create_task(server.serve([listening]), name="health and metrics")
            stack.push_async_callback(_end, server, serving)
            address = "    http://{}:{}/health".format(*listening.getsockname()[:2])
        _announce(settings, address)
        await stopping.wait()
        await stepgate.service.worker.begin_drain(settings.drain_seconds)  # the port answers until then


class _StatusServer(uvicorn.Server):
    """Serves `PATHS` with the rules of the gateway's own: `/metrics` needs a key where the gateway needs keys."""

    def __init__(self, settings: Settings, stepgate: Stepgate) -> None:
        app = FastAPI(title="Stepgate worker", version=version("stepgate"), docs_url=None, redoc_url=None)
        app.state.stepgate = stepgate
        app.add_middleware(
            OriginCheckMiddleware,
            settings=settings,
            authenticate=lambda headers: stepgate.authenticator.authenticate(read_key(headers)),
        )
        routes = [route for route in catalogue.router.routes if isinstance(route, Route) and route.path in PATHS]
        app.router.routes.extend(routes)
        error_responses.install_error_handlers(app, routes)
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=CLOSE_SECONDS,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to `run_worker`."""
        yield


async def _end(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    server.should_exit = True
    await serving


@contextlib.contextmanager
def _capture_signals(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _announce(settings: Settings, address: str) -> None:
    lanes = ", ".join(settings.queue_lanes)
    if settings.log_format == "json":
        log.info("Stepgate worker takes work", extra={"lanes": lanes, "slots": settings.queue_slots})
        return
    print(f"Stepgate worker takes {lanes} ({settings.queue_slots} slots){address}", file=sys.stderr, flush=True)
