"""Splits bytes into server-sent events, as the HTML standard says ("Event stream interpretation"), piece by piece.

https://html.spec.whatwg.org/multipage/server-sent-events.html. Two deviations, both for payloads of JSON only: data
that is complete in itself makes an event at the end of its line, because some servers separate events by single
newlines or send the empty line with the next token; and the last event needs no empty line.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.core.errors import ModelOutputError

MAX_EVENT_BYTES = 4_000_000
"""A single event larger than this is not a piece of a completion."""
_FIELD_NAME = re.compile(rb"[\w-]*")
"""The name of a field, of which the standard ignores those that it does not know. A comment has none."""
_MAX_STRAY_BYTES = 4_000
_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """An event. `data` holds the bytes of its data lines, joined by newlines."""

    data: bytes
    type: str = "message"


class LineSplitter:
    """Splits a stream into lines that end with LF, CRLF or CR, without the byte order mark at its start.

    A line may have `max_bytes`.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._at_start = True
        self._after_cr = False

    @property
    def is_idle(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._rest and not self._after_cr

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that the piece completes. Raises `ModelOutputError` for a line that is too long."""
        if self._at_start:
            piece = self._remove_bom(piece)
        if self._after_cr or b"\r" in piece:
            piece = self._normalise_newlines(piece)
        if b"\n" not in piece:  # kept in parts: joining them each time takes quadratic time
            self._keep(piece)
            return []
        if self._rest:
            piece = b"".join((*self._rest, piece))
            self._rest.clear()
            self._rest_bytes = 0
        *lines, rest = piece.split(b"\n")
        if rest:
            self._keep(rest)
        return lines

    def end(self) -> bytes:
        """The line that nothing ended."""
        return b"".join(self._rest)

    def _keep(self, rest: bytes) -> None:
        self._rest.append(rest)
        self._rest_bytes += len(rest)
        if self._rest_bytes > self._max_bytes:
            size = self._max_bytes // 1_000_000
            raise ModelOutputError(f"the model's stream holds an event of more than {size} MB", agent_id="models")

    def _remove_bom(self, piece: bytes) -> bytes:
        """The piece with what was kept of the start; empty while this may still be a part of the mark."""
        piece = b"".join((*self._rest, piece))
        self._rest.clear()
        self._rest_bytes = 0
        if len(piece) < len(_BOM) and _BOM.startswith(piece):
            return piece
        self._at_start = False
        return piece.removeprefix(_BOM)

    def _normalise_newlines(self, piece: bytes) -> bytes:
        """A CR ends its line at once. The LF of the same CRLF may come with the next piece."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class EventAssembler:
    """Builds events from lines. `is_complete` says whether data is whole in itself; without it, only an empty line ends
    an event.

    A field `error` counts as an event of the type `error`: llama.cpp's server reports errors so. With `is_complete`, a
    line without a field that is whole in itself is data. The first kilobytes of other lines are in `stray`: a proxy
    writes its own error, as JSON or as a web page, behind the events of a server that it lost.
    """

    def __init__(self, is_complete: Callable[[bytes], bool] | None = None) -> None:
        self._is_complete = is_complete
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._type = ""
        self.stray = b""

    @property
    def is_idle(self) -> bool:
        """Whether no event has begun."""
        return not self._data and not self._type

    def feed(self, lines: Iterable[bytes]) -> Iterator[ServerSentEvent]:
        """Yields the events that the lines complete. Raises `ModelOutputError` for an event that is too long."""
        for line in lines:
            if not line:
                yield from self._dispatch()
                continue
            name, colon, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                yield from self._add_data(value)
            elif name == b"event":
                self._type = value.decode("utf-8", "replace")
            elif name == b"error" and colon and value:
                yield ServerSentEvent(value, "error")
            elif self._is_complete is not None and self._is_complete(line):
                yield ServerSentEvent(line)  # "[DONE]" without a field
            elif not (colon and _FIELD_NAME.fullmatch(name)) and len(self.stray) < _MAX_STRAY_BYTES:
                self.stray += line[:_MAX_STRAY_BYTES] + b"\n"

    def end(self) -> Iterator[ServerSentEvent]:
        """Yields the event that no empty line ended, if its data is complete."""
        data = b"\n".join(self._data)
        if data and self._is_complete is not None and self._is_complete(data):
            yield from self._dispatch()

    def _add_data(self, value: bytes) -> Iterator[ServerSentEvent]:
        if self._is_complete is not None and self._is_complete(value):
            self._data = self._data if any(map(bytes.strip, self._data)) else []
            if not self._data:
                yield ServerSentEvent(value, self._type or "message")
                return
        self._data.append(value)
        self._data_bytes += len(value)
        if self._data_bytes > MAX_EVENT_BYTES:
            raise ModelOutputError("the model's stream holds an event of more than 4 MB", agent_id="models")

    def _dispatch(self) -> Iterator[ServerSentEvent]:
        data, kind = self._data, self._type or "message"
        self._data, self._data_bytes, self._type = [], 0, ""
        if data:
            yield ServerSentEvent(b"\n".join(data), kind)
