"""The gateway's process: uvicorn on a socket we bind. SIGTERM drains. Started by `stepgate serve`."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.access.authentication import can_others_call
from gateway.access.http_protocol import make_protocol_with_limits
from gateway.app import create_app
from gateway.bootstrap import Stepgate, build_gateway
from gateway.cli.bind_address import bind_socket
from gateway.cli.running_gateway import note_address
from gateway.garbage_collector import pause_garbage_collector
from gateway.worker_process import WorkerProcess

log = logging.getLogger(__name__)

GAUGE_SECONDS = 1.0

GRACE_SECONDS = 3.0
"""How long open connections may take to close after the runs have ended or were left resumable."""


async def run_server(settings: Settings) -> int:
    """Binds the address, builds the gateway, serves until a signal, drains. Returns the exit code.

    A worker of several (`gateway/features/fleet/serve_workers/`) takes the sockets of its parent, and ends with it.
    """
    worker = WorkerProcess.from_environment()
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as starting:
        starting.enter_context(pause_garbage_collector())
        sockets = worker.open_sockets() if worker is not None else (bind_socket(settings),)
        for one in sockets:
            stack.enter_context(one)
        async with build_gateway(settings) as stepgate:
            await _check_keys(settings, stepgate)
            server = _Server(settings, stepgate, worker)
            starting.close()
            gauges = asyncio.create_task(_refresh_gauges(stepgate), name="gauges") if worker is not None else None
            await server.serve(list(sockets))
            if gauges is not None:
                gauges.cancel()
            return 0 if server.started else 1


async def _refresh_gauges(stepgate: Stepgate) -> None:
    """Keeps this worker's gauges true for the other workers: any of them may be asked for the metrics of all."""
    while True:
        stepgate.metrics.live.set(stepgate.service.worker.live_count)
        await asyncio.sleep(GAUGE_SECONDS)


async def _check_keys(settings: Settings, stepgate: Stepgate) -> None:
    """Refuses to serve the network without authentication. Raises `ConfigError` if no key could admit anybody."""
    if not can_others_call(settings):
        return
    address = settings.public_url or settings.host
    if settings.require_key == "never":
        log.warning("AGENT_REQUIRE_KEY is never: anybody who can reach %s may use this gateway", address)
    elif settings.jwt_issuer is None and settings.token_verifier is None and not await stepgate.keys.has_valid_key():
        name = "AGENT_PUBLIC_URL" if settings.public_url else "AGENT_HOST"
        raise ConfigError(
            f"{name}: others can reach {address}, and there is no API key yet; create one first: "
            "`stepgate keys create NAME`, or set an issuer of tokens (AGENT_JWT_ISSUER)"
        )


class _Server(uvicorn.Server):
    """uvicorn's server, which starts draining at the signal: streams must end before connections can close."""

    def __init__(self, settings: Settings, stepgate: Stepgate, worker: WorkerProcess | None) -> None:
        self._settings = settings
        self._stepgate = stepgate
        self._worker = worker
        self._offer: asyncio.Task[None] | None = None
        super().__init__(
            uvicorn.Config(
                create_app(settings, stepgate, worker=worker),
                host=settings.host,
                port=settings.port,
                http=make_protocol_with_limits(settings),
                ws="none",  # no door speaks WebSocket; else its library is imported
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,  # no code here uses the client's address or the scheme
                timeout_graceful_shutdown=int(settings.drain_seconds + GRACE_SECONDS),
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Binds, then announces the address, or reports it to the parent."""
        await super().startup(sockets)
        if not self.started:
            return
        if self._worker is None:
            self._announce()
            if not self._stepgate.models.is_configured:
                self._offer = asyncio.create_task(self._offer_models(), name="offer of models")
            return
        # Nothing is ever written to this pipe: it becomes readable when the parent has ended, however it ended.
        asyncio.get_running_loop().add_reader(self._worker.parent, self._end_with_parent)
        self._worker.tell_ready()

    def _end_with_parent(self) -> None:
        assert self._worker is not None
        asyncio.get_running_loop().remove_reader(self._worker.parent)
        self.handle_exit(signal.SIGTERM, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Starts draining at the first signal; uvicorn closes the connections. A second Ctrl-C does not wait."""
        self._stepgate.service.worker.begin_drain(self._settings.drain_seconds)
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As in uvicorn, but does not raise the signal again at the end: remaining runs must be drained first."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def _offer_models(self) -> None:
        """Prints what programs on this machine serve, after the address: the search waits for them."""
        from gateway.model_choice import find_endpoints, format_offer  # noqa: PLC0415 - only without a model

        for endpoint in (await find_endpoints(self._settings)).found:
            offer = format_offer(endpoint)
            if self._settings.log_format == "json":
                log.info("%s", offer)
            else:
                print(f"  {offer}", file=sys.stderr, flush=True)

    def _announce(self) -> None:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = next((server.sockets[0].getsockname()[1] for server in self.servers if server.sockets), settings.port)
        url = f"http://{host}:{port}"
        note_address(settings, url)
        mode = "rules mode, no model configured (stepgate models use, or AGENT_LLM_BASE_URL)"
        models = self._stepgate.models
        if models.is_configured:
            mode = f"models fast={models.fast}, high={models.high or models.fast}"
        if settings.log_format == "json":
            fields = {"mode": mode, "base_url": f"{url}/v1", "data": str(settings.data_dir.resolve())}
            log.info("Stepgate listens on %s", url, extra=fields)
            return
        print(f"Stepgate listens on {url}", file=sys.stderr)
        print(f"  {mode}", file=sys.stderr)
        print(
            f"  OpenAI-compatible base URL: {url}/v1    data: {settings.data_dir.resolve()}",
            file=sys.stderr,
            flush=True,
        )
