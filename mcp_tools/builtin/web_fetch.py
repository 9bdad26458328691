"""`web_fetch`: returns a web page as readable text."""

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from pydantic import Field

from agent.core.content_blocks import is_text_type
from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.core.models import DeferredModel, Source
from agent.net import Page, SafeClient
from agent.tools import READ_ONLY_WEB, PlanHints, ToolContext, TypedTool, declare_roles
from mcp_tools.builtin.request_commands import WEB_PAGE

if TYPE_CHECKING:
    import httpx

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", ""})
QUOTE_CHARS = 300
MAX_LINKS = 200
MIN_LEFT_OUT = 20
"""Words outside the main part from which on the text says how many there are."""
_HREF = re.compile(
    r"<a\s[^<>]{0,500}?href\s*=\s*(?:\"([^\"]{1,2000})\"|'([^']{1,2000})'|([^\s>]{1,2000}))", re.IGNORECASE
)
_DNS_SECONDS = 2.0
"""How long a lookup may take before the fetcher service gets the name unchecked."""


class WebFetchInput(DeferredModel):
    """Arguments of `web_fetch`."""

    url: str = Field(description="http or https address of the page", min_length=1, max_length=4000)
    max_chars: int = Field(default=20_000, ge=200, le=200_000, description="longest text returned")
    start: int = Field(default=0, ge=0, description="first character to return, to continue a long page")


class WebFetchOutput(DeferredModel):
    """The page's text."""

    url: str = Field(description="final address, after redirects")
    title: str
    text: str
    status: int
    content_type: str
    truncated: bool
    next_start: int | None = Field(description="where to continue, or null at the end")
    links: list[str] | None = Field(default=None, description="addresses that an HTML page links to, in its order")
    left_out_words: int = Field(
        default=0, description="words outside the main part of an HTML page, such as its navigation and its footer"
    )


@dataclass(frozen=True, slots=True)
class _Readable:
    title: str
    text: str
    links: tuple[str, ...] = ()
    """The links of the page. The text has only the links of the main content."""
    left_out: int = 0


class WebFetchTool(TypedTool[WebFetchInput, WebFetchOutput]):
    """Reads public web pages, through the fetcher service if one is configured."""

    name = "web_fetch"
    hints = PlanHints(commands=WEB_PAGE)
    description = (
        "Read a web page: fetches an http(s) address and returns its main text as Markdown. Use it for every "
        "question about the content of a given link."
    )
    annotations = READ_ONLY_WEB
    tainted = True
    argument_roles = declare_roles(url="where")
    reads_public_pages = True
    keywords = ("web", "page", "url", "link", "website", "site", "http", "https", "fetch", "download", "article")

    def __init__(self, client: SafeClient, *, fetcher_url: str | None, max_bytes: int, fetch_timeout_s: float) -> None:
        super().__init__()
        self._client = client
        self._fetcher_url = fetcher_url
        self._max_bytes = max_bytes
        self._limit_s = fetch_timeout_s
        self._fetcher = _build_fetcher() if fetcher_url else None

    async def run(self, args: WebFetchInput, context: ToolContext) -> WebFetchOutput:
        page = await self._fetch(args.url, context)
        if page.status >= 400:
            passing = page.status >= 500 or page.status in (408, 425, 429)
            fault = ToolError if passing else ToolInputError
            raise fault(f"{page.url} answered with HTTP status {page.status}")
        readable = await asyncio.to_thread(extract, page)
        end = args.start + args.max_chars
        cut = len(readable.text) > end
        return WebFetchOutput(
            url=page.url,
            title=readable.title,
            text=readable.text[args.start : end],
            status=page.status,
            content_type=page.content_type,
            truncated=cut or page.truncated,
            next_start=end if cut else None,
            links=list(readable.links) or None,
            left_out_words=readable.left_out,
        )

    def format_text(self, output: WebFetchOutput) -> str:
        head = f"# {output.title}\n" if output.title else ""
        more = f"\n\n[more: call again with start={output.next_start}]" if output.next_start else ""
        words = output.left_out_words
        left = f"\n\n[left out: {words:,} words outside the main part]" if words >= MIN_LEFT_OUT and not more else ""
        return f"{head}{output.url}\n\n{output.text}{more}{left}"

    def list_sources(self, output: WebFetchOutput) -> tuple[Source, ...]:
        return (Source(id=1, name=output.title or output.url, url=output.url, quotes=(output.text[:QUOTE_CHARS],)),)

    async def aclose(self) -> None:
        """Closes the connections to the fetcher service."""
        if self._fetcher is not None:
            await self._fetcher.aclose()

    async def _fetch(self, url: str, context: ToolContext) -> Page:
        if self._fetcher is None:
            return await self._client.get(
                url, max_bytes=self._max_bytes, timeout_s=self._limit_s, check_redirect=context.check_redirect
            )
        await self._check_for_service(url)
        return await self._fetch_by_service(self._fetcher, url)

    async def _check_for_service(self, url: str) -> None:
        """Raises `ToolDeniedError` for an internal address, because the service stands inside and could reach it.

        A name that cannot be resolved here is left to the service: where it is needed, this machine often has no DNS.
        """
        self._client.parse_url(url)
        try:
            async with asyncio.timeout(_DNS_SECONDS):
                await self._client.check_url(url)
        except ToolDeniedError:
            raise
        except (ToolError, TimeoutError):
            return

    async def _fetch_by_service(self, fetcher: "httpx.AsyncClient", url: str) -> Page:
        """Asks the fetcher service: POST {"url": ...}; it answers with HTML, or JSON with `text`, `content` or
        `markdown`."""
        import httpx  # noqa: PLC0415 - as above

        where = str(self._fetcher_url)
        try:
            response = await fetcher.post(where, json={"url": url}, timeout=self._limit_s)
        except httpx.TimeoutException as error:
            raise ToolTimeoutError(f"the fetcher {where} did not answer within {self._limit_s:g} s") from error
        except httpx.HTTPError as error:
            raise ToolError(f"the fetcher {where} cannot be reached: {str(error) or type(error).__name__}") from error
        if response.status_code >= 400:
            raise ToolError(f"the fetcher {where} answered with HTTP status {response.status_code}")
        body = response.content[: self._max_bytes]
        kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
        truncated = len(response.content) > self._max_bytes
        return (
            Page(url, 200, kind, body, response.charset_encoding, truncated)
            if kind != _JSON
            else _parse_service_reply(url, body)
        )


_JSON = "application/json"


def _parse_service_reply(url: str, body: bytes) -> Page:
    """The page in the fetcher's JSON reply."""
    try:
        data = json.loads(body)
    except ValueError as error:
        raise ToolError("the fetcher answered with invalid JSON") from error
    if not isinstance(data, dict):
        raise ToolError("the fetcher's answer is not a JSON object")
    text = next((data[key] for key in ("markdown", "text", "content") if isinstance(data.get(key), str)), None)
    status = data.get("status", 200)
    if text is None:
        raise ToolError("the fetcher's answer has neither text, content nor markdown")
    title = str(data.get("title") or "")
    body = (f"# {title}\n\n{text}" if title else text).encode()
    shown_url = str(data.get("url") or url)
    return Page(shown_url, status if isinstance(status, int) else 200, "text/markdown", body, "utf-8", truncated=False)


def extract(page: Page) -> _Readable:
    """The readable text of a page: the main content of HTML as Markdown, other text unchanged.

    Raises `ToolInputError` for other content types.
    """
    if page.content_type not in HTML_TYPES:
        if not is_text_type(page.content_type):
            raise ToolInputError(
                f"{page.url} is {page.content_type}; only text, HTML and JSON can be read here. "
                "Documents can be read once they are in a collection"
            )
        text = _decode(page)
        title = text[2:].split("\n", 1)[0].strip() if text.startswith("# ") else ""
        return _Readable(title, text)
    return _from_html(_decode(page), page.url)


def _build_fetcher() -> "httpx.AsyncClient":
    import httpx  # noqa: PLC0415 - 5 MB with httpcore that only fetching needs

    return httpx.AsyncClient(trust_env=False)


def _from_html(html: str, url: str) -> _Readable:
    from mcp_tools.builtin.web_page import extract_main_part  # noqa: PLC0415 - lxml, 4 MB

    page = extract_main_part(html, url)
    return _Readable(page.title, page.text, _list_links(html, url), page.left_out)


def _list_links(html: str, url: str) -> tuple[str, ...]:
    """The absolute addresses that a page links to, each once, at most `MAX_LINKS`."""
    links: dict[str, None] = {}
    for match in _HREF.finditer(html):
        with suppress(ValueError):
            address = urljoin(url, unescape(match[1] or match[2] or match[3] or "").strip())
            if address.startswith(("http://", "https://")):
                links[address] = None
        if len(links) >= MAX_LINKS:
            break
    return tuple(links)


def _decode(page: Page) -> str:
    """The body as text, as ingestion reads it: by the charset of the server where it fits, else as UTF-8 or a guess."""
    from agent.text.encodings import decode  # noqa: PLC0415 - charset-normalizer, as above
    from agent.text.html.encoding import decode_declared, decode_page  # noqa: PLC0415

    if page.content_type in HTML_TYPES:
        return decode_page(page.body, page.charset).text
    declared = decode_declared(page.body, page.charset) if page.charset else None
    return (declared or decode(page.body)).text
