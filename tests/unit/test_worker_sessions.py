"""The request that a worker passes on to the worker of its MCP session."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.types import Message, Receive

from gateway.features.fleet.serve_workers.worker_sessions import (
    WorkerSessionMiddleware,
    _DisconnectedError,
    _read_body,
)


async def test_pieces_are_passed_on_as_they_arrive_and_half_a_body_is_no_body() -> None:
    waiting: list[Message] = [
        {"type": "http.request", "body": b"one", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return waiting.pop(0)

    pieces = _read_body(receive)
    assert await anext(pieces) == b"one"
    assert len(waiting) == 1, "the rest is not read before the first piece is taken"
    with pytest.raises(_DisconnectedError):
        await anext(pieces)


async def test_any_number_of_streams_is_passed_on_at_once() -> None:
    """Each lasts as long as its client wants."""
    streams, opened, closing = 130, 0, asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        await writer.drain()
        opened += 1
        await closing.wait()
        writer.close()

    def make_receive() -> Receive:
        messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Message:
            if not messages:
                await closing.wait()
            return messages.pop() if messages else {"type": "http.disconnect"}

        return receive

    async def drop(_: Message) -> None:
        """Takes what is sent."""

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    worker = SimpleNamespace(index=0, forwarding=(0, 0), find_port=lambda _: port)
    middleware = WorkerSessionMiddleware(cast("Any", None), cast("Any", worker))
    scope = {
        "type": "http", "method": "GET", "path": "/mcp", "query_string": b"", "headers": [(b"mcp-session-id", b"x-w1")],
    }  # fmt: skip
    async with server, asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(streams):
            group.create_task(middleware(scope, make_receive(), drop))
        while opened < streams:  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.01)
        closing.set()
    await middleware._client.aclose()
