"""Google's shapes on the wire, and what a script makes go wrong with them: for `drive_server`."""

import asyncio
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Item:
    """A file, a folder or a shortcut. `more` are further fields of the resource, as the API names them."""

    id: str
    name: str
    mime: str
    content: bytes = b""
    parent: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    def resource(self) -> dict[str, Any]:
        """What `files.get` tells of it, before `fields` is applied."""
        native = self.mime.startswith("application/vnd.google-apps.")
        found: dict[str, Any] = {
            "kind": "drive#file",
            "id": self.id,
            "name": self.name,
            "mimeType": self.mime,
            "trashed": False,
            "parents": [self.parent] if self.parent else [],
            "version": "7",
            "modifiedTime": "2026-03-01T10:00:00.000Z",
            "owners": [{"kind": "drive#user", "displayName": "Ann Example", "emailAddress": "ann@example.org"}],
            "webViewLink": f"https://drive.google.com/file/d/{self.id}/view?usp=drivesdk",
        }
        if not native:
            found |= {
                "size": str(len(self.content)),
                "md5Checksum": hashlib.md5(self.content).hexdigest(),
                "sha256Checksum": hashlib.sha256(self.content).hexdigest(),
                "headRevisionId": f"rev-{hashlib.md5(self.content).hexdigest()[:8]}",
            }
        return found | self.more


@dataclass
class Fault:
    """What the next `times` calls of `call` (`token`, `get`, `list`, `media`, `export`) about `about` end in.

    With `status` an error with Google's `reason`; with `body` that text, its status 200 unless given; `cut_at` breaks
    the connection after so many bytes of a body; `stall` sends half and then nothing until the server is closed."""

    call: str
    status: int = 0
    reason: str = "forbidden"
    message: str = "The request was refused."
    retry_after: str = ""
    body: str | None = None
    cut_at: int | None = None
    stall: bool = False
    about: str = ""
    times: int = 1


def masked(resource: Any, fields: str) -> Any:
    """Of a resource what the `fields` parameter names: `a,b(c,d),e/f`, or `*` for everything."""
    names = _names(fields)
    if isinstance(resource, list):
        return [masked(one, fields) for one in resource]
    if "*" in names:
        return resource
    return {name: masked(resource[name], inner) for name, inner in names.items() if name in resource}


def _names(fields: str) -> dict[str, str]:
    """The names at the outermost level, each with what is asked for within."""
    found: dict[str, str] = {}
    depth, start = 0, 0
    for at, character in enumerate(f"{fields},"):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            name, _, inner = fields[start:at].partition("(") if "(" in fields[start:at] else (fields[start:at], "", "")
            name, _, below = name.partition("/")
            found[name.strip()] = inner.removesuffix(")") or below or "*"
            start = at + 1
    return found


def error(status: int, reason: str, message: str, *, location: str = "", retry_after: str = "") -> web.Response:
    """The API's error, with `Retry-After` where one is given."""
    one = {"domain": "usageLimits" if "imit" in reason else "global", "reason": reason, "message": message}
    if location:
        one |= {"locationType": "header" if location == "Authorization" else "parameter", "location": location}
    body = {"error": {"errors": [one], "code": status, "message": message}}
    return web.json_response(body, status=status, headers={"retry-after": retry_after} if retry_after else {})


def oauth_error(reason: str, description: str, status: int = 400) -> web.Response:
    """An error of the token endpoint (RFC 6749, 5.2)."""
    return web.json_response({"error": reason, "error_description": description}, status=status)


async def ranged(
    request: web.Request, content: bytes, mime: str, fault: Fault | None, *, etag: bool
) -> web.StreamResponse:
    """The content, or the range of it that was asked for, with its length."""
    size = len(content)
    tag = f'"{hashlib.md5(content).hexdigest()}"'
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    if asked and request.headers.get("if-range", tag) != tag:
        asked = None
    start, end = (int(asked[1]), min(int(asked[2] or size - 1), size - 1)) if asked else (0, size - 1)
    if asked and start >= size:
        return web.Response(status=416, headers={"content-range": f"bytes */{size}"})
    response = web.StreamResponse(status=206 if asked else 200, headers={"content-type": mime})
    response.content_length = end - start + 1
    if asked:
        response.headers["content-range"] = f"bytes {start}-{end}/{size}"
    if etag:
        response.headers["etag"] = tag
    return await _sent(request, response, content[start : end + 1], fault)


async def chunked(request: web.Request, content: bytes, mime: str, fault: Fault | None) -> web.StreamResponse:
    """The content, whose length nobody knows before its end."""
    response = web.StreamResponse(headers={"content-type": mime})
    response.enable_chunked_encoding()
    return await _sent(request, response, content, fault)


async def _sent(
    request: web.Request, response: web.StreamResponse, content: bytes, fault: Fault | None
) -> web.StreamResponse:
    await response.prepare(request)
    if fault is not None and fault.stall:
        await response.write(content[: len(content) // 2])
        await asyncio.Event().wait()
    if fault is not None and fault.cut_at is not None:
        await response.write(content[: fault.cut_at])
        assert request.transport is not None
        request.transport.close()
        return response
    await response.write(content)
    await response.write_eof()
    return response
