"""Replaces stdout and stderr: by streams that remove terminal controls, and that tolerate a closed reader.

After `stepgate runs list | head -1`, later output is dropped.

Otherwise a command would end with a traceback, and a gateway would stop when the reader of its log ends.
"""

import io
import os
import sys
from typing import Any

from gateway.cli.terminal_output import TerminalText


class _TolerantFile(io.FileIO):
    """A file that continues as /dev/null once its reader has gone."""

    def write(self, data: Any, /) -> int:
        """Writes, or drops the data."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(data)


_REPLACED_STREAMS: list[Any] = []
"""The replaced streams, kept because garbage collection would close their files."""


def tolerate_closed_pipes() -> None:
    """Replaces stdout and stderr of this process."""
    _REPLACED_STREAMS.extend((sys.stdout, sys.stderr))
    sys.stdout, sys.stderr = _wrap_stream(sys.stdout, 1), _wrap_stream(sys.stderr, 2)


def _wrap_stream(stream: Any, number: int) -> Any:
    """The same stream without terminal controls, over a tolerant file.

    Unchanged if it is not this file, as in tests.
    """
    if not isinstance(stream, io.TextIOWrapper) or stream.fileno() != number:
        return stream
    stream.flush()
    raw = _TolerantFile(number, "w", closefd=False)
    inner: Any = raw if stream.write_through else io.BufferedWriter(raw)
    return TerminalText(
        inner, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )
