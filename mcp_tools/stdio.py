"""Somebody else's MCP server as a child process, spoken to by lines on its standard input and output.

The SDK's transport trusts the process: it logs a traceback for each line that is no message, joins a line without an
end for ever, gives it our standard error, and waits without a limit for its end when it is cancelled twice. A server
that floods, on whichever file, would fill the disk or keep the gateway busy. This one bounds all of that.
"""

import asyncio
import logging
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from agent.core.children import close_pipes, has_ended, signal_group
from agent.core.errors import ToolError
from mcp_tools.mcp_config import McpServerConfig
from mcp_tools.sanitize import escaped

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 64 * 1024 * 1024
"""Bytes of one message; a server that sends more is cut off."""
LINES_A_SECOND = 1000
"""Taken from standard output; a server that writes more waits."""
STDERR_BYTES_A_SECOND = 1024 * 1024
"""Taken from standard error; a server that writes more waits."""
LOGGED_A_MINUTE = 20
"""Lines of standard error that reach our log; the others are counted."""
GRACE_S = 2.0
"""How long a server may take to end once its input is closed, and again once it was told to."""
_CHUNK = 64 * 1024
_SHOWN = 300


@asynccontextmanager
async def stdio(
    name: str, config: McpServerConfig, ended: Callable[[], None] = lambda: None
) -> AsyncIterator[TransportStreams]:
    """Start the server `name` and connect to it; it and what it has started end with the connection. `ended` is called
    when no more can come from it: the SDK tells nobody until the next request fails.

    Raises `ToolError`: naming the program that cannot be started, with its last words when it has ended by itself, or
    saying why it was cut off."""
    process = await _started(name, config)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    words = _LastWords(name)
    tasks = (
        asyncio.create_task(_read(name, process, to_session)),
        asyncio.create_task(_write(process, from_session, to_session)),
        asyncio.create_task(words.hear(process)),
    )
    tasks[0].add_done_callback(lambda _: ended())
    try:
        yield from_server, to_server
    except Exception as error:
        if await has_ended(process, 0.1):  # by itself: nobody has told it to
            raise ToolError(f"its process ended with {_code(process)}{words.told}", agent_id=name) from error
        if tasks[0].done() and tasks[0].result():
            raise ToolError(tasks[0].result(), agent_id=name) from error
        raise
    finally:
        from_server.close()
        to_server.close()
        try:
            await _end(process, tasks[1])
        finally:  # also where the wait was cancelled: nothing is left behind
            signal_group(process, signal.SIGKILL)
            for task in tasks:
                task.cancel()
            close_pipes(process)


async def _started(name: str, config: McpServerConfig) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            config.command, *config.args,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(config.env), cwd=config.cwd, limit=_CHUNK,
            start_new_session=True,  # a group of its own: what it starts can be ended with it
        )  # fmt: skip
    except FileNotFoundError as error:
        told = f"there is no program {config.command!r}; install it, or write its full path as `command`"
        if config.cwd is not None and error.filename == config.cwd:
            told = f"there is no folder {config.cwd!r}; correct its `cwd`"
        raise ToolError(told, agent_id=name) from error
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise ToolError(f"the program {config.command!r} cannot be started: {error}", agent_id=name) from error


async def _read(
    name: str, process: asyncio.subprocess.Process, to_session: MemoryObjectSendStream[SessionMessage | Exception]
) -> str:
    """Hand messages over as they come, junk left out, until standard output ends; why it was cut off, if it was."""
    since, lines, junk = monotonic(), 0, False
    async with to_session:
        async for line in _lines(process):
            if len(line) > LONGEST_MESSAGE:
                return f"it sent a message of more than {LONGEST_MESSAGE // 1024**2} MB, and was cut off"
            lines += 1
            if lines % 100 == 0:  # often enough to be even, seldom enough to cost nothing
                await asyncio.sleep(max(0, since + 100 / LINES_A_SECOND - monotonic()))
                since = monotonic()
            if not line.strip():
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                if not junk:
                    log.warning("MCP server %r writes what is no message to its output: %s", name, _plain(line))
                junk = True
                continue
            try:
                await to_session.send(SessionMessage(message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return ""  # the connection is over
    return ""


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    """What it writes, line by line; a line that is too long as far as it has come, as the last one."""
    assert process.stdout is not None
    begun = bytearray()
    while chunk := await process.stdout.read(_CHUNK):
        head, *rest = chunk.split(b"\n")
        begun += head
        if rest or len(begun) > LONGEST_MESSAGE:
            yield bytes(begun)
            for line in rest[:-1]:
                yield line
            begun = bytearray(rest[-1] if rest else b"")


async def _write(
    process: asyncio.subprocess.Process,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with from_session:
            async for message in from_session:
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(data.encode() + b"\n")
                await process.stdin.drain()
            return
    to_session.close()  # it does not listen any more: else a request would wait for its time limit


class _LastWords:
    """What a server says on standard error: some of it to our log, the last of it for whoever asks why it ended."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last: deque[str] = deque(maxlen=3)

    @property
    def told(self) -> str:
        """The last lines, in one; empty when it said nothing."""
        return f"; it said: {' / '.join(self._last)}" if self._last else ""

    async def hear(self, process: asyncio.subprocess.Process) -> None:
        """Read until its end."""
        assert process.stderr is not None
        minute, logged, left = monotonic(), 0, 0
        while chunk := await process.stderr.read(_CHUNK):
            if monotonic() - minute > 60:
                if left:
                    log.info("MCP server %r wrote %d more lines to standard error", self._name, left)
                minute, logged, left = monotonic(), 0, 0
            lines = [line for line in chunk.splitlines() if line.strip()]
            for line in lines[: LOGGED_A_MINUTE - logged]:
                log.info("MCP server %r: %s", self._name, _plain(line))
            self._last.extend(_plain(line) for line in lines[-3:])
            taken = min(len(lines), LOGGED_A_MINUTE - logged)
            logged, left = logged + taken, left + len(lines) - taken
            await asyncio.sleep(len(chunk) / STDERR_BYTES_A_SECOND)


def _plain(line: bytes) -> str:
    return escaped(line[:_SHOWN].decode(errors="replace").strip())


async def _end(process: asyncio.subprocess.Process, writing: "asyncio.Task[None]") -> None:
    """Close its input once what was said is written, and give it time to end, as the specification has it."""
    assert process.stdin is not None
    await asyncio.wait([writing], timeout=0.5)
    process.stdin.close()
    if not await has_ended(process, GRACE_S):
        signal_group(process, signal.SIGTERM)
        await has_ended(process, GRACE_S)


def _code(process: asyncio.subprocess.Process) -> str:
    code = process.returncode
    assert code is not None
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
