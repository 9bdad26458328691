"""Reads JSON-RPC messages that break the protocol's form as far as their meaning is clear.

The SDK drops such a message or reports a parse error, although the call it answers has had its effect: `result: null`,
an error that is a text, a missing `jsonrpc`. Results that are not objects are wrapped under `BARE_RESULT`;
`lenient_results.py` unwraps them, because only there is it known what was requested.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types
from pydantic import ValidationError

from agent.llm.surrogates import join_surrogates

BARE_RESULT = "stepgate/bareResult"
"""The key of a result that was not an object."""
JSON_TYPE = "application/json"
_OBJECT = re.compile(r'\{\s*"')
_MAX_OBJECTS = 100
"""Places of a line where an object may begin that are tried, because each is read to its end."""
_MAX_INDENTED_BYTES = 4_000_000
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""What may be half a character."""


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


def parse_line(line: bytes) -> list[types.JSONRPCMessage]:
    """The messages in a line: usually one, or several objects, also behind other text such as a progress bar that ends
    without a newline; [] if there are none."""
    message = parse_message(line)
    return [message] if message is not None else [*_iter_objects(decode_json_text(line))]


class IndentedMessages:
    """Messages that a server writes for people to read, over several lines: from a brace alone to the one that closes
    it, both without indentation."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add_line(self, line: bytes) -> list[types.JSONRPCMessage] | None:
        """The messages that a line completes, which holds none by itself; None for a line in the middle of one."""
        text = line.rstrip()
        if text in (b"{", b"["):
            self._lines, self._size = [], 0
        elif not self._lines:
            return []
        self._lines.append(line)
        self._size += len(line)
        if text not in (b"}", b"]") and self._size <= _MAX_INDENTED_BYTES:
            return None
        whole, self._lines = b"\n".join(self._lines), []
        return parse_line(whole)


def _iter_objects(text: str) -> Iterator[types.JSONRPCMessage]:
    """Yields the messages among the JSON objects of a text."""
    decoder, place = json.JSONDecoder(), 0
    for _ in range(_MAX_OBJECTS):
        start = _OBJECT.search(text, place)
        if start is None:
            return
        try:
            value, place = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            place = start.end()
            continue
        is_message = "jsonrpc" in value or ("id" in value and not {"result", "error"}.isdisjoint(value))
        message = parse_message(text[start.start() : place]) if is_message else None
        if message is not None:
            yield message


def _load(data: bytes | str) -> Any:
    """The value of JSON, with U+FFFD for half a character: no other program reads it. Raises `ValueError`."""
    text = decode_json_text(data)
    value = json.loads(text)
    return json.loads(join_surrogates(json.dumps(value, ensure_ascii=False))) if _HALF.search(text) else value


def decode_json_text(data: bytes | str) -> str:
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


def repair_json(body: bytes, *, asked: object = None) -> bytes | None:
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
        return repair_json(completed) or completed
    try:
        same = types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        same = None
    if message is None or message == same:
        return None
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def find_answer(body: bytes, asked: object) -> bytes | None:
    """The answer to the request `asked` among the messages of a body with one in each line; None if it has none."""
    answers = (one for one in parse_line(body) if isinstance(one, types.JSONRPCResponse | types.JSONRPCError))
    answer = next((one for one in answers if str(one.id) == str(asked)), None)
    return None if answer is None else answer.model_dump_json(by_alias=True, exclude_unset=True).encode()


def make_error_answer(asked: object, data: bytes) -> bytes:
    """The error answer to the request `asked`, with what a server reports outside of the protocol."""
    try:
        problem = _load(data)
    except (ValueError, RecursionError):
        problem = decode_json_text(data)
    return json.dumps({"jsonrpc": "2.0", "id": asked, "error": _repair_error(problem)}).encode()


def _is_answer(message: object) -> bool:
    """Whether an object without an id is an answer."""
    return isinstance(message, dict) and message.get("id") is None and ("result" in message or "error" in message)
