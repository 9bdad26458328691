"""The request that a worker passes on to the worker of its MCP session."""

import pytest
from starlette.types import Message

from gateway.features.fleet.serve_workers.worker_sessions import _DisconnectedError, _read_body


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
