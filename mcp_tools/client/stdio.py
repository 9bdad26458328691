"""An external MCP server as a child process that speaks JSON lines on standard input and output.

The SDK's transport trusts the process: it logs a traceback for each invalid line, buffers a line without an end
forever, passes on our standard error, and waits without a limit when it is cancelled twice. A server that writes too
much would fill the disk or keep the gateway busy. This transport limits all of that.
"""

import asyncio
import logging
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from agent.core.errors import ToolError
from agent.core.subprocesses import close_pipes, signal_group, wait_for_exit
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.lenient_messages import IndentedMessages, parse_line
from mcp_tools.client.sanitize import escape_invisible

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""The longest message; a server that sends a longer one is stopped."""
LINES_PER_SECOND = 1000
"""Lines read from standard output; a server that writes more has to wait."""
STDERR_BYTES_PER_SECOND = 1024 * 1024
"""Bytes read from standard error; a server that writes more has to wait."""
LOGGED_LINES_PER_MINUTE = 20
"""Lines of standard error that are logged; the others are counted."""
SHUTDOWN_GRACE_S = 2.0
"""How long a server may take to end after its input is closed, and again after SIGTERM."""
_CHUNK = 64 * 1024
_MAX_LINE_BYTES = 300


def _read_no_secrets(_: McpServerConfig) -> Mapping[str, str]:
    return {}


@asynccontextmanager
async def open_stdio_transport(
    name: str,
    config: McpServerConfig,
    ended: Callable[[], None] = lambda: None,
    read_secret_env: Callable[[McpServerConfig], Mapping[str, str]] = _read_no_secrets,
    is_revoked: Callable[[], bool] = lambda: False,
) -> AsyncIterator[TransportStreams]:
    """Starts the server `name` and connects to it. Ends the process and its children with the connection.

    `ended` is called when the process can send nothing more: the SDK notices only at the next request.
    `read_secret_env` returns environment variables with secrets; it may block. Once `is_revoked` returns True, nothing
    more is written to the process. Raises `ToolError` if the program cannot be started, has ended by itself (with its
    last lines), or was stopped (with the reason).
    """
    process = await _start_process(name, config, await asyncio.to_thread(read_secret_env, config))
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    stderr = _StderrReader(name)
    tasks = (
        asyncio.create_task(_read_messages(name, process, to_session)),
        asyncio.create_task(_write_messages(process, from_session, to_session, is_revoked)),
        asyncio.create_task(stderr.read_until_end(process)),
    )
    tasks[0].add_done_callback(lambda _: ended())
    try:
        yield from_server, to_server
    except Exception as error:
        if await wait_for_exit(process, 0.1):  # it ended by itself
            raise ToolError(
                f"its process ended with {_describe_exit(process)}{stderr.last_lines}", agent_id=name
            ) from error
        if tasks[0].done() and tasks[0].result():
            raise ToolError(tasks[0].result(), agent_id=name) from error
        raise
    finally:
        from_server.close()
        to_server.close()
        try:
            await _stop_process(process, tasks[1])
        finally:  # also if the wait is cancelled, so that no process is left
            signal_group(process, signal.SIGKILL)
            for task in tasks:
                task.cancel()
            close_pipes(process)


async def _start_process(
    name: str, config: McpServerConfig, secret_env: Mapping[str, str]
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            config.command, *config.args,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(config.env) | dict(secret_env), cwd=config.cwd, limit=_CHUNK,
            start_new_session=True,  # its own process group, so that its children can be stopped with it
        )  # fmt: skip
    except FileNotFoundError as error:
        problem = f"there is no program {config.command!r}; install it, or set `command` to its full path"
        if config.cwd is not None and error.filename == config.cwd:
            problem = f"there is no folder {config.cwd!r}; correct its `cwd`"
        raise ToolError(problem, agent_id=name) from error
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise ToolError(f"the program {config.command!r} cannot be started: {error}", agent_id=name) from error


async def _read_messages(
    name: str, process: asyncio.subprocess.Process, to_session: MemoryObjectSendStream[SessionMessage | Exception]
) -> str:
    """Passes messages on until standard output ends, and skips invalid lines. Returns why the process was cut off,
    or ""."""
    started, lines, has_logged, indented = monotonic(), 0, False, IndentedMessages()
    async with to_session:
        async for line in _read_lines(process):
            if len(line) > MAX_MESSAGE_BYTES:
                return f"it was stopped because it sent a message of more than {MAX_MESSAGE_BYTES // 1024**2} MB"
            lines += 1
            if lines % 100 == 0:  # often enough for an even rate, rarely enough to cost nothing
                await asyncio.sleep(max(0, started + 100 / LINES_PER_SECOND - monotonic()))
                started = monotonic()
            if not line.strip():
                continue
            messages = parse_line(line) or indented.add_line(line)
            if messages is None:
                continue
            if not messages:
                if not has_logged:
                    log.warning("MCP server %r writes invalid messages to its output: %s", name, _escape_line(line))
                has_logged = True
                continue
            try:
                for message in messages:
                    await to_session.send(SessionMessage(message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return ""  # the connection is over
    return ""


async def _read_lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    """Yields the process's output line by line. A line that is too long is yielded incomplete, as the last one."""
    assert process.stdout is not None
    incomplete = bytearray()
    while chunk := await process.stdout.read(_CHUNK):
        head, *rest = chunk.split(b"\n")
        incomplete += head
        if rest or len(incomplete) > MAX_MESSAGE_BYTES:
            yield bytes(incomplete)
            for line in rest[:-1]:
                yield line
            incomplete = bytearray(rest[-1] if rest else b"")


async def _write_messages(
    process: asyncio.subprocess.Process,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    is_revoked: Callable[[], bool],
) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with from_session:
            async for message in from_session:
                if is_revoked():
                    return
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(data.encode() + b"\n")
                await process.stdin.drain()
            return
    to_session.close()  # the process no longer reads; otherwise the request would wait for its time limit


class _StderrReader:
    """Reads standard error: logs some lines, and keeps the last ones to explain why the process ended."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._recent: deque[str] = deque(maxlen=3)

    @property
    def last_lines(self) -> str:
        """The last lines as one text; empty if there were none."""
        return f"; its last output: {' / '.join(self._recent)}" if self._recent else ""

    async def read_until_end(self, process: asyncio.subprocess.Process) -> None:
        """Reads until the end of the stream."""
        assert process.stderr is not None
        minute, logged, skipped = monotonic(), 0, 0
        while chunk := await process.stderr.read(_CHUNK):
            if monotonic() - minute > 60:
                if skipped:
                    log.info("MCP server %r wrote %d more lines to standard error", self._name, skipped)
                minute, logged, skipped = monotonic(), 0, 0
            lines = [line for line in chunk.splitlines() if line.strip()]
            for line in lines[: LOGGED_LINES_PER_MINUTE - logged]:
                log.info("MCP server %r: %s", self._name, _escape_line(line))
            self._recent.extend(_escape_line(line) for line in lines[-3:])
            written = min(len(lines), LOGGED_LINES_PER_MINUTE - logged)
            logged, skipped = logged + written, skipped + len(lines) - written
            await asyncio.sleep(len(chunk) / STDERR_BYTES_PER_SECOND)


def _escape_line(line: bytes) -> str:
    return escape_invisible(line[:_MAX_LINE_BYTES].decode(errors="replace").strip())


async def _stop_process(process: asyncio.subprocess.Process, writing: "asyncio.Task[None]") -> None:
    """Closes standard input after the last message is written, and waits for the end as the specification says."""
    assert process.stdin is not None
    await asyncio.wait([writing], timeout=0.5)
    process.stdin.close()
    if not await wait_for_exit(process, SHUTDOWN_GRACE_S):
        signal_group(process, signal.SIGTERM)
        await wait_for_exit(process, SHUTDOWN_GRACE_S)


def _describe_exit(process: asyncio.subprocess.Process) -> str:
    code = process.returncode
    assert code is not None
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
