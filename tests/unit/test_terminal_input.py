"""A line typed at a terminal, its end, and Ctrl-C meanwhile."""

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest

from gateway.cli.terminal_input import read_line


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal that is stdin."""
    keyboard, terminal = os.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


async def test_lines_are_read_one_by_one(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, "use 2 boxes, Zoë\napprove\n".encode())
    stop = asyncio.Event()
    async with asyncio.timeout(10):
        assert await read_line("what now: ", stop) == "use 2 boxes, Zoë"
        assert await read_line("what now: ", stop) == "approve"
    assert capsys.readouterr() == ("", "what now: what now: ")


async def test_the_end_of_the_input_is_no_line(keyboard: int) -> None:
    os.write(keyboard, b"\x04")  # Ctrl-D
    async with asyncio.timeout(10):
        assert await read_line("", asyncio.Event()) is None


async def test_an_interrupt_ends_the_waiting_at_once(keyboard: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, stop.set)
    async with asyncio.timeout(10):
        assert await read_line("", stop) is None
