"""`stepgate serve --workers N`: N gateway processes behind one port, started again when one dies.

Each process is a whole gateway on the same store, so that one run is executed by one of them and taken over by another
when it dies, as with gateways on several machines. Each has a listening socket of its own for the same address
(SO_REUSEPORT): the kernel spreads connections over them. The parent keeps the sockets open, so that connections which
arrive while a worker is replaced wait instead of being refused.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.cli.bind_address import bind_socket
from gateway.cli.running_gateway import note_address
from gateway.worker_process import WorkerProcess

log = logging.getLogger(__name__)

BACKLOG = 2048
"""Connections that may wait at one worker's socket; uvicorn's default."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
"""How long to wait before a worker is started again; doubled each time it ends before it served."""


async def run_workers(settings: Settings) -> int:
    """Serves with `settings.serve_workers` processes until SIGTERM or Ctrl-C. Returns the exit code.

    Raises `ConfigError`, also where the platform cannot share a port or Redis is not configured.
    """
    _check_can_share(settings)
    with contextlib.ExitStack() as stack:
        sockets = _bind_shared(settings, stack)
        folder = Path(tempfile.mkdtemp(prefix="stepgate-metrics-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return await WorkerSupervisor(settings, sockets, _bind_loopback(settings, stack), folder).run()


def _check_can_share(settings: Settings) -> None:
    if sys.platform != "linux":
        raise ConfigError(
            "AGENT_SERVE_WORKERS: only Linux spreads connections over processes; leave it at 1 and start several "
            "gateways on ports of their own behind a load balancer"
        )
    if settings.redis_url is None:
        raise ConfigError(
            "AGENT_SERVE_WORKERS: workers share limits of keys and conversations through Redis; set AGENT_REDIS_URL, "
            "or leave it at 1"
        )


def _bind_shared(settings: Settings, stack: contextlib.ExitStack) -> list[socket.socket]:
    """One listening socket for each worker, all at the same address. Raises `ConfigError`."""
    # A socket with SO_REUSEPORT would share the port silently with another gateway of the same user.
    with bind_socket(settings) as probe:
        address = probe.getsockname()
        family = probe.family
    sockets = []
    for _ in range(settings.serve_workers):
        listening = stack.enter_context(socket.socket(family))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        sockets.append(listening)
    return sockets


def _bind_loopback(settings: Settings, stack: contextlib.ExitStack) -> list[socket.socket]:
    """One loopback socket for each worker, for requests that another worker received."""
    sockets = []
    for _ in range(settings.serve_workers):
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(BACKLOG)
        sockets.append(listening)
    return sockets


class WorkerSupervisor:
    """Starts the workers, replaces those that die, and ends them at a signal."""

    def __init__(
        self, settings: Settings, sockets: list[socket.socket], forwarding: list[socket.socket], folder: Path
    ) -> None:
        self._settings = settings
        self._sockets = sockets
        self._forwarding = tuple(one.fileno() for one in forwarding)
        self._folder = folder
        self._alive_reader, self._alive_writer = os.pipe()
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._all_serve = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Runs until a signal. Returns 0, or the exit code of the first worker if that cannot start."""
        with self._capture_signals():
            # Alone, because it may have to migrate the store, and because its error is the one to show.
            first = await self._start(0)
            if first is not None:
                return first
            loops = [
                asyncio.create_task(self._keep(index), name=f"worker {index}") for index in range(len(self._sockets))
            ]
            await self._all_serve.wait()
            if not self._stopping.is_set():
                self._announce()
            await self._stopping.wait()
            for child in self._children.values():
                _send(child, signal.SIGTERM)
            await asyncio.wait(loops)
        return 0

    async def _keep(self, index: int) -> None:
        """Waits for a worker's end and starts it again, until the supervisor stops."""
        pause = FIRST_PAUSE_SECONDS
        while index in self._children or not self._stopping.is_set():
            child = self._children.get(index)
            if child is not None:
                code = await child.wait()
                self._children.pop(index, None)
                _remove_metrics(self._folder, child.pid)
                if self._stopping.is_set():
                    return
                log.error("worker %d (pid %d) ended with %d; starting it again", index, child.pid, code)
                pause = FIRST_PAUSE_SECONDS
            if await self._start(index) is not None:
                log.error("worker %d cannot start; trying again in %.1f s", index, pause)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _start(self, index: int) -> int | None:
        """Starts a worker and waits until it serves. Returns None, or its exit code if it ended before."""
        reader, writer = os.pipe()
        worker = WorkerProcess(
            index, self._sockets[index].fileno(), self._forwarding, ready=writer, parent=self._alive_reader
        )
        settings = self._settings
        environment = {"AGENT_HOST": settings.host, "AGENT_PORT": str(settings.port), "AGENT_SERVE_WORKERS": "1"}
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "gateway.cli",
                "serve",
                env={**os.environ, **environment, **worker.to_environment(self._folder)},
                pass_fds=worker.descriptors,
                start_new_session=True,  # Ctrl-C reaches the parent only, which ends the workers
            )
        except OSError as error:  # no memory, or too many processes, at this moment
            os.close(reader)
            log.warning("worker %d: no process can be started: %s", index, error)
            return 1
        finally:
            os.close(writer)
        serves = await _read_byte(reader)
        if not serves:
            return await child.wait() or 1
        self._children[index] = child
        if len(self._children) == len(self._sockets):
            self._all_serve.set()
        if self._stopping.is_set():  # the signal came while it started
            _send(child, signal.SIGTERM)
        return None

    @contextlib.contextmanager
    def _capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
            os.close(self._alive_reader)
            os.close(self._alive_writer)

    def _stop(self) -> None:
        """Ends the workers; a second signal does not wait for their runs, as in a gateway of one process."""
        if self._stopping.is_set():
            for child in self._children.values():
                _send(child, signal.SIGINT)
        self._stopping.set()
        self._all_serve.set()

    def _announce(self) -> None:
        host, port = self._sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        note_address(self._settings, url)
        count = len(self._sockets)
        if self._settings.log_format == "json":
            log.info("Stepgate listens on %s", url, extra={"workers": count})
            return
        typer.echo(f"Stepgate listens on {url}", err=True)
        typer.echo(f"  {count} workers    OpenAI-compatible base URL: {url}/v1", err=True)


def _send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)


async def _read_byte(descriptor: int) -> bool:
    """Whether a byte comes before the pipe ends. Closes it."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(descriptor, readable.set_result, None)
    try:
        await readable
        return bool(os.read(descriptor, 1))
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _remove_metrics(folder: Path, pid: int) -> None:
    """Removes a dead worker's gauges; its counters stay, because totals must not decrease."""
    for path in folder.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
