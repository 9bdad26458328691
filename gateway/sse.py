"""Server-sent events: frames as they come, a heartbeat in silence, an end that ends nothing but the stream."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

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


def sse_response(frames: AsyncIterator[str], headers: dict[str, str] | None = None) -> StreamingResponse:
    """The response that streams `frames`. A client that hangs up ends the iteration, not the run behind it."""
    return StreamingResponse(
        with_heartbeat(frames),
        media_type="text/event-stream",
        headers={"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})},
    )


async def with_heartbeat(frames: AsyncIterator[str], every: float = HEARTBEAT_SECONDS) -> AsyncIterator[str]:
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
        following.cancel()
