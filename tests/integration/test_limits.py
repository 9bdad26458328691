"""Limits as clients meet them: slow ones, greedy ones, those that do not read, those that leave. Over real sockets."""

import asyncio
import json
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agent.core.settings import Settings
from gateway.app import create_app
from tests.integration.conftest import Serve

HEAD = b"POST /v1/agent HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


class Raw:
    """A connection spoken to byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, url: str) -> "Raw":
        return cls(*await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port))

    async def trickle(self, data: bytes, every: float) -> tuple[float, bytes]:
        """Send a byte at a time until the other side has had enough; how long that took, and what it said."""
        started = monotonic()
        hearing = asyncio.ensure_future(self._all())
        for number in range(len(data)):
            if hearing.done():
                break
            self.writer.write(data[number : number + 1])
            await asyncio.wait((hearing,), timeout=every)
        async with asyncio.timeout(10):
            heard = await hearing
        self.writer.close()
        return monotonic() - started, heard

    async def answer(self) -> bytes:
        async with asyncio.timeout(10):
            heard = await self._all()
        self.writer.close()
        return heard

    async def _all(self) -> bytes:
        """What comes until the end, or until the other side resets: it does so where a byte of ours crosses its end."""
        heard = b""
        try:
            while piece := await self.reader.read(65_536):
                heard += piece
        except ConnectionResetError:
            pass
        return heard


def parse_answer(answer: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of one answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), json.loads(body)


async def is_broken(raw: Raw) -> bool:
    """Whether the other side breaks the connection, although this one never read."""
    async with asyncio.timeout(15):
        while True:
            try:
                raw.writer.write(b"x")
                await raw.writer.drain()
            except ConnectionError:
                raw.writer.close()
                return True
            await asyncio.sleep(0.05)


async def test_headers_that_trickle_are_cut_off_in_time(serve: Serve) -> None:
    async with serve(header_seconds=0.4) as url:
        took, heard = await (await Raw.to(url)).trickle(HEAD * 5, 0.05)
        blank, nothing = await (await Raw.to(url)).trickle(b"\r\n" * 100, 0.05)
        silent = await (await Raw.to(url)).answer()
    status, headers, body = parse_answer(heard)
    assert (status, headers["connection"]) == (408, "close")
    assert headers["x-request-id"].startswith("req_")
    assert body["error"]["error_code"] == "ERR_CLIENT_SLOW"
    assert "the headers did not arrive within 0.4 seconds" in body["error"]["message"]
    assert 0.3 < took < 3
    assert blank < 3
    assert nothing == silent == b"", "where no request was begun, there is nothing to answer"


@pytest.mark.parametrize("framing", [b"content-length: 500\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n1f4\r\n"])
@pytest.mark.parametrize("idempotent", [b"", b"idempotency-key: slow\r\n"], ids=["", "with a key"])
async def test_a_body_that_trickles_is_cut_off_in_time(serve: Serve, framing: bytes, idempotent: bytes) -> None:
    async with serve(body_seconds=0.4) as url:
        raw = await Raw.to(url)
        raw.writer.write(HEAD + idempotent + framing)
        took, heard = await raw.trickle(b'{"prompt": "' + b"x" * 400, 0.05)
    status, headers, body = parse_answer(heard)
    assert status == 408
    assert "the request body did not arrive within 0.4 seconds" in body["error"]["message"]
    assert headers["x-request-id"]
    assert 0.3 < took < 3


async def test_a_body_nobody_waits_for_must_come_in_time_too(serve: Serve) -> None:
    async with serve(header_seconds=0.4) as url:
        raw = await Raw.to(url)
        raw.writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n")
        took, heard = await raw.trickle(b"x" * 400, 0.05)
    assert heard.startswith(b"HTTP/1.1 200")
    assert took < 3


async def test_headers_over_the_limit_are_431_in_the_doors_shape(serve: Serve) -> None:
    async with serve(max_header_bytes=4096) as url, httpx.AsyncClient(timeout=15) as client:
        openai = await client.get(f"{url}/v1/models", headers={"x-long": "x" * 5000})
        native = await client.get(f"{url}/v1/runs?before={'x' * 5000}")
        raw = await Raw.to(url)
        raw.writer.write(HEAD + b"x-endless: " + b"x" * 100_000)
        status, headers, body = parse_answer(await raw.answer())
        taken = await client.get(f"{url}/v1/models", headers={"x-long": "x" * 3000})
        alive = await client.get(f"{url}/health")
    assert openai.status_code == native.status_code == status == 431
    assert openai.json()["error"]["code"] == "headers_too_large"
    assert native.json()["error"]["error_code"] == body["error"]["error_code"] == "ERR_HEADERS"
    assert "4,096 bytes" in body["error"]["message"]
    assert openai.headers["x-request-id"]
    assert headers["x-request-id"]
    assert taken.status_code == alive.status_code == 200


async def test_trailers_without_end_are_not_collected(serve: Serve) -> None:
    async with serve(max_header_bytes=4096) as url, httpx.AsyncClient(timeout=15) as client:
        raw = await Raw.to(url)
        raw.writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        raw.writer.write(b"x-more: yes\r\n" * 100_000)
        assert await is_broken(raw)
        assert (await client.get(f"{url}/health")).status_code == 200


async def test_what_is_no_http_is_told_in_shape_with_a_request_id(serve: Serve) -> None:
    async with serve() as url:
        raw = await Raw.to(url)
        raw.writer.write(b"HELLO THERE\r\n\r\n")
        status, headers, body = parse_answer(await raw.answer())
    assert (status, body["error"]["error_code"]) == (400, "ERR_BAD_REQUEST")
    assert headers["x-request-id"]


@pytest.mark.parametrize("path", ["/v1/runs/none", "/mcp"])
async def test_a_request_for_a_websocket_is_answered_as_any_other(serve: Serve, path: str) -> None:
    upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    async with serve() as url:
        connection = await Raw.to(url)
        connection.writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{upgrade}{key}\r\n".encode())
        head = await asyncio.wait_for(connection.reader.readuntil(b"\r\n\r\n"), 10)
        connection.writer.close()
    assert b"x-request-id: req_" in head
    assert head.split()[1] in (b"404", b"406"), head


async def test_messages_are_counted_and_measured_at_every_door(serve: Serve) -> None:
    many = [{"role": "user", "content": "x"}] * 4
    async with (
        serve(max_messages=3, max_message_chars=50) as url,
        httpx.AsyncClient(base_url=url, timeout=15) as client,
    ):
        openai = await client.post("/v1/chat/completions", json={"model": "stepgate", "messages": many})
        native = await client.post("/v1/agent", json={"prompt": "x", "messages": many})
        prompt = await client.post("/v1/agent", json={"prompt": "x" * 51})
        long = [{"role": "assistant", "content": "x" * 51}, {"role": "user", "content": "2+2"}]
        message = await client.post("/v1/chat/completions", json={"model": "stepgate", "messages": long})
        asked = await client.post("/query", json={"user_message": "x" * 51, "session_id": "s", "user_id": "u"})
        runs = (await client.get("/v1/runs")).json()["data"]
    assert (openai.status_code, openai.json()["error"]["code"]) == (400, "array_above_max_length")
    assert [one.status_code for one in (native, prompt, message, asked)] == [413] * 4
    assert "3 are accepted" in native.json()["error"]["message"]
    assert "At most 3 messages are accepted" in openai.json()["error"]["message"]
    assert message.json()["error"]["param"] == "messages[0]"
    for one in (prompt, message, asked):
        assert "51 characters; the limit is 50" in one.json()["error"]["message"]
    assert runs == []


async def test_a_body_that_breaks_off_is_not_kept_under_its_key(serve: Serve) -> None:
    body = json.dumps({"prompt": "2+2"}).encode()
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        raw = await Raw.to(url)
        raw.writer.write(HEAD + b"idempotency-key: k\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:5])
        await raw.writer.drain()
        raw.writer.close()
        await raw.writer.wait_closed()
        headers = {"content-type": "application/json", "idempotency-key": "k"}
        whole = await client.post(f"{url}/v1/agent", content=body, headers=headers)
    assert whole.status_code == 200


async def test_what_fails_outside_of_every_door_is_told_in_shape(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, port=0, skills_dirs=(), metrics=False)
    app = create_app(settings)  # never wired: the keys of requests are looked up in a store that is not there
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        for path, code in (("/v1/agent", "error_code"), ("/v1/chat/completions", "code")):
            failed = await client.post(path, json={}, headers={"idempotency-key": "k"})
            assert failed.status_code == 500
            assert failed.json()["error"][code].lower() == "err_internal"
            assert failed.headers["x-should-retry"] == "false"
            assert failed.headers["x-request-id"] in failed.json()["error"]["message"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/agent HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 400),
        (HEAD + b"authorization: Bearer a\r\nauthorization: Bearer b\r\ncontent-length: 2\r\n\r\n{}", 400),
        (HEAD + b"content-length: 1000000000000\r\n\r\n", 413),
    ],
    ids=["no host", "two keys", "a body without end"],
)
async def test_a_head_that_says_enough_is_refused_at_once(serve: Serve, head: bytes, status: int) -> None:
    async with serve() as url:
        raw = await Raw.to(url)
        started = monotonic()
        raw.writer.write(head)
        told = parse_answer(await raw.answer())
    assert told[0] == status
    assert monotonic() - started < 5
