"""The limit on bodies, message by message: what a server may hand over, and in which order."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from agent.core.models import Budgets
from agent.core.settings import Settings
from agent.storage.api_keys import KeyLimits
from gateway.access.http_limits import BodyLimitMiddleware, HeaderLimitMiddleware
from gateway.limits_reference_page import ANSWERS, REQUESTS, RUNS

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


NO_LIMITS = {
    "port", "tool_retry_backoff_s", "stream_coalesce_ms", "lease_seconds", "drain_seconds", "embedder_timeout_s",
    "conversation_message_seconds", "conversation_archive_days", "serve_workers", "keep_days", "queue_adopt_seconds",
    "worker_port", "queue_slots", "model_context", "keep_prompts",
}  # fmt: skip
"""Numbers among the settings that bound nothing a caller asks for."""


def test_the_page_of_limits_leaves_none_out() -> None:
    told = {(bound.of, bound.field) for bound in (*REQUESTS, *ANSWERS, *RUNS)}
    numbers = {name for name, field in Settings.model_fields.items() if field.annotation in (int, float, int | None)}
    assert {field for of, field in told if of is Settings} == numbers - NO_LIMITS
    assert {field for of, field in told if of is Budgets} == set(Budgets.model_fields)
    assert {field for of, field in told if of is KeyLimits} == set(KeyLimits.model_fields)


async def test_a_body_that_stops_coming_is_refused_and_one_that_flows_is_not() -> None:
    """0.05 s, and 0.1 ms more for every byte that came."""
    pieces = 8

    async def trickle(size: int) -> list[Message]:
        sent: list[Message] = []
        left = [part(b"x" * size, more=number < pieces - 1) for number in range(pieces)]

        async def receive() -> Message:
            if len(left) < pieces:  # the first comes at once: a busy machine must not be taken for a slow client
                await asyncio.sleep(0.02)
            return left.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {"type": "http", "method": "POST", "path": "/v1/agent", "headers": []}
        await BodyLimitMiddleware(echo, 1_000_000, seconds=0.05)(scope, receive, send)
        return sent

    assert status(await trickle(1)) == 408
    assert status(await trickle(10_000)) == 200


async def test_an_app_that_answers_already_sees_its_client_go_when_the_body_does_not_end() -> None:
    seen: list[str] = []

    async def early(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        seen.append((await receive())["type"])
        await send({"type": "http.response.body", "body": b"x"})

    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "GET", "path": "/v1/runs/x/events", "headers": []}
    await BodyLimitMiddleware(early, LIMIT, seconds=0.02)(scope, receive, send)
    assert seen == ["http.disconnect"]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


@pytest.mark.parametrize("size", [100, 100_000])
async def test_headers_over_the_limit_never_reach_the_app(size: int) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return part(b"")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"x-long", b"x" * size)]
    scope: Scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    await HeaderLimitMiddleware(echo, 1_000)(scope, receive, send)
    assert status(sent) == (200 if size < 1_000 else 431)
