"""Strict JSON bodies: every fault is reported with its place. `JsonRoute` is the route of doors that take a body."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from agent.core.models import JsonObject
from gateway.access.http_limits import MAX_DEPTH
from gateway.doors.deferred_route import DeferredRoute
from gateway.render.error_responses import MediaTypeError
from gateway.render.errors import RequestFormatError

LARGE_BODY_BYTES: Final = 500_000
"""A larger body is parsed in a thread: each of its objects takes a call, before anybody has looked at the key."""
_BOM = b"\xef\xbb\xbf"
_JSON_TYPE_NAMES = {dict: "object", list: "list", str: "string", bool: "boolean", int: "number", float: "number"}


class JsonRoute(DeferredRoute):
    """A route that reads its body with `read_json_object` instead of FastAPI's lenient reader."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, called with a request whose JSON has been read."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def read_first(request: Request) -> Response:
            parsed = _JsonRequest(request.scope, request.receive)
            await parsed.json()
            return await handle(parsed)

        return read_first


class OpenAIRoute(JsonRoute):
    """A route of OpenAI's API, whose clients add query parameters of their own, such as `api-version`."""

    takes_any_query = True


class _JsonRequest(Request):
    """A request that keeps the JSON of its body."""

    async def json(self) -> Any:
        """The body as a JSON object. Raises `RequestFormatError`, and `HTTPException` for half a body."""
        if not hasattr(self, "_strict_json"):
            try:
                # The body is read before it is refused: a client that is still sending would not see the response.
                body = await self.body()
            except ClientDisconnect as error:
                raise HTTPException(400, "the client disconnected before its body was complete") from error
            if len(body) > LARGE_BODY_BYTES:
                self._strict_json: Any = await asyncio.to_thread(read_json_object, self.headers, body)
            else:
                self._strict_json = read_json_object(self.headers, body)
        return self._strict_json


def read_json_object(headers: Headers, body: bytes) -> JsonObject:
    """The JSON object in a body, whose type `BodyTypeMiddleware` has checked.

    Raises `MediaTypeError` if it is compressed, else `RequestFormatError`.
    """
    if not body.strip():
        raise RequestFormatError("The body is empty; send a JSON object with `content-type: application/json`.")
    _refuse_compressed(headers)
    text = _decode(body)
    value = _parse(text)
    if not isinstance(value, dict):
        kind = _JSON_TYPE_NAMES.get(type(value))
        raise RequestFormatError(f"The body must be a JSON object, not {f'a {kind}' if kind else 'null'}.")
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_deeper_than(value, MAX_DEPTH):
        raise _make_nesting_error()
    return value


def _refuse_compressed(headers: Headers) -> None:
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise MediaTypeError(f"The body is compressed (content-encoding: {encoding[:40]}); send it uncompressed.")


def _decode(body: bytes) -> str:
    try:
        return body.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise RequestFormatError(f"The body is not UTF-8: byte 0x{byte:02x} at position {error.start}.") from error


class _DuplicateNameError(ValueError):
    """Raised for a name that occurs twice in one object: parsers differ in which one they use."""


class _InvalidNumberError(ValueError):
    """Raised for NaN, Infinity and numbers out of range, such as 1e999."""


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise RequestFormatError(
            f"The body is not valid JSON: {reason} at line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise _make_nesting_error() from error
    except _DuplicateNameError as error:
        name = str(error)[:100]
        raise RequestFormatError(
            f"The body gives the field {name!r} twice in one object; give it once.", name
        ) from error
    except _InvalidNumberError as error:
        literal = str(error)
        message = f"The body is not valid JSON: {literal[:40]} is not a finite number{_locate_literal(text, literal)}."
        raise RequestFormatError(message) from error
    except ValueError as error:  # Python's own limit on the digits of an integer
        raise RequestFormatError("The body holds a number with too many digits.") from error


def _build_unique_object(pairs: list[tuple[str, Any]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateNameError(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return fields


def _refuse_number(literal: str) -> float:
    raise _InvalidNumberError(literal)


def _parse_finite_float(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse_number(literal)


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_number, parse_float=_parse_finite_float, object_pairs_hook=_build_unique_object
)


def _locate_literal(text: str, literal: str) -> str:
    """Finds where `literal` first occurs outside of strings."""
    for match in re.finditer(rf'"(?:[^"\\]|\\.)*"|{re.escape(literal)}', text):
        if not match[0].startswith('"'):
            line = text.count("\n", 0, match.start()) + 1
            return f" at line {line}, column {match.start() - text.rfind(chr(10), 0, match.start())}"
    return ""


def _is_deeper_than(value: JsonObject, limit: int) -> bool:
    """Whether containers are nested deeper than `limit`. Works level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(limit):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _make_nesting_error() -> RequestFormatError:
    return RequestFormatError(f"The body is nested more than {MAX_DEPTH} levels deep.")
