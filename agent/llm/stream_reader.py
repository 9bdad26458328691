"""`StreamReader`: turns the bytes of a streamed reply into `ModelChunk`s, whatever form the server gave them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic_core import from_json

from agent.core.errors import ModelError, ModelOutputError
from agent.llm.chunks import ChunkReader
from agent.llm.faults import build_body_error, build_foreign_error, build_form_error
from agent.llm.port import ModelChunk
from agent.llm.replies import find_body_error
from agent.llm.sse import EventAssembler, LineSplitter, ServerSentEvent

MAX_REPLY_BYTES = 20_000_000
"""No completion is larger; a reply that is would be somebody filling our memory."""
_BLANK = b"\xef\xbb\xbf \t\r\n"
_HEAD_BYTES = 20_000
"""How much of a reply that is not a stream is read to describe it."""
_DONE = frozenset({b"[DONE]", b'"[DONE]"', b"[done]"})

_PIECE_FIELDS = frozenset({"choices", "usage", "error", "errors"})

_JSON_STARTS = (b"{", b"[", b'"')
"""How a piece of a reply begins, also one that is cut."""

Form = Literal["unknown", "events", "json", "page"]


class StreamReader:
    """Reads one reply. Knows server-sent events, and what some servers send in their place: a whole JSON reply, one
    JSON object a line, a web page.

    `where` names the endpoint in errors; `max_tokens` as in `ChunkReader`.
    """

    def __init__(self, where: str, max_tokens: int | None = None) -> None:
        self._where = where
        self._chunks = ChunkReader(where, max_tokens)
        self._form: Form = "unknown"
        self._lines = LineSplitter()
        self._assembler = EventAssembler(_is_complete)
        self._head = b""
        self._json: list[bytes] = []
        """The lines of JSON that are not complete objects by themselves."""
        self._json_bytes = 0
        self._has_events = False
        self._said_done = False
        self._stray = b""
        """The first event that is neither JSON nor a part of it, such as `ping`."""

    @property
    def is_done(self) -> bool:
        """Whether nothing of the reply can follow: it said so, or it was cut at its limit."""
        return self._said_done or self._chunks.is_cut

    @property
    def has_finished(self) -> bool:
        """Whether the reply is whole. Its usage may follow."""
        return self._said_done or self._chunks.has_finished

    @property
    def has_thoughts(self) -> bool:
        """See `ChunkReader.has_thoughts`."""
        return self._chunks.has_thoughts

    def feed(self, piece: bytes) -> Iterable[ModelChunk]:
        """Yields the chunks that a piece completes. Raises `ModelOutputError` for anything but a completion, and
        the matching error for an error that the provider sent.
        """
        if self._has_events and piece.endswith(b"\n\n") and piece.startswith(b"data:") and piece.count(b"\n") == 2:
            chunk = self._read_single_event(piece)
            if chunk is not None:
                return (chunk,)
        return self._read_piece(piece)

    def _read_single_event(self, piece: bytes) -> ModelChunk | None:
        """The chunk of a piece that is one whole event with nothing but text, as most are; None for others. The
        long way takes four times as many instructions.
        """
        if not self._lines.is_idle or not self._assembler.is_idle or self._form != "events":
            return None
        try:
            event = from_json(piece[5:])
        except ValueError:
            return None
        return self._chunks.read_plain(event) if isinstance(event, dict) else None

    def _read_piece(self, piece: bytes) -> Iterator[ModelChunk]:
        if not self._has_events:
            piece = self._sniff(piece)
        if self._form == "events":
            yield from self._read_event_lines(self._lines.feed(piece))
        elif self._form == "json":
            for line in self._lines.feed(piece):
                yield from self._read_json_line(line)
        elif len(self._head) >= _HEAD_BYTES:
            raise self._build_form_error(self._head)

    def end(self) -> Iterator[ModelChunk]:
        """Yields what the end of the bytes completes. Raises as `feed`, and `ModelOutputError` for a reply that ended
        in the middle.
        """
        if not self.is_done:
            rest = self._lines.end()
            if self._form == "events":
                yield from self._read_event_lines([rest] if rest else [])
                yield from self._read_events(self._assembler.end())
            elif self._form == "json":
                yield from self._read_json_rest(rest)
        if not self.has_finished and not self._has_events:
            raise self._build_form_error(self._head)
        stray = self._stray or self._assembler.stray
        if stray and not (self.has_finished and self._chunks.has_pieces):
            raise self._build_stray_error(stray)
        yield from self._chunks.end(is_whole=self._said_done)

    def _sniff(self, piece: bytes) -> bytes:
        """Keeps the beginning of the reply and decides on its form: no line of an event stream begins with a bracket.
        Returns what to read: nothing while the form is unknown, then the whole beginning, later the piece.
        """
        if len(self._head) < _HEAD_BYTES:
            self._head += piece
        if self._form != "unknown":
            return piece
        start = self._head.lstrip(_BLANK)[:1]
        if not start and len(self._head) < _HEAD_BYTES:
            return b""
        self._form = "json" if start in (b"{", b"[") else "page" if start == b"<" else "events"
        if self._form == "json":
            self._lines = LineSplitter(MAX_REPLY_BYTES)
        return self._head

    def _read_event_lines(self, lines: list[bytes]) -> Iterator[ModelChunk]:
        """Parses events of one line each, as nearly all are, in one call of the parser; others one by one."""
        if not lines:
            return
        texts = [line[5:] for line in lines if line.startswith(b"data:")]
        if len(texts) + lines.count(b"") == len(lines) and self._assembler.is_idle:
            said_done = bool(texts) and texts[-1].strip() in _DONE
            events = _parse_together(texts[:-1] if said_done else texts)
            if events is not None:
                self._has_events = self._has_events or bool(texts)
                yield from self._chunks.read(events)
                self._said_done = self._said_done or said_done
                return
        yield from self._read_events(self._assembler.feed(lines))

    def _read_events(self, events: Iterable[ServerSentEvent]) -> Iterator[ModelChunk]:
        for event in events:
            if self.is_done:
                return
            data = event.data.strip()
            if not data:
                continue
            self._has_events = True
            is_end = data in _DONE or event.type == "done"
            if not is_end or (_is_object(data) and self._is_piece(data)):
                yield from self._chunks.read([self._parse_event(data, is_error=event.type == "error")])
            self._said_done = is_end

    def _is_piece(self, data: bytes) -> bool:
        """Whether the object of an event that ends the reply belongs to it: the last piece may come with the end, or an
        error. Anything else is about the stream, unless nothing came before it.
        """
        value = _parse(data)
        return not self._chunks.has_pieces or (isinstance(value, dict) and bool(_PIECE_FIELDS & value.keys()))

    def _parse_event(self, data: bytes, *, is_error: bool) -> dict[str, Any]:
        """The object of an event; an empty one for words between the pieces of a reply, which cost nothing unless its
        end is missing too. Raises the error of the provider that it holds."""
        try:
            value = _parse(data)
        except ValueError as error:
            if is_error:
                raise build_body_error(data.decode("utf-8", "replace"), self._where) from error
            if data[:1] in _JSON_STARTS:
                raise _build_json_error(data) from error
            self._stray = self._stray or data
            return {}
        if is_error:
            reported = find_body_error(value, is_error=True) if isinstance(value, dict) else value
            raise build_body_error(reported, self._where)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ModelOutputError("the model's stream holds something other than objects", agent_id="models")
        return value

    def _read_json_line(self, line: bytes) -> Iterator[ModelChunk]:
        """Reads an object that fills its line; keeps other lines, which may be parts of one."""
        if self._json or not _is_complete(line):
            if line.strip(_BLANK):
                self._json.append(line)
                self._json_bytes += len(line)
            if self._json_bytes > MAX_REPLY_BYTES:
                raise ModelOutputError("the model's reply is larger than 20 MB", agent_id="models")
            return
        if line.strip() in _DONE:
            self._said_done = True
        elif not self.is_done:
            yield from self._read_objects([_parse(line)])

    def _read_json_rest(self, rest: bytes) -> Iterator[ModelChunk]:
        if rest.strip() in _DONE and not self._json:
            self._said_done = True
            return
        body = b"\n".join((*self._json, rest)).strip(_BLANK)
        if not body:
            return
        try:
            value = _parse(body)
        except ValueError as error:
            if self._has_events:
                return  # half an object: the end of the stream is told as that
            raise self._build_form_error(body) from error
        yield from self._read_objects(value if isinstance(value, list) else [value])

    def _read_objects(self, values: list[object]) -> Iterator[ModelChunk]:
        for value in values:
            if not isinstance(value, dict) or not (value.get("choices") or "usage" in value or find_body_error(value)):
                raise build_foreign_error(self._where, value)
            self._has_events = True
            yield from self._chunks.read([value])

    def _build_stray_error(self, data: bytes) -> ModelError:
        """The error of the provider that was sent without the form of an event, or the words themselves."""
        try:
            value = _parse(data)
        except ValueError:
            return _build_json_error(data)
        reported = find_body_error(value) if isinstance(value, dict) else None
        return build_body_error(reported or value, self._where)

    def _build_form_error(self, body: bytes) -> ModelOutputError:
        return build_form_error(f"{self._where} answered a streamed call", body)


def _parse_together(texts: list[bytes]) -> list[dict[str, Any]] | None:
    """Parses texts with an object each as one array. Returns None if they are anything else."""
    try:
        events: list[dict[str, Any]] = from_json(b"[" + b",".join(texts) + b"]")
    except ValueError:
        return None
    return events if len(events) == len(texts) and set(map(type, events)) <= {dict} else None


def _is_complete(data: bytes) -> bool:
    """Whether data is an object, or says that the stream is done, so that no further line can belong to it."""
    data = data.strip()
    return data in _DONE or _is_object(data)


def _is_object(data: bytes) -> bool:
    if not (data.startswith(b"{") and data.endswith(b"}")):
        return False
    try:
        return isinstance(_parse(data), dict)
    except ValueError:
        return False


def _parse(data: bytes) -> object:
    """Parses JSON. Accepts what pydantic's parser refuses: lone surrogates, bytes that are not UTF-8, which become
    surrogates, and control characters within texts. Raises `ValueError`.
    """
    try:
        value: object = from_json(data)
    except ValueError:
        try:
            value = json.loads(data.decode("utf-8", "surrogateescape"), strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    return value


def _build_json_error(data: bytes) -> ModelOutputError:
    return ModelOutputError(f"the model's stream holds no JSON: {data[:100]!r}", agent_id="models")
