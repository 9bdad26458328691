"""ASGI middleware that checks the type of bodies: a browser sends forms and plain text of any page anywhere, but before
it sends JSON it asks the gateway with a preflight.
"""

import re
from collections.abc import Awaitable
from functools import lru_cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import MediaTypeError, build_error_response

_READ = frozenset({b"content-type", b"content-length", b"transfer-encoding"})
_JSON = re.compile(rb"application/json|[\w!#$&^.+-]+/[\w!#$&^.+-]+\+json", re.IGNORECASE)
_FORM = b"multipart/form-data"


class BodyTypeMiddleware:
    """Refuses with 415 a body that is not sent as JSON, or at `form_paths` as a form.

    An empty body needs no type, nor does that of a GET request, which changes nothing and which no door reads.
    """

    def __init__(self, app: ASGIApp, form_paths: frozenset[str]) -> None:
        self._app = app
        self._form_paths = form_paths

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handles one request. Not a coroutine function: nearly all requests have JSON or no body."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return self._app(scope, receive, send)
        found = [pair for pair in scope["headers"] if pair[0] in _READ]
        if not found and scope.get("http_version", "1.1").startswith("1"):
            return self._app(scope, receive, send)
        kinds = [value for name, value in found if name == b"content-type"]
        if len(kinds) == 1 and (is_json(kinds[0]) or (scope["path"] in self._form_paths and _is_form(kinds[0]))):
            return self._app(scope, receive, send)
        return self._check(dict(found), kinds, scope, receive, send)

    async def _check(
        self, headers: dict[bytes, bytes], kinds: list[bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Passes on a request without a body, and refuses one with a body."""
        length = headers.get(b"content-length")
        if b"transfer-encoding" in headers or length is None:
            # In pieces, or by a protocol without lengths: only what arrives says whether there is a body.
            empty = await _receive_empty_body(receive)
            if empty is not None:
                await self._app(scope, _replay(empty, receive), send)
                return
        elif not length.strip(b"0 \t"):
            await self._app(scope, receive, send)
            return
        error = _describe_type(kinds, is_form=scope["path"] in self._form_paths)
        await build_error_response(error, scope["path"])(scope, receive, send)


@lru_cache(maxsize=256)
def is_json(content_type: bytes) -> bool:
    """Whether a content type is JSON: `application/json` or one that ends with `+json`, with any parameters."""
    return _JSON.fullmatch(content_type.split(b";")[0].strip(b" \t")) is not None


def _is_form(content_type: bytes) -> bool:
    return content_type.split(b";")[0].strip(b" \t").lower() == _FORM


def _describe_type(kinds: list[bytes], *, is_form: bool) -> MediaTypeError:
    expected = "a file as `multipart/form-data`" if is_form else "JSON with `content-type: application/json`"
    if len(kinds) > 1:
        return MediaTypeError(f"The body has {len(kinds)} content types; send {expected}.")
    kind = kinds[0].split(b";")[0].strip(b" \t").decode("latin-1")[:80] if kinds else ""
    sent = f"as `{kind}`" if kind else "without a content type"
    return MediaTypeError(f"The body was sent {sent}; send {expected}.")


async def _receive_empty_body(receive: Receive) -> Message | None:
    """The last message of an empty body, or the client's disconnect; None as soon as there is a body."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        if message.get("body", b""):
            return None
        if not message.get("more_body", False):
            return message


def _replay(first: Message, receive: Receive) -> Receive:
    """A `receive` that begins with a message that was received before."""
    waiting = [first]

    async def receive_next() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_next
