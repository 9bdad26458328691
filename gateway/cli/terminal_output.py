"""Cleans text for a terminal: no control character or bidirectional override that a model, a page or a tool wrote.

A terminal obeys escape sequences: they move the cursor over what was printed, change titles and write to the clipboard.
Bidirectional overrides show code in another order than it runs in (CVE-2021-42574). Joiners and combining marks stay.
"""

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Whole control sequences (CSI) of ECMA-48, then C0 but tab and newline, DEL, C1, and the embeddings, overrides and
isolates of UAX 9."""


def remove_terminal_controls(text: str) -> str:
    """A text without characters that a terminal obeys instead of showing."""
    line = text.removesuffix("\n")
    return text if line.isascii() and line.isprintable() else _CONTROLS.sub("", text)


class TerminalText(io.TextIOWrapper):
    """A stream that removes controls from all that is written. `styled` is for writers that have removed them."""

    def write(self, text: str, /) -> int:
        """Writes a text without its controls."""
        super().write(remove_terminal_controls(text))
        return len(text)

    @property
    def styled(self) -> "StyledText":
        """The same stream for text with our own colours and cursor movements."""
        return StyledText(self)


class StyledText:
    """Writes to a `TerminalText` without removing anything; otherwise it is that stream."""

    def __init__(self, stream: TerminalText) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Writes a text as it is."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the stream."""
        return getattr(self._stream, name)


def get_styled_stdout() -> Any:
    """Stdout for text whose controls are our own."""
    return getattr(sys.stdout, "styled", sys.stdout)


@contextmanager
def show_notice(text: str) -> Iterator[Callable[[], None]]:
    """Shows a short text on stderr, on a terminal only, for what takes seconds on a busy machine.

    Yields the function that removes it, which is called at the end too. The cursor stays at the start of the line: a
    line that is logged meanwhile replaces the text.
    """
    stream: IO[str] | None = getattr(sys.stderr, "styled", sys.stderr)  # None if the caller has closed it
    is_shown = stream is not None and stream.isatty() and os.environ.get("TERM") not in {None, "dumb"}

    def clear() -> None:
        nonlocal is_shown
        if is_shown and stream is not None:
            is_shown = False
            stream.write("\r\x1b[K")
            stream.flush()

    if is_shown and stream is not None:
        stream.write(f"{text}\r")
        stream.flush()
    try:
        yield clear
    finally:
        clear()


@cache
def get_console_class() -> "type[Console]":
    """Rich's console that removes controls from the texts it shows, but not from its own."""
    from rich.console import Console  # noqa: PLC0415 - loaded with the first command that prints a table
    from rich.segment import Segment  # noqa: PLC0415 - as above

    class SafeConsole(Console):
        @property
        def file(self) -> IO[str]:
            file = Console.file.fget(self)  # type: ignore[attr-defined]
            styled: IO[str] = getattr(file, "styled", file)
            return styled

        @file.setter
        def file(self, new_file: IO[str]) -> None:
            Console.file.fset(self, new_file)  # type: ignore[attr-defined]

        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            segments = (
                part if part.control else Segment(remove_terminal_controls(part.text), part.style) for part in buffer
            )
            return super()._render_buffer(segments)

    return SafeConsole
