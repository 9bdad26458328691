"""Turns Ctrl-C into events that a command can wait for, instead of an exception at any point."""

import asyncio
import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """While entered, the first Ctrl-C sets `first` and the next one sets `second`.

    A run is cancelled only once that is on disk; an exception could interrupt the very call that writes it.
    """

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._handle_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restores the handler. After an interrupt, Ctrl-C is ignored: the remaining clean-up is short."""
        signal.signal(signal.SIGINT, signal.SIG_IGN if self.first.is_set() else self._before)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._record_interrupt)

    def _record_interrupt(self) -> None:
        (self.second if self.first.is_set() else self.first).set()
