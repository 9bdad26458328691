"""The transport budget: what is retried, how often, after how long."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agent.core.errors import (
    ModelAuthError,
    ModelDownError,
    ModelEndpointError,
    ModelError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from agent.llm.endpoint_origin import FROM_SETTINGS
from agent.llm.faults import extract_provider_message, parse_retry_after
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest
from agent.llm.retrying import RetryingClient
from tests.support.canned import Canned, CannedServer, canned_server

ASK = ModelRequest(model="m", messages=({"role": "user", "content": "x"},), purpose="planner", timeout_s=3)
GOOD = Canned(body=b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}')


class Waits:
    """Stands for sleeping; remembers how long."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
async def server() -> AsyncIterator[CannedServer]:
    async with canned_server() as running:
        yield running


@pytest.fixture
async def client(server: CannedServer, waits: Waits) -> AsyncIterator[RetryingClient]:
    opened = RetryingClient(HttpModelClient(server.url, origin=FROM_SETTINGS), sleep=waits)
    yield opened
    await opened.aclose()


@pytest.mark.row("S001-04")
async def test_two_503_and_then_an_answer(server: CannedServer, client: RetryingClient, waits: Waits) -> None:
    server.load(Canned(503), Canned(503), GOOD)
    reply = await client.complete(ASK)
    assert (reply.text, reply.requests, len(server.seen)) == ("ok", 3, 3)
    assert 0.2 < waits.seconds[0] <= 0.5 < waits.seconds[1] <= 1.0


@pytest.mark.row("S001-04")
async def test_a_refused_key_is_asked_once(server: CannedServer, client: RetryingClient, waits: Waits) -> None:
    server.load(Canned(401, b'{"error": {"message": "bad key", "code": "invalid_api_key"}}'))
    with pytest.raises(ModelAuthError, match=r"bad key \(invalid_api_key\).*AGENT_LLM_API_KEY"):
        await client.complete(ASK)
    assert len(server.seen) == 1
    assert waits.seconds == []


@pytest.mark.row("S000-45")
async def test_a_rate_limit_is_waited_for_as_told_and_asked_three_times_in_all(
    server: CannedServer, client: RetryingClient, waits: Waits
) -> None:
    limited = Canned(429, headers={"retry-after": "2"})
    server.load(limited, limited, limited, limited)
    with pytest.raises(ModelRateLimitError):
        await client.complete(ASK)
    assert len(server.seen) == 3
    assert waits.seconds == [2, 2]


async def test_an_endpoint_that_wants_an_hour_is_not_waited_for(
    server: CannedServer, client: RetryingClient, waits: Waits
) -> None:
    server.load(Canned(429, headers={"retry-after": "3600"}))
    with pytest.raises(ModelRateLimitError):
        await client.complete(ASK)
    assert waits.seconds == []


async def test_an_empty_account_is_asked_once(server: CannedServer, client: RetryingClient, waits: Waits) -> None:
    spent = b'{"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": null}}'
    server.load(Canned(429, spent))
    with pytest.raises(ModelEndpointError, match="You exceeded your current quota"):
        await client.complete(ASK)
    assert (len(server.seen), waits.seconds) == (1, [])


async def test_a_time_out_is_tried_once_more_with_twice_the_limit(server: CannedServer, client: RetryingClient) -> None:
    server.load(Canned(hangs=5), Canned(hangs=5))
    with pytest.raises(ModelTimeoutError, match=r"0\.2 s"):
        await client.complete(replace(ASK, timeout_s=0.1))
    assert len(server.seen) == 2


async def test_a_connection_that_is_lost_before_the_answer_is_tried_again(
    server: CannedServer, client: RetryingClient
) -> None:
    server.load(Canned(resets=True), GOOD)
    assert (await client.complete(ASK)).text == "ok"


async def test_another_address_is_not_followed(server: CannedServer, client: RetryingClient) -> None:
    server.load(Canned(307, headers={"location": f"{server.url}/elsewhere"}))
    with pytest.raises(ModelError, match="307"):
        await client.complete(ASK)
    assert len(server.seen) == 1


async def test_an_unreachable_endpoint_is_tried_three_times(waits: Waits) -> None:
    client = RetryingClient(HttpModelClient("http://127.0.0.1:9/v1"), sleep=waits)
    with pytest.raises(ModelDownError, match="connection refused"):
        await client.complete(ASK)
    assert len(waits.seconds) == 2
    await client.aclose()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"choices": []}', b'{"choices": [7]}'])
async def test_garbage_is_not_asked_for_again(server: CannedServer, client: RetryingClient, body: bytes) -> None:
    server.load(Canned(body=body))
    with pytest.raises(ModelError) as caught:
        await client.complete(ASK)
    assert caught.value.code == "ERR_MODEL_OUTPUT"
    assert len(server.seen) == 1


async def test_a_stream_is_retried_before_its_first_chunk_only(server: CannedServer, client: RetryingClient) -> None:
    half = b'data: {"choices": [{"delta": {"content": "ha"}}]}\n\n'
    server.load(Canned(503), Canned(body=half))
    seen: list[str] = []

    async def read() -> None:
        async for chunk in client.stream(ASK):
            seen.append(chunk.text)  # noqa: PERF401 - what came before the error is what is looked at

    with pytest.raises(ModelError):
        await read()
    assert seen == ["ha"]
    assert len(server.seen) == 2


async def test_an_error_inside_a_stream_is_raised(server: CannedServer, client: RetryingClient) -> None:
    body = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: {"error": {"message": "overloaded"}}\n\n'
    server.load(Canned(body=body))
    with pytest.raises(ModelDownError, match="overloaded"):
        [chunk async for chunk in client.stream(ASK)]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after-ms": "200", "retry-after": "12"}, 0.2),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_a_date_to_wait_for_is_read_too() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100))
    seconds = parse_retry_after({"retry-after": later})
    assert seconds is not None
    assert 90 < seconds <= 100


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no", "code": "c"}}', "no (c)"),
        (b'{"error": "no"}', "no"),
        (b'{"detail": "no"}', "no"),
        (b"plain\n text", "plain text"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 1000, "x" * 300 + "\u2026"),
    ],
)
def test_the_providers_own_words_are_told(body: bytes, said: str) -> None:
    assert extract_provider_message(body) == said
