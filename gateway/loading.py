"""Ctrl-C while parts of the program are being loaded. Imports next to nothing itself: it is there from the start."""

import os

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended: 128 and the signal's number."""


class Loading:
    """While entered, Ctrl-C ends the process at once and without a word: nothing is open yet, and an exception in the
    middle of an import shows a traceback, or is swallowed there."""

    def __enter__(self) -> None:
        import signal  # noqa: PLC0415 - loaded where the caller can catch a Ctrl-C

        self._usual = signal.getsignal(signal.SIGINT)
        if self._usual is signal.default_int_handler:  # else it is ignored, as for a job in the background
            signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))

    def __exit__(self, *_: object) -> None:
        import signal  # noqa: PLC0415

        signal.signal(signal.SIGINT, self._usual)
