"""Standard output and error that nobody reads any more, as in `stepgate runs list | head -1`: what follows is dropped.

An error in the middle of a command would end it with a traceback, or end a gateway for want of a reader of its log.
"""

import io
import os
import sys
from typing import Any


class _Pipe(io.FileIO):
    """A file that goes on as /dev/null when its reader has gone."""

    def write(self, data: Any, /) -> int:
        """Write, or drop what there is to write."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(data)


_BEFORE: list[Any] = []
"""The streams that were replaced: collected, they would close their files."""


def tolerate_closed_pipes() -> None:
    """Make it so for this process."""
    _BEFORE.extend((sys.stdout, sys.stderr))
    sys.stdout, sys.stderr = _tolerant(sys.stdout, 1), _tolerant(sys.stderr, 2)


def _tolerant(stream: Any, number: int) -> Any:
    """The same stream over a tolerant file; as it is where it is not this file, as in tests."""
    if not isinstance(stream, io.TextIOWrapper) or stream.fileno() != number:
        return stream
    stream.flush()
    raw = _Pipe(number, "w", closefd=False)
    inner: Any = raw if stream.write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        inner, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )
