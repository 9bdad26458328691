"""Ctrl-C as something a command can wait for, rather than an exception in the middle of what it does."""

import asyncio
import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """While entered, Ctrl-C raises nothing: `first` is set by the first one, `second` by the next.

    A run is only cancelled once that is on disk. An exception would tear the very call that writes it."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is left to do after a Ctrl-C has been obeyed is short: it is not cut off by another one."""
        signal.signal(signal.SIGINT, signal.SIG_IGN if self.first.is_set() else self._before)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._note)

    def _note(self) -> None:
        (self.second if self.first.is_set() else self.first).set()
