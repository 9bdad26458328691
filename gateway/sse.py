"""Server-sent events: frames as they come, a heartbeat in silence, an end that ends nothing but the stream."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agent.core.errors import AgentError, AgentFailure
from gateway.awaited import Awaited

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
"""Proxies close connections that are silent for 30 to 60 seconds."""
HEARTBEAT = ": keep-alive\n\n"
_LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
"""Legal inside JSON, yet line ends to clients that split by Unicode's rules: they would tear a frame in two."""


def frame(data: str, *, event: str | None = None, event_id: int | None = None) -> str:
    """One frame. `data` is one line of JSON."""
    head = f"event: {event}\n" if event else ""
    head += f"id: {event_id}\n" if event_id is not None else ""
    if not data.isascii():
        data = data.translate(_LINE_BREAKS)
    return f"{head}data: {data}\n\n"


class EventStream:
    """A stream that a request may be answered by. `place` is one among its caller's open streams, for as long as it is
    held; it raises `RateLimitError` where there is none."""

    def __init__(
        self, place: Callable[[], AbstractContextManager[None]], heartbeat_s: float = HEARTBEAT_SECONDS
    ) -> None:
        self._place = place
        self._heartbeat_s = heartbeat_s
        self._held = contextlib.ExitStack()

    @contextlib.contextmanager
    def taken(self, wanted: bool | None = True) -> Iterator[None]:
        """Take a place, where one is `wanted`, before anything is begun that the stream is to tell of. It is free again
        once the `response` made within the block is over, or with the block, where none was made."""
        with self._held:
            if wanted:
                self._held.enter_context(self._place())
            yield

    def response(
        self,
        frames: AsyncGenerator[str, None],
        failed: Callable[[AgentFailure], str],
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The response that streams `frames`. A client that hangs up ends the iteration, not the run behind it. What
        fails on the way, when no status can tell it any more, ends the stream with the frame that `failed` makes."""
        streamed = _Streamed(
            with_heartbeat(_to_its_end(frames, failed), self._heartbeat_s),
            self._held.pop_all(),
            media_type="text/event-stream",
            headers={"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})},
        )

        async def made(_: Request) -> Response:
            return streamed

        return Awaited(made)


class _Streamed(StreamingResponse):
    """Closes what it streams, and leaves its place. Starlette leaves an iteration it breaks off to the garbage
    collector, and with it whatever the iteration holds."""

    def __init__(
        self, content: AsyncGenerator[str, None], place: AbstractContextManager[object], **options: Any
    ) -> None:
        super().__init__(content, **options)
        self._content = content
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._content.aclose()


async def _to_its_end(
    frames: AsyncGenerator[str, None], failed: Callable[[AgentFailure], str]
) -> AsyncGenerator[str, None]:
    try:
        async with contextlib.aclosing(frames):
            async for text in frames:
                yield text
    except AgentError as error:
        yield failed(error.failure())
    except Exception:
        log.exception("a stream failed")
        yield failed(AgentError("a defect of Stepgate ended this stream; the log has the details").failure())


async def with_heartbeat(
    frames: AsyncGenerator[str, None], every: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[str, None]:
    """The frames, and a comment whenever none came for `every` seconds."""
    following = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=every)
            if not done:
                yield HEARTBEAT
                continue
            text = following.result()
            if text is None:
                return
            yield text
            following = asyncio.ensure_future(anext(frames, None))
    finally:
        if following.done():
            await frames.aclose()
        else:  # it unwinds in a task of its own
            following.cancel()
