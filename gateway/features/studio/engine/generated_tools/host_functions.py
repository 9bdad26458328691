"""The functions of the gateway that a generated tool may call, as far as its manifest permits."""

from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError
from agent.net import SafeClient
from agent.tools import ToolContext
from gateway.features.studio.engine.generated_tools.models import Manifest

if TYPE_CHECKING:
    import httpx

ReadFile = Callable[[str], Awaitable[str]]
"""The text of a file below the readable folders. Raises `ToolError`s."""
MAX_PAGE_BYTES = 2 * 2**20
MAX_REDIRECTS = 5
PAGE_SECONDS = 20.0
"""The longest wait for a page."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class HostFunctions:
    """Shared by all generated tools: the HTTP client and the access to files."""

    def __init__(self, client: SafeClient, read_file: ReadFile) -> None:
        self._client = client
        self._read_file = read_file

    async def call(self, manifest: Manifest, context: ToolContext, name: str, arguments: list[Any]) -> JsonValue:
        """Carries out a call. Raises `ToolDeniedError` for what the manifest does not permit, and `ToolError`s."""
        match name, arguments:
            case "http_get", [str(url)]:
                text = await self._get_page(manifest, url)
                context.note_read(text, False)
                return text
            case "read_file", [str(path)]:
                text = await self._read(manifest, path)
                context.note_read(text, True)
                return text
            case "call_tool", [str(tool), dict(args)]:
                return await _call_tool(manifest, context, tool, args)
        raise ToolInputError(f"{name[:50]} was called with arguments of the wrong type")

    async def _get_page(self, manifest: Manifest, url: str) -> str:
        """The body of a page as text. A redirect is followed to permitted hosts only."""
        for _ in range(MAX_REDIRECTS + 1):
            self._check_host(manifest, self._client.parse_url(url))
            async with self._client.open(url, silence_s=PAGE_SECONDS) as answer:
                if (following := self._client.resolve_redirect(answer)) is not None:
                    url = following
                    continue
                if answer.status >= 400:
                    raise ToolError(f"{url} answered with HTTP status {answer.status}")
                body = bytearray()
                async for piece in answer.body:
                    body += piece
                    if len(body) > MAX_PAGE_BYTES:
                        raise ToolError(f"{url} has more than {MAX_PAGE_BYTES:,} bytes")
                return body.decode(_find_charset(answer.headers.get("content-type", "")), "replace")
        raise ToolError(f"{url} redirects more than {MAX_REDIRECTS} times")

    def _check_host(self, manifest: Manifest, url: "httpx.URL") -> None:
        host = url.raw_host.decode("ascii", "replace").lower()
        port = url.port or _DEFAULT_PORTS[url.scheme]
        is_default = port == _DEFAULT_PORTS[url.scheme]
        if f"{host}:{port}" not in manifest.hosts and not (is_default and host in manifest.hosts):
            allowed = ", ".join(manifest.hosts) or "none"
            raise ToolDeniedError(f"the host {host}:{port} is not among those of this tool: {allowed}")

    async def _read(self, manifest: Manifest, path: str) -> str:
        place = PurePosixPath(path)
        inside = not place.is_absolute() and ".." not in place.parts
        if not (inside and any(place.is_relative_to(PurePosixPath(folder)) for folder in manifest.folders)):
            allowed = ", ".join(manifest.folders) or "none"
            raise ToolDeniedError(f"{path[:200]!r} is not in a folder of this tool: {allowed}")
        return await self._read_file(path)


async def _call_tool(manifest: Manifest, context: ToolContext, name: str, args: dict[str, Any]) -> JsonValue:
    if name not in manifest.tools:
        allowed = ", ".join(manifest.tools) or "none"
        raise ToolDeniedError(f"{name[:50]!r} is not among the tools that this tool may call: {allowed}")
    if context.call_tool is None:
        raise ToolDeniedError("tools can be called within a run only")
    return (await context.call_tool(name, args)).value


def _find_charset(content_type: str) -> str:
    """The character set that a content type names, UTF-8 if there is none that is known."""
    import httpx  # noqa: PLC0415 - 5 MB with httpcore that only tools which fetch need

    charset = httpx.Headers({"content-type": content_type})
    encoding = httpx.Response(200, headers=charset).charset_encoding or "utf-8"
    try:
        "".encode(encoding)
    except LookupError:
        return "utf-8"
    return encoding
