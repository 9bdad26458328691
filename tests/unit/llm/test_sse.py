"""Event streams, by the vectors of the web platform tests (`eventsource/format-*`), in pieces of any size."""

from collections.abc import Iterable

import pytest

from agent.core.errors import ModelOutputError
from agent.llm.sse import MAX_EVENT_BYTES, EventAssembler, LineSplitter

VECTORS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "byte order mark": ("\ufeffdata:1\n\n\ufeffdata:2\n\ndata:3\n\n", [("message", "1"), ("message", "3")]),
    "two byte order marks": (
        "\ufeff\ufeffdata:1\n\ndata:2\n\ndata:3\n\n",
        [("message", "2"), ("message", "3")],
    ),
    "comments": (
        "data:1\r:\0\n:\r\ndata:2\n:" + "x" * 2000 + "\rdata:3\n:data:fail\r:" + "x" * 2000 + "\ndata:4\n\n",
        [("message", "1\n2\n3\n4")],
    ),
    "data before the final empty line": ("retry:1000\ndata:test1\n\nid:test\ndata:test2", [("message", "test1")]),
    "data": (
        "data:\n\ndata\ndata\n\ndata:test\n\n",
        [("message", ""), ("message", "\n"), ("message", "test")],
    ),
    "event": ("event:test\ndata:x\n\ndata:x\n\n", [("test", "x"), ("message", "x")]),
    "empty event": ("event: \ndata:data\n\n", [("message", "data")]),
    "field parsing": (
        "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
        [("message", "\0\n 2\n1\n3\n\n4")],
    ),
    "unknown fields": (
        "data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
        [("message", "test\n\ntest")],
    ),
    "retry": ("retry:3000\nretry:1000x\ndata:x\n\n", [("message", "x")]),
    "leading space": ("data:\ttest\rdata: \ndata:test\n\n", [("message", "\ttest\n\ntest")]),
    "newlines": ("data:test\r\ndata\ndata:test\r\n\r\n", [("message", "test\n\ntest")]),
    "null character": ("data:\0\n\n\n\n", [("message", "\0")]),
    "utf-8": ("data:ok…\n\n", [("message", "ok…")]),
    "an event without data": ("event:a\n\ndata:b\n\n", [("message", "b")]),
}


def read_events(pieces: Iterable[bytes]) -> list[tuple[str, str]]:
    splitter, assembler = LineSplitter(), EventAssembler()
    events = [event for piece in pieces for event in assembler.feed(splitter.feed(piece))]
    events += assembler.end()
    return [(event.type, event.data.decode("utf-8", "replace")) for event in events]


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_the_vectors_of_the_web_platform_tests_are_read(name: str, size: int) -> None:
    text, expected = VECTORS[name]
    data = text.encode()
    assert read_events(data[at : at + size] for at in range(0, len(data), size)) == expected


def test_each_newline_ends_a_line_wherever_it_is_cut() -> None:
    for newline in ("\r", "\n", "\r\n"):
        data = "data:a\n\nevent:e\ndata:b\ndata:ü\n\n".replace("\n", newline).encode()
        for at in range(len(data)):
            assert read_events([data[:at], data[at:]]) == [("message", "a"), ("e", "b\nü")]


def test_a_cr_ends_its_event_before_the_next_byte_comes() -> None:
    splitter, assembler = LineSplitter(), EventAssembler()
    assert [event.data for event in assembler.feed(splitter.feed(b"data: a\r\r"))] == [b"a"]


def test_bytes_that_are_not_utf_8_do_not_end_the_stream() -> None:
    assert read_events([b"data:ok\xff\n\n"]) == [("message", "ok\ufffd")]


@pytest.mark.parametrize("piece", [b"x" * 100_000, b"data: " + b"x" * 99_990 + b"\n", b"\xef\xbb\xbf" + b"x" * 99_997])
def test_an_event_without_an_end_is_bounded(piece: bytes) -> None:
    with pytest.raises(ModelOutputError, match="more than 4 MB"):
        read_events(piece for _ in range(2 * MAX_EVENT_BYTES // 100_000))
