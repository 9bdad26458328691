"""`POST /v1/render`: Markdown as clean HTML, as the web page shows it."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter
from pydantic import Field

from agent.core.errors import TooLargeError
from agent.core.models import DeferredModel
from gateway.access.dependencies import require_scope
from gateway.doors.agent import ERRORS
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.render.errors import RequestFormatError
from gateway.render.html import render_markdown

router = APIRouter(tags=["render"], route_class=JsonRoute, dependencies=[require_scope("chat")])

MAX_BYTES: Final = 256 * 1024
MAX_SECONDS: Final = 2.0
"""How long a request waits. Most answers take a few milliseconds."""


class RenderBody(StrictBody):
    """Markdown to render: one text, or several at once."""

    text: str | None = Field(default=None, description="Markdown")
    texts: list[str] | None = Field(default=None, max_length=500, description="several texts, in place of `text`")
    prefix: Annotated[str, Field(max_length=60, pattern=r"^[\w.-]*$")] = Field(
        default="text", description="begins the ids of footnotes; give each text of one page another"
    )


class RenderedText(DeferredModel):
    """The HTML of `text`, or of each of `texts` in order."""

    html: str | None = None
    htmls: list[str] | None = None


@router.post("/v1/render", responses=ERRORS)
async def render_text(body: RenderBody) -> RenderedText:
    """Render Markdown as HTML that holds no scripts, styles, forms or pictures of other hosts."""
    if (body.text is None) == (body.texts is None):
        raise RequestFormatError("Send 'text' or 'texts'.", "text", "invalid_value")
    texts = body.texts if body.texts is not None else [body.text or ""]
    if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > MAX_BYTES:
        raise TooLargeError(f"At most {MAX_BYTES:,} bytes of Markdown are rendered at once.")
    prefixes = [body.prefix] if body.texts is None else [f"{body.prefix}{at}" for at in range(len(texts))]
    htmls = await render_texts(texts, prefixes)
    return RenderedText(htmls=htmls) if body.texts is not None else RenderedText(html=htmls[0])


async def render_texts(texts: list[str], prefixes: list[str]) -> list[str]:
    """The texts as HTML, rendered in a worker thread. Raises `TooLargeError` after `MAX_SECONDS`."""

    def render_all() -> list[str]:
        return [render_markdown(text, prefix) for text, prefix in zip(texts, prefixes, strict=True)]

    try:
        async with asyncio.timeout(MAX_SECONDS):
            return await asyncio.to_thread(render_all)
    except TimeoutError as error:
        raise TooLargeError("This text takes too long to render; show it as plain text.") from error
