"""The gateway's process: uvicorn on a socket of ours. SIGTERM drains. Begun by `stepgate serve`."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn

from agent.core.config import Settings
from agent.core.errors import ConfigError
from gateway.app import create_app
from gateway.bootstrap import Stepgate, build
from gateway.cli.listening import listen
from gateway.connections import bounded
from gateway.gatekeeper import is_loopback

log = logging.getLogger(__name__)

GRACE_SECONDS = 3.0
"""What open connections get to close, after the runs have ended or were left resumable."""


async def run_server(settings: Settings) -> int:
    """Bind, wire the gateway, serve until a signal, drain; the exit code."""
    with listen(settings) as listening:
        async with build(settings) as stepgate:
            await _check_keys(settings, stepgate)
            server = _Server(settings, stepgate)
            _settle_garbage()
            await server.serve([listening])
            return 0 if server.started else 1


def _settle_garbage() -> None:
    """Look for cycles of garbage never again among what the start has made: it stays."""
    gc.collect()
    gc.freeze()


async def _check_keys(settings: Settings, stepgate: Stepgate) -> None:
    """Refuse to open the gateway to the network for everybody. `ConfigError` where no key could let anybody in."""
    if is_loopback(settings.host):
        return
    if settings.require_key == "never":
        log.warning("AGENT_REQUIRE_KEY is never: whoever reaches %s may use this gateway", settings.host)
    elif settings.jwt_issuer is None and settings.token_verifier is None and not await stepgate.keys.any():
        raise ConfigError(
            f"AGENT_HOST: others can reach {settings.host}, and there is no API key yet; make one first: "
            "`stepgate keys create NAME`, or name who vouches for callers (AGENT_JWT_ISSUER)"
        )


class _Server(uvicorn.Server):
    """uvicorn, which tells the gateway of a signal at once: streams must end before connections can."""

    def __init__(self, settings: Settings, stepgate: Stepgate) -> None:
        self._settings = settings
        self._stepgate = stepgate
        super().__init__(
            uvicorn.Config(
                create_app(settings, stepgate),
                host=settings.host,
                port=settings.port,
                http=bounded(settings),
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,  # nothing here asks from where a request came, or by which scheme
                timeout_graceful_shutdown=int(settings.drain_seconds + GRACE_SECONDS),
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bind, then say where."""
        await super().startup(sockets)
        if self.started:
            self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal; uvicorn closes the doors. A second Ctrl-C does not wait."""
        self._stepgate.service.custody.begin_drain(self._settings.drain_seconds)
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but without raising the signal again at the end: what is left must be drained first."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _announce(self) -> None:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        port = next((server.sockets[0].getsockname()[1] for server in self.servers if server.sockets), settings.port)
        url = f"http://{host}:{port}"
        mode = "rules mode, no model configured (set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST)"
        if settings.llm_configured:
            models = self._stepgate.models
            mode = f"models fast={models.fast}, high={models.high or models.fast}"
        if settings.log_format == "json":
            told = {"mode": mode, "base_url": f"{url}/v1", "data": str(settings.data_dir.resolve())}
            log.info("Stepgate listens on %s", url, extra=told)
            return
        print(f"Stepgate listens on {url}", file=sys.stderr)
        print(f"  {mode}", file=sys.stderr)
        print(
            f"  OpenAI-compatible base URL: {url}/v1    data: {settings.data_dir.resolve()}",
            file=sys.stderr,
            flush=True,
        )
