"""Reads JSON-RPC messages that break the protocol's form as far as their meaning is clear.

The SDK drops such a message or reports a parse error, although the call it answers has had its effect: `result: null`,
an error that is a text, a missing `jsonrpc`. Results that are not objects are wrapped under `BARE_RESULT`;
`lenient_results.py` unwraps them, because only there is it known what was requested.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import mcp_types as types
from pydantic import ValidationError

BARE_RESULT = "stepgate/bareResult"
"""The key of a result that was not an object."""
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


def parse_message(data: bytes | str) -> types.JSONRPCMessage | None:
    """A message, repaired if necessary; None if it is not one."""
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValidationError:
        pass
    try:
        repaired = _repair(json.loads(data))
        return None if repaired is None else types.jsonrpc_message_adapter.validate_python(repaired, by_name=False)
    except (ValueError, RecursionError):  # a ValidationError is a ValueError
        return None


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
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("text/event-stream") and "content-encoding" not in response.headers:
            return _rebuild(response, stream=_RepairedEvents(response))
        if request.method != "POST" or not kind.startswith("application/json"):
            return response
        body = await response.aread()
        repaired = _repair_json(body)
        return response if repaired is None else _rebuild(response, content=repaired)


def _rebuild(response: httpx2.Response, **body: Any) -> httpx2.Response:
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _BODY_HEADERS]
    rebuilt = httpx2.Response(
        response.status_code, headers=headers, request=response.request, extensions=response.extensions, **body
    )
    rebuilt.next_request = response.next_request
    rebuilt.history = response.history
    return rebuilt


def _repair_json(body: bytes) -> bytes | None:
    """A message in the protocol's form; None if it has that already, or is not a message."""
    try:
        types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        message = parse_message(body)
        return None if message is None else message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return None


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
