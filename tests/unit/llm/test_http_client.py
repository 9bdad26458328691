"""`HttpModelClient` where a call cannot be started, or is under way when the client is closed."""

import asyncio
import json
from dataclasses import replace

import pytest

from agent.core.errors import ModelDownError
from agent.llm import http
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest

REQUEST = ModelRequest(model="m", messages=({"role": "user", "content": "x"},), purpose="completion", timeout_s=30.0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNK = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


async def all_of(client: HttpModelClient, started: asyncio.Event | None = None) -> None:
    async for _ in client.stream(REQUEST):
        if started is not None:
            started.set()


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".test"])
async def test_a_host_that_cannot_be_looked_up_is_a_failure_of_the_model(host: str) -> None:
    client = HttpModelClient(f"http://{host}/v1")
    try:
        with pytest.raises(ModelDownError):
            await client.complete(REQUEST)
        with pytest.raises(ModelDownError):
            await all_of(client)
    finally:
        await client.aclose()


async def test_a_stream_ends_when_its_client_is_closed() -> None:
    hung_up = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + CHUNK)
        await reader.read()  # until the client hangs up
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    async with asyncio.timeout(10), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = HttpModelClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        begun = asyncio.Event()
        reading = asyncio.create_task(all_of(client, begun))
        await begun.wait()
        await client.aclose()
        with pytest.raises(ModelDownError, match="closed"):
            await reading
        await hung_up.wait()


async def test_a_request_with_large_pictures_arrives_whole() -> None:
    request = replace(REQUEST, messages=({"role": "user", "content": "x" * 3_000_000},))
    received = asyncio.Queue[tuple[bytes, bytes]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        received.put_nowait((head, await reader.readexactly(length)))
        writer.write(HEAD + CHUNK.replace(b'{"content":"a"}', b'{},"finish_reason":"stop"') + b"data: [DONE]\n\n")
        writer.close()

    async with asyncio.timeout(30), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = HttpModelClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        try:
            async for _ in client.stream(request):
                pass
        finally:
            await client.aclose()
        head, body = await received.get()
    assert b"content-type: application/json" in head
    assert json.loads(body)["messages"] == list(request.messages)


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_stream_that_is_read_late_arrives_whole_and_holds_its_server_up(*, chunked: bool) -> None:
    count, event = 15_000, CHUNK.replace(b'"a"', b'"%b"' % (b"a" * 1000))
    sent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") if chunked else HEAD)
        end = CHUNK.replace(b'{"content":"a"}', b'{},"finish_reason":"stop"')
        for data in [event] * count + [end, b"data: [DONE]\n\n"]:
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
            await writer.drain()
        writer.write(b"0\r\n\r\n" if chunked else b"")
        sent.set()
        writer.close()

    async with asyncio.timeout(60), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = HttpModelClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        try:
            stream = client.stream(REQUEST)
            text = (await anext(stream)).text
            await asyncio.sleep(0.5)
            assert not sent.is_set(), "what is not read is not taken from the server either"
            async for chunk in stream:
                text += chunk.text
        finally:
            await client.aclose()
        assert text == "a" * 1000 * count


async def test_a_call_on_a_connection_that_was_closed_after_a_stream_is_sent_on_another_one() -> None:
    """llama.cpp's server promises to keep the connection and closes it after each stream."""
    head = HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n")
    body = CHUNK + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    whole = b'{"choices":[{"message":{"content":"b"},"finish_reason":"stop"}]}'
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        seen.append(request)
        length = int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if b'"stream":true' in await reader.readexactly(length):
            writer.write(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(whole), whole))
        await writer.drain()
        writer.close()

    async with asyncio.timeout(10), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = HttpModelClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        for _ in range(5):
            await all_of(client)
            assert (await client.complete(REQUEST)).text == "b"
        assert len(seen) == 10, "no call reached the server twice"
        await client.aclose()


async def test_a_server_that_dies_at_work_gets_no_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    monkeypatch.setattr(http, "STALE_SECONDS", 0.1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        writer.close()

    async with asyncio.timeout(10), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = HttpModelClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        with pytest.raises(ModelDownError):
            await client.complete(REQUEST)
        await client.aclose()
    assert calls == 1
