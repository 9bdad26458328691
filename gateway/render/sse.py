"""Server-sent events: frames, heartbeats during silence, and an end that does not end the run."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agent.core.errors import AgentError
from agent.core.failures import AgentFailure
from gateway.render.deferred_response import DeferredResponse

T = TypeVar("T")

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
"""Proxies close connections after 30 to 60 seconds of silence."""
HEARTBEAT = ": keep-alive\n\n"
_LINE_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}
"""Valid inside JSON, but line ends for clients that split by Unicode's rules, which would break a frame in two."""


def format_frame(data: str, *, event: str | None = None, event_id: int | None = None) -> str:
    """Formats one frame. `data` is one line of JSON."""
    head = f"event: {event}\n" if event else ""
    head += f"id: {event_id}\n" if event_id is not None else ""
    if not data.isascii():
        data = data.translate(_LINE_BREAKS)
    return f"{head}data: {data}\n\n"


class Watch(Protocol):
    """What ends a stream from outside."""

    def follow(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yields the items. Raises `AgentError` to end the stream."""


class EventStream:
    """A stream that may answer a request.

    `open_slot` holds one of the caller's stream slots while entered, and may give a watch that ends the stream; it
    raises `RateLimitError` if no slot is free.
    """

    def __init__(
        self, open_slot: Callable[[], AbstractContextManager[Watch | None]], heartbeat_s: float = HEARTBEAT_SECONDS
    ) -> None:
        self._open_slot = open_slot
        self._heartbeat_s = heartbeat_s
        self._held = contextlib.ExitStack()
        self._watch: Watch | None = None

    @contextlib.contextmanager
    def hold_slot(self, wanted: bool | None = True) -> Iterator[None]:
        """Takes a stream slot, if `wanted`, before anything is started that the stream reports.

        The slot is released when the `build_response` made within the block ends, or with the block if none was made.
        """
        with self._held:
            if wanted:
                self._watch = self._held.enter_context(self._open_slot())
            yield

    def build_response(
        self,
        frames: AsyncGenerator[str, None],
        failed: Callable[[AgentFailure], str],
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The response that streams `frames`. A client that disconnects ends the iteration, not the run behind
        it.

        An error after the status has been sent ends the stream with the frame that `failed` makes.
        """
        watched = frames if self._watch is None else self._watch.follow(frames)
        streamed = _ClosingStreamResponse(
            add_heartbeat(_end_with_error_frame(watched, failed), self._heartbeat_s),
            self._held.pop_all(),
            media_type="text/event-stream",
            headers={"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})},
        )

        async def made(_: Request) -> Response:
            return streamed

        return DeferredResponse(made)


class _ClosingStreamResponse(StreamingResponse):
    """Closes its generator and releases its slot. Starlette leaves an interrupted generator to the garbage
    collector.
    """

    def __init__(
        self, content: AsyncGenerator[str, None], slot: AbstractContextManager[object], **options: Any
    ) -> None:
        super().__init__(content, **options)
        self._content = content
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._content.aclose()


async def _end_with_error_frame(
    frames: AsyncGenerator[str, None], failed: Callable[[AgentFailure], str]
) -> AsyncGenerator[str, None]:
    try:
        async with contextlib.aclosing(frames):
            async for text in frames:
                yield text
    except AgentError as error:
        yield failed(error.to_failure())
    except Exception:
        log.exception("a stream failed")
        yield failed(AgentError("an internal error ended this stream; the gateway's log has the details").to_failure())


async def add_heartbeat(
    frames: AsyncGenerator[str, None], every: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[str, None]:
    """Yields the frames, and a comment whenever none came for `every` seconds."""
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
        else:  # the cancelled task closes the generator
            following.cancel()
