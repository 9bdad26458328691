"""The limit on bodies, message by message: what a server may hand over, and in which order."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from gateway.limits import BodyLimitMiddleware

LIMIT = 10
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the whole body and answers 200."""
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"taken"})


async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
    """Makes an answer of its own of a body that cannot be read, and then waits for its client to go."""
    for _ in range(5):
        try:
            await receive()
        except Exception:  # noqa: BLE001 - what frameworks do
            await send({"type": "http.response.start", "status": 400, "headers": []})


async def exchange(*messages: Message, app: App = echo, path: str = "/v1/agent") -> list[Message]:
    """What is sent in answer to these messages; after the last of them nothing ever comes."""
    left = list(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": []}
    async with asyncio.timeout(5):
        await BodyLimitMiddleware(app, LIMIT)(scope, receive, send)
    return sent


def status(sent: list[Message]) -> int | None:
    return next((message["status"] for message in sent if message["type"] == "http.response.start"), None)


async def test_a_body_of_just_the_limit_is_taken() -> None:
    assert status(await exchange(part(b"x" * 4, more=True), part(b"x" * 6))) == 200


@pytest.mark.parametrize(
    "messages",
    [
        [part(b"x" * 11)],
        [part(b"x" * 10, more=True), part(b"x")],
        [part(b"x" * 11, more=True), part(b"x" * 50, more=True), part(b"")],
    ],
    ids=["in one", "with its last part", "with more to come"],
)
@pytest.mark.parametrize("app", [echo, stubborn])
async def test_a_longer_body_is_refused_once_and_nothing_is_waited_for(messages: list[Message], app: App) -> None:
    sent = await exchange(*messages, app=app)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert status(sent) == 413
    assert "AGENT_MAX_BODY_BYTES" in json.loads(sent[1]["body"])["error"]["message"]


@pytest.mark.parametrize("app", [echo, stubborn])
async def test_a_client_that_goes_away_meanwhile_is_not_answered(app: App) -> None:
    assert await exchange(part(b"x" * 11, more=True), {"type": "http.disconnect"}, app=app) == []
