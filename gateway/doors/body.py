"""JSON bodies, read strictly: whatever is wrong with one is told with its place. The route of doors that take one."""

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from agent.core.models import JsonObject
from gateway.errors import MediaTypeError, WireError

MAX_DEPTH = 100
"""Objects and lists within one another. No client nests deeper; parsers and stores further on recurse."""

KNOWN_ONLY = ConfigDict(json_schema_extra={"additionalProperties": False})
"""The configuration of a model whose unknown fields are refused by `refuse_unknown`: the document says so."""

_BOM = b"\xef\xbb\xbf"
_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_NAMES = {dict: "object", list: "list", str: "string", bool: "boolean", int: "number", float: "number"}
_OTHERS_SAY = {
    "model": "room",
    "input": "prompt",
    "query": "prompt",
    "question": "prompt",
    "tools": "metadata.tools",
    "tool_calls": "metadata.tool_calls",
}
"""What other APIs call our fields: no spelling is near enough to find these."""


class JsonRoute(APIRoute):
    """A route that reads its body with `read_object` instead of FastAPI's lenient reading."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, given a request whose JSON has been read."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def read_first(request: Request) -> Response:
            parsed = _JsonRequest(request.scope, request.receive)
            try:
                await parsed.json()
            except ClientDisconnect as error:
                raise HTTPException(400, "the client went away before its body was complete") from error
            return await handle(parsed)

        return read_first


class _JsonRequest(Request):
    """A request that keeps the JSON of its body."""

    async def json(self) -> Any:
        """The body as a JSON object. Raises `WireError`."""
        if not hasattr(self, "_json"):
            # The body is read before it is refused: a client that is still sending would not see the answer.
            self._json: Any = read_object(self.headers, await self.body())
        return self._json


def read_object(headers: Headers, body: bytes) -> JsonObject:
    """The JSON object in a body. Raises `MediaTypeError` for what is not sent as plain JSON, else `WireError`."""
    if not body.strip():
        raise WireError("The body is empty; send a JSON object with `content-type: application/json`.")
    _check_headers(headers)
    value = _parse(_decode(body))
    if not isinstance(value, dict):
        kind = _NAMES.get(type(value))
        raise WireError(f"The body must be a JSON object, not {f'a {kind}' if kind else 'null'}.")
    if _deeper_than(value, MAX_DEPTH):
        raise _too_deep()
    return value


def refuse_unknown(body: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Raise `WireError` for a top-level field `model` does not have: a misspelt field must not be ignored."""
    known = list(model.model_fields)
    for name in body:
        if name in model.model_fields:
            continue
        shown = name[:100]
        near = _OTHERS_SAY.get(name) or next(iter(difflib.get_close_matches(shown, known, n=1)), None)
        hint = f"Did you mean '{near}'?" if near else f"The fields are {', '.join(known)}."
        raise WireError(f"Unknown field: '{shown}'. {hint}", shown, "unknown_parameter")


def _check_headers(headers: Headers) -> None:
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise MediaTypeError(f"The body is compressed (content-encoding: {encoding[:40]}); send it uncompressed.")
    kind = headers.get("content-type", "").split(";")[0].strip()
    if not _JSON_TYPE.fullmatch(kind):
        sent = f"as `{kind[:80]}`" if kind else "without a content type"
        raise MediaTypeError(f"The body was sent {sent}; send JSON with `content-type: application/json`.")


def _decode(body: bytes) -> str:
    try:
        return body.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise WireError(f"The body is not UTF-8: byte 0x{byte:02x} at position {error.start}.") from error


class _TwiceError(ValueError):
    """A name that stands twice in one object: which of the two is meant, every parser decides for itself."""


class _NoNumberError(ValueError):
    """What stands where a number should, and is none: NaN, Infinity, 1e999."""


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        told = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise WireError(f"The body is not valid JSON: {told} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except _TwiceError as error:
        name = str(error)[:100]
        raise WireError(f"The body gives the field {name!r} twice in one object; give it once.", name) from error
    except _NoNumberError as error:
        literal = str(error)
        message = f"The body is not valid JSON: {literal[:40]} is no finite number{_place(text, literal)}."
        raise WireError(message) from error
    except ValueError as error:  # Python's own limit on the digits of an integer
        raise WireError("The body holds a number with too many digits.") from error


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return found


def _no_number(literal: str) -> float:
    raise _NoNumberError(literal)


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def _place(text: str, literal: str) -> str:
    """Where `literal` stands first outside of strings."""
    for found in re.finditer(rf'"(?:[^"\\]|\\.)*"|{re.escape(literal)}', text):
        if not found[0].startswith('"'):
            line = text.count("\n", 0, found.start()) + 1
            return f" at line {line}, column {found.start() - text.rfind(chr(10), 0, found.start())}"
    return ""


def _deeper_than(value: JsonObject, limit: int) -> bool:
    """Whether containers lie deeper in one another; level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(limit):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _too_deep() -> WireError:
    return WireError(f"The body is nested more than {MAX_DEPTH} levels deep.")
