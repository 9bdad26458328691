"""`read_line`: what a person types at the terminal, without holding up the event loop or the end of the process."""

import asyncio
import os
import sys

MAX_LINE_BYTES = 65_536
"""More than a terminal passes on at once: in its usual mode a read ends with the line."""


async def read_line(prompt: str, stop: asyncio.Event) -> str | None:
    """The next line, without its end; None at the end of the input (Ctrl-D) and once `stop` is set.

    `input` in a thread could not be ended: Ctrl-C would wait for the Enter key. The prompt goes to stderr, because
    other programs read stdout.
    """
    print(prompt, end="", file=sys.stderr, flush=True)
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(terminal)
        try:
            typed.set_result(os.read(terminal, MAX_LINE_BYTES))
        except OSError:  # the terminal was closed
            typed.set_result(b"")

    loop.add_reader(terminal, read)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((typed, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(terminal)
        stopped.cancel()
    if stop.is_set() or not typed.result():
        print(file=sys.stderr)
        return None
    return typed.result().decode(sys.stdin.encoding, "replace").rstrip("\r\n")
