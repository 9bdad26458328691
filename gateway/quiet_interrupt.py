"""Handles Ctrl-C while the program is being imported. Imports almost nothing itself, so that it is active from the
start.
"""

import os

INTERRUPTED_EXIT_CODE = 130
"""Exit code after Ctrl-C: 128 plus the signal's number."""


class QuietInterrupt:
    """While entered, Ctrl-C ends the process at once without output.

    Nothing is open yet, and an exception in the middle of an import prints a traceback or is swallowed.
    """

    def __enter__(self) -> None:
        import signal  # noqa: PLC0415 - imported where the caller can catch a Ctrl-C

        self._usual = signal.getsignal(signal.SIGINT)
        if self._usual is signal.default_int_handler:  # otherwise it is ignored, as for a background job
            signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED_EXIT_CODE))

    def __exit__(self, *_: object) -> None:
        import signal  # noqa: PLC0415

        signal.signal(signal.SIGINT, self._usual)
