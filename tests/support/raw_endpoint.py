"""A model endpoint that answers every completion with bytes of the test's choice, at the times of the test's choice."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import Any

DEADLINE_S = 30
"""How long a test may take with the endpoint, in seconds."""

Part = bytes | float
"""Bytes to send, or seconds to wait."""


@dataclass
class RawEndpoint:
    """The endpoint. `parts` answers streamed calls, `whole` the others; None answers those as `parts` too.

    With `endless`, the last part is repeated until the client hangs up.
    """

    parts: Sequence[Part] = ()
    whole: bytes | None = None
    content_type: str = "text/event-stream"
    endless: bool = False
    pause_s: float = 0.001
    """Seconds after each part, so that the parts arrive one by one."""
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client closed a connection on which bytes were still being sent."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request and closes the connection."""
        # Closed also when the test has ended: an open connection would warn in whichever test comes next.
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            body = json.loads(await reader.readexactly(length)) if length else {}
            self.bodies.append(body)
            is_whole = not body.get("stream") and self.whole is not None
            kind = "application/json" if is_whole else self.content_type
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
            await self._send(writer, [self.whole or b""] if is_whole else self.parts)

    async def _send(self, writer: asyncio.StreamWriter, parts: Sequence[Part]) -> None:
        try:
            for part in parts:
                await self._send_part(writer, part)
            while self.endless and parts:
                await self._send_part(writer, parts[-1])
        except ConnectionError:
            self.hung_up.set()
            raise

    async def _send_part(self, writer: asyncio.StreamWriter, part: Part) -> None:
        if isinstance(part, bytes):
            writer.write(part)
            await writer.drain()
        await asyncio.sleep(part if isinstance(part, float) else self.pause_s)


@asynccontextmanager
async def raw_endpoint(*parts: Part, **options: Any) -> AsyncIterator[RawEndpoint]:
    """The endpoint on a port of its own, for the time of the block."""
    endpoint = RawEndpoint(parts, **options)
    async with asyncio.timeout(DEADLINE_S), await asyncio.start_server(endpoint.serve, "127.0.0.1", 0) as server:
        endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield endpoint


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a streamed completion as a server-sent event."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
    event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"


def say(text: str, **more: Any) -> bytes:
    """A chunk with a piece of text."""
    return chunk({"content": text}, **more)


STOP = chunk({}, "stop")
DONE = b"data: [DONE]\n\n"
