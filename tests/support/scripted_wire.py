"""How the scripted server's answers go out onto the wire, well or broken."""

import asyncio
import json
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

from tests.support.script import Reply
from tests.support.scripted_client import STATUS

CUT_SHORT = ("half_stream", "stall", "reset_stream")
"""Faults in the middle of an answer: half of the text is all that comes."""
HUGE = 10_000_000
"""The length of the line that no client should swallow, in bytes."""


def refusal(request: web.Request, reply: Reply) -> web.Response | None:
    """The answer of a fault that leaves no completion, not even half of one; None where one begins."""
    if reply.fault in STATUS:
        status, message = STATUS[reply.fault]
        headers = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
        return web.json_response({"error": {"message": message}}, status=status, headers=headers)
    match reply.fault:
        case "garbage":
            return web.Response(text="<html>it works</html>", content_type="text/html")
        case "empty":
            return web.json_response({"id": "x", "choices": []})
        case "nothing":
            return web.Response(content_type="application/json")
        case "reset":
            reset(request)
        case "disconnect" if request.transport is not None:
            request.transport.close()
    return None


def reset(request: web.Request) -> None:
    """End the connection as a crashed peer does: with RST instead of FIN."""
    assert request.transport is not None
    connection = request.transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def send_stream(request: web.Request, frames: Sequence[dict[str, Any]], reply: Reply) -> web.StreamResponse:
    """The frames as server-sent events."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for number, frame in enumerate(frames):
        for piece in _pieces(_event(frame, reply, broken=number == 2), reply):
            await response.write(piece)
            if reply.pause_s and (reply.fault == "drip" or _text_of(frame)):
                await asyncio.sleep(reply.pause_s)
            elif reply.fault == "split":
                await asyncio.sleep(0.001)  # so that the pieces arrive one by one
    await _break_off(request, reply)
    if reply.fault != "half_stream":
        await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def send_whole(request: web.Request, body: dict[str, Any], reply: Reply) -> web.StreamResponse:
    """The completion in one body."""
    if reply.fault == "huge_line":
        body["choices"][0]["message"]["content"] = "x" * HUGE
    data = json.dumps(body, ensure_ascii=reply.fault != "split").encode()
    if reply.fault == "garbage_json":
        data = data[: len(data) // 2]
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(data))})
    await response.prepare(request)
    cut = reply.fault in CUT_SHORT
    for piece in _pieces(data[: len(data) // 2] if cut else data, reply):
        await response.write(piece)
        if reply.fault in ("drip", "split"):
            await asyncio.sleep(reply.pause_s or 0.001)
    await _break_off(request, reply)
    if cut and request.transport is not None:  # less than was promised
        request.transport.close()
    else:
        await response.write_eof()
    return response


async def _break_off(request: web.Request, reply: Reply) -> None:
    if reply.fault == "stall":
        await asyncio.Event().wait()
    if reply.fault == "reset_stream":
        await asyncio.sleep(0.05)  # what was sent arrives before the reset, which would discard it
        reset(request)


def _event(frame: dict[str, Any], reply: Reply, *, broken: bool) -> bytes:
    if reply.fault == "huge_line" and broken:
        frame = {**frame, "padding": "x" * HUGE}
    data = json.dumps(frame, ensure_ascii=reply.fault != "split").encode()
    if reply.fault == "garbage_json" and broken:
        data = data[: len(data) // 2]
    return b"data: " + data + b"\n\n"


def _pieces(data: bytes, reply: Reply) -> Iterator[bytes]:
    """What is written at a time."""
    match reply.fault:
        case "drip":
            yield from (data[at : at + 1] for at in range(len(data)))
        case "twice":
            yield from (data, data)
        case "split":
            start = 0
            for at in range(1, len(data)):
                if data[at] & 0xC0 == 0x80:  # the second byte of a character, or a later one
                    yield data[start:at]
                    start = at
            yield data[start:]
        case _:
            yield data


def _text_of(frame: dict[str, Any]) -> bool:
    return bool(frame["choices"] and frame["choices"][0]["delta"].get("content"))
