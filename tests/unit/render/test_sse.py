"""Server-sent events on the wire: frames that cannot be torn, a heartbeat in silence, an end."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from gateway.render.sse import HEARTBEAT, add_heartbeat, format_frame


def test_a_frame_has_its_name_its_id_and_ends_with_a_blank_line() -> None:
    assert format_frame("{}", event="run.created", event_id=7) == "event: run.created\nid: 7\ndata: {}\n\n"
    assert format_frame("{}") == "data: {}\n\n"


@pytest.mark.parametrize("text", ["a\u2028b", "a\u2029b", "a\x85b", "räk\u2028smörgås 🦐", "a\nb\r\nc", "\\u2028"])
def test_no_text_tears_a_frame_for_clients_that_split_by_unicodes_line_ends(text: str) -> None:
    lines = format_frame(json.dumps({"text": text}, ensure_ascii=False)).splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0].removeprefix("data: ")) == {"text": text}


async def test_silence_is_filled_with_comments_and_nothing_is_lost() -> None:
    go_on = asyncio.Event()

    async def frames() -> AsyncGenerator[str, None]:
        yield "one"
        await go_on.wait()
        yield "two"

    seen: list[str] = []
    async with asyncio.timeout(10):
        async for text in add_heartbeat(frames(), every=0.01):
            seen.append(text)
            if seen.count(HEARTBEAT) == 2:
                go_on.set()
    assert [text for text in seen if text != HEARTBEAT] == ["one", "two"]
    assert seen[:3] == ["one", HEARTBEAT, HEARTBEAT]


async def test_a_busy_stream_has_no_heartbeat() -> None:
    async def frames() -> AsyncGenerator[str, None]:
        for number in range(3):
            yield str(number)

    assert [text async for text in add_heartbeat(frames(), every=60)] == ["0", "1", "2"]


async def test_a_client_that_hangs_up_ends_the_tail() -> None:
    ended = asyncio.Event()

    async def frames() -> AsyncGenerator[str, None]:
        try:
            yield "one"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def read() -> None:
        async for _ in add_heartbeat(frames(), every=60):
            reading.set()

    reading = asyncio.Event()
    client = asyncio.create_task(read())
    async with asyncio.timeout(10):
        await reading.wait()
        client.cancel()
        await ended.wait()
        await asyncio.wait([client])
    assert client.cancelled()


async def test_an_error_of_the_source_reaches_the_reader() -> None:
    async def frames() -> AsyncGenerator[str, None]:
        yield "one"
        raise ValueError("broken")

    reader = add_heartbeat(frames(), every=60)
    assert await anext(reader) == "one"
    with pytest.raises(ValueError, match="broken"):
        await anext(reader)
