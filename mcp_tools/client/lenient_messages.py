"""Reads JSON-RPC messages that break the protocol's form as far as their meaning is clear.

The SDK drops such a message or reports a parse error, although the call it answers has had its effect: `result: null`,
an error that is a text, a missing `jsonrpc`. Results that are not objects are wrapped under `BARE_RESULT`;
`lenient_results.py` unwraps them, because only there is it known what was requested.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any

import httpx2
import mcp_types as types
from pydantic import ValidationError

from agent.llm.surrogates import join_surrogates

BARE_RESULT = "stepgate/bareResult"
"""The key of a result that was not an object."""
_JSON, _EVENTS = "application/json", "text/event-stream"
_EVENT_STARTS = (b"data:", b"event")
_ACCEPTED, _BAD_REQUEST, _NOT_FOUND = 202, 400, 404
_PHRASES = {status.value: status.phrase.lower() for status in HTTPStatus}
"""The meaning of a status that comes without a reason."""
_MAX_WORDS = 500
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""What may be half a character."""
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


def parse_message(data: bytes | str) -> types.JSONRPCMessage | None:
    """A message, repaired if necessary; None if it is not one."""
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError:
        pass
    try:
        repaired = _repair(_load(data))
        return None if repaired is None else types.jsonrpc_message_adapter.validate_python(repaired, by_name=False)
    except (ValueError, RecursionError):  # a ValidationError is a ValueError
        return None


def _load(data: bytes | str) -> Any:
    """The value of JSON, with U+FFFD for half a character: no other program reads it. Raises `ValueError`."""
    text = _decode(data)
    value = json.loads(text)
    return json.loads(join_surrogates(json.dumps(value, ensure_ascii=False))) if _HALF.search(text) else value


def _decode(data: bytes | str) -> str:
    """JSON as text; bytes that are not UTF-8 are those of an older program's own encoding."""
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def find_words(problem: object) -> str:
    """The words of an error that a server sent in whatever form; its JSON if there are none."""
    if isinstance(problem, str):
        return problem
    if isinstance(problem, Mapping):
        for key in ("message", "error", "detail", "details", "reason", "title", "text", "result"):
            if problem.get(key) and (words := find_words(problem[key])):
                return words
    return json.dumps(problem, ensure_ascii=False) if problem else ""


def _repair(message: object) -> dict[str, Any] | None:
    if isinstance(message, list):  # a batch, as protocol versions up to 2025-03-26 allow: we ask for one thing a time
        answers = [one for one in message if isinstance(one, dict) and ("result" in one or one.get("error"))]
        message = answers[0] if answers else next(iter(message), None)
    if not isinstance(message, dict):
        return None
    number = message.get("id")
    head: dict[str, Any] = {"jsonrpc": "2.0"}
    if number is not None:
        head["id"] = int(number) if isinstance(number, float) and number.is_integer() else number
    if isinstance(message.get("method"), str):
        params = message.get("params")
        return {**head, "method": message["method"], **({"params": params} if isinstance(params, dict) else {})}
    if message.get("error"):
        return {**head, "id": head.get("id"), "error": _repair_error(message["error"])}
    if number is None:
        return None
    result = message.get("result")
    return {**head, "result": result if isinstance(result, dict) else {BARE_RESULT: result}}


def _repair_error(error: object) -> dict[str, Any]:
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else types.INTERNAL_ERROR
    return {"code": number, "message": find_words(error), "data": fields.get("data")}


class LenientHttpClient(httpx2.AsyncClient):
    """An HTTP client whose responses hold messages that the SDK can read, as JSON or as server-sent events."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends the request. Raises what the base class raises."""
        response = await super().send(request, **options)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _EVENTS and "content-encoding" not in response.headers:
            return _rebuild(response, stream=_RepairedEvents(response))
        if request.method != "POST" or kind == _EVENTS or response.status_code == _ACCEPTED or response.is_redirect:
            return response
        body = await response.aread()
        if response.is_error:
            failure = _make_failure(response.status_code, kind, body)
            return response if failure is None else _rebuild(response, _JSON, content=failure)
        if body.lstrip()[:5] in _EVENT_STARTS:
            return _rebuild(response, _EVENTS, content=body)
        repaired = _repair_json(body, asked=_find_id(request))
        if repaired is None and (kind == _JSON or parse_message(body) is None):
            return response
        return _rebuild(response, _JSON, content=repaired or body)


def _find_id(request: httpx2.Request) -> object:
    """The id of the request in an HTTP request; None for a notification."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.StreamError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _make_failure(status: int, kind: str, body: bytes) -> bytes | None:
    """The error that a refusal says in its own form; None where the SDK reads it, or it says nothing.

    A plain text of 400 or 404 stays as it is: so an unknown session is refused."""
    words = ""
    if kind == _JSON or kind.endswith("+json"):
        message = parse_message(body)
        if isinstance(message, types.JSONRPCError) and b'"jsonrpc"' in body:
            return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        try:
            words = find_words(json.loads(_decode(body)))
        except (ValueError, RecursionError):
            return None
    elif kind == "text/plain" and status not in (_BAD_REQUEST, _NOT_FOUND):
        words = _decode(body).strip()
    phrase = _PHRASES.get(status, "")
    if not words or words.strip(" .").lower() in {phrase, f"{status} {phrase}"}:
        return None
    error = {"code": types.INTERNAL_ERROR, "message": f"{words[:_MAX_WORDS]} (HTTP {status})"}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


def _rebuild(response: httpx2.Response, kind: str = "", **body: Any) -> httpx2.Response:
    """The response with another body, and another media type where one is given."""
    dropped = (*_BODY_HEADERS, "content-type") if kind else _BODY_HEADERS
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
    headers += [("content-type", kind)] if kind else []
    rebuilt = httpx2.Response(
        response.status_code, headers=headers, request=response.request, extensions=response.extensions, **body
    )
    rebuilt.next_request = response.next_request
    rebuilt.history = response.history
    return rebuilt


def _repair_json(body: bytes, *, asked: object = None) -> bytes | None:
    """A message in the protocol's form; None if it has that already, or is not a message. An answer without an id, or
    with another one than the request `asked` with, is the answer to it: no other can come in its response."""
    message = parse_message(body)
    if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and asked is not None:
        if str(message.id) != str(asked):
            message = message.model_copy(update={"id": asked})
    elif message is None and asked is not None:
        try:
            bare = _load(body)
        except (ValueError, RecursionError):
            return None
        if not _is_answer(bare):
            return None
        completed = json.dumps({**bare, "id": asked}).encode()
        return _repair_json(completed) or completed
    try:
        same = types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        same = None
    if message is None or message == same:
        return None
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _is_answer(message: object) -> bool:
    """Whether an object without an id is an answer."""
    return isinstance(message, dict) and message.get("id") is None and ("result" in message or "error" in message)


class _RepairedEvents(httpx2.AsyncByteStream):
    """The events of a response. Of an event whose data is one line, as JSON is written, the message is repaired."""

    def __init__(self, response: httpx2.Response) -> None:
        self._stream = response.stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = bytearray()
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for chunk in self._stream:
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                yield _repair_line(bytes(pending + line)) + b"\n"
                pending.clear()
            pending += rest
        if pending:
            yield _repair_line(bytes(pending))

    async def aclose(self) -> None:
        """Closes the response's stream."""
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()


def _repair_line(line: bytes) -> bytes:
    if not line.startswith(b"data:") or (repaired := _repair_json(line[5:].strip())) is None:
        return line
    return b"data: " + repaired + (b"\r" if line.endswith(b"\r") else b"")
