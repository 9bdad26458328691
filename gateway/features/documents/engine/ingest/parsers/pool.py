"""`ParserPool`: reads files in worker processes, so that a file can hang, crash or fill memory and only that file
fails.

Workers start on first use, are reused, and are killed as soon as they may be broken.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import agent
from agent.core.errors import BusyError
from agent.core.subprocesses import close_pipes, signal_group, wait_for_exit
from gateway.features.documents.engine.ingest.coverage import NATIVE_MEASURES
from gateway.features.documents.engine.ingest.errors import (
    ParserCorruptError,
    ParserError,
    ParserTimeoutError,
    ParserTooLargeError,
    build_parser_error,
)
from gateway.features.documents.engine.ingest.parsers.limits import ParserLimits
from gateway.features.documents.engine.ingest.parsers.registry import READERS
from gateway.features.documents.engine.ingest.parsers.worker_protocol import Request, WorkerReply
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput

WORKER: Sequence[str] = (sys.executable, "-m", "gateway.features.documents.engine.ingest.parsers.worker")
"""The command of a worker; its limits follow as JSON."""

_START_SECONDS = 60
"""Importing the parsers takes 1 s. A machine that needs longer than this is not usable."""

_END_SECONDS = 10
"""How long a killed worker may take to end; it may have half a gigabyte to release."""

_LOOK_SECONDS = 0.05
"""How often a worker's memory is checked. A compressed stream unfolds at a gigabyte per second or two."""

_FILES_A_WORKER = 200
"""Files after which a worker is replaced, because native parsers leak memory."""

_ENVIRONMENT_NAMES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "TMPDIR", "SYSTEMROOT")
"""Environment variables of a worker. Keys and passwords stay outside."""

_DIED = "parser died"

_THREADS = {"RAYON_NUM_THREADS": "1", "TOKIO_WORKER_THREADS": "1", "OMP_THREAD_LIMIT": "1", "MALLOC_ARENA_MAX": "2"}
"""A worker is one of several, and each thread's arena would count against its memory."""


class ParserPool:
    """A few worker processes that read files.

    Cancelling `parse` kills the worker that is reading. After `aclose` every call raises `BusyError`.
    """

    def __init__(self, limits: ParserLimits | None = None, *, processes: int = 2) -> None:
        self._limits = limits or ParserLimits()
        self._places = asyncio.Semaphore(processes)
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._closed = False

    async def parse(
        self,
        wanted: ParserInput,
        *,
        parser: str | None = None,
        password: str | None = None,
        is_measured: bool = True,
    ) -> ParserOutput:
        """Reads a file by the best reader of its type or by the named one. `password` opens a protected PDF;
        `is_measured`: whether its coverage is measured.

        Raises the narrowest `ParserError`.
        """
        request = Request(input=wanted, parser=parser, password=password, is_measured=is_measured)
        try:
            return await self._read(request)
        except ParserCorruptError as error:
            is_measure = is_measured and wanted.file_type in NATIVE_MEASURES
            if error.details.get("reason") != _DIED or not is_measure:
                raise
            try:  # it may be the measure that died
                return await self._read(request.model_copy(update={"is_measured": False}))
            except ParserError:
                raise error from None

    async def _read(self, request: Request) -> ParserOutput:
        async with self._places:
            worker = await self._acquire_worker()
            try:
                reply = await worker.request(request)
            except BaseException as error:  # cancellation too: the worker is in the middle of a file
                await self._discard(worker)
                if isinstance(error, ParserError):
                    self._check_open()
                raise
            await self._release_worker(worker, reply)
        if reply.output is None:
            raise _reply_error(reply)
        return reply.output

    async def aclose(self) -> None:
        """Kills every worker, also busy ones; their callers get `BusyError`."""
        self._closed = True
        self._idle.clear()
        for worker in list(self._workers):
            await self._discard(worker)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _acquire_worker(self) -> "_Worker":
        self._check_open()
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await self._discard(worker)
        worker = await _Worker.start(self._limits)
        self._workers.add(worker)
        try:
            self._check_open()  # while it started
        except BusyError:
            await self._discard(worker)
            raise
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise BusyError("the parsers are closed", agent_id="parser")

    async def _release_worker(self, worker: "_Worker", reply: WorkerReply) -> None:
        is_full = reply.problem is not None and reply.problem.details.get("reason") == "memory"
        if self._closed or is_full or worker.files >= _FILES_A_WORKER:
            await self._discard(worker)
        else:
            self._idle.append(worker)

    async def _discard(self, worker: "_Worker") -> None:
        self._workers.discard(worker)
        await worker.kill()


class _Worker:
    """One process and its two pipes."""

    def __init__(self, process: Process, limits: ParserLimits) -> None:
        self._process = process
        self._limits = limits
        self._baseline_bytes = 0
        self._exceeded_memory = False
        self.files = 0

    @classmethod
    async def start(cls, limits: ParserLimits) -> Self:
        """Starts a worker and waits until it is ready. Raises `ParserTimeoutError` if that takes too long."""
        process = await asyncio.create_subprocess_exec(
            *WORKER,
            limits.model_dump_json(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,  # a parser's words may hold a document's words
            limit=limits.output_bytes,
            env=_build_environment(os.environ),
            start_new_session=True,  # so that its children (tesseract) die with it
        )
        worker = cls(process, limits)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await worker._read_reply()
        except TimeoutError as error:
            await worker.kill()
            message = f"the machine took longer than {_START_SECONDS} s to start a parser; try again later"
            raise ParserTimeoutError(message, timeout_s=_START_SECONDS, reason="start") from error
        except BaseException:
            await worker.kill()
            raise
        worker._baseline_bytes = _read_resident_bytes(process.pid)
        return worker

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def request(self, request: Request) -> WorkerReply:
        """Sends one request. Raises `ParserTimeoutError`, or `ParserCorruptError` if the worker dies."""
        self.files += 1
        name = Path(request.input.file_path).name
        watch = asyncio.create_task(self._watch_memory())
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                return await self._send_and_receive(request)
        except TimeoutError as error:
            message = f"{name} took longer than {self._limits.timeout_s:g} s to read"
            raise ParserTimeoutError(message, timeout_s=self._limits.timeout_s) from error
        except (EOFError, ConnectionError) as error:
            raise await self._make_death_error(name) from error
        except ValueError as error:
            message = f"the text of {name} has more than {self._limits.output_bytes} bytes"
            raise ParserTooLargeError(message, bytes=self._limits.output_bytes) from error
        finally:
            watch.cancel()

    async def kill(self) -> None:
        """Ends the process and its children at once."""
        signal_group(self._process, signal.SIGKILL)
        try:
            await wait_for_exit(self._process, _END_SECONDS)
        finally:
            close_pipes(self._process)

    async def _send_and_receive(self, request: Request) -> WorkerReply:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(request.model_dump_json().encode() + b"\n")
        await stdin.drain()
        return await self._read_reply()

    async def _watch_memory(self) -> None:
        """Ends a worker that fills more memory than allowed.

        The limit on address space does not suffice: the PDF engine reserves a gigabyte that a file can then fill.
        """
        most = self._baseline_bytes + self._limits.memory_bytes
        while _read_resident_bytes(self._process.pid) <= most:  # noqa: ASYNC110 - nobody tells of a process that grows
            await asyncio.sleep(_LOOK_SECONDS)
        self._exceeded_memory = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.kill()

    async def _read_reply(self) -> WorkerReply:
        stdout = self._process.stdout
        assert stdout is not None
        line = await stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return WorkerReply.model_validate_json(line)

    async def _make_death_error(self, name: str) -> ParserCorruptError:
        await wait_for_exit(self._process, 1)
        if self._exceeded_memory:
            message = f"reading {name} needs more than {self._limits.memory_bytes // 2**20} MB of memory"
            return ParserCorruptError(message, reason="memory")
        code = self._process.returncode
        how = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        message = f"the parser crashed while it read {name} ({how}): too much memory, or a bug in the parser"
        return ParserCorruptError(message, reason=_DIED, signal=how)


def _read_resident_bytes(pid: int) -> int:
    """The resident bytes of a process (proc_pid_statm(5)); 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _reply_error(reply: WorkerReply) -> ParserError:
    assert reply.problem is not None
    return build_parser_error(reply.problem.code, reply.problem.message, reply.problem.details)


def _build_environment(own: Mapping[str, str]) -> dict[str, str]:
    folders = dict.fromkeys((str(Path(agent.__path__[0]).parent), *(one.folder for one in READERS if one.folder)))
    return (
        {name: own[name] for name in _ENVIRONMENT_NAMES if name in own}
        | _THREADS
        | {"PYTHONPATH": os.pathsep.join(folders), "HOME": "/nonexistent"}
    )
