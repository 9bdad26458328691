"""Sitemaps (sitemaps.org/protocol.html): the pages that a site itself names."""

import asyncio
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO

from agent.knowledge.connectors.base import Headers, Wire
from agent.knowledge.connectors.urls import key, may_be_page, normal, site
from agent.knowledge.errors import ConnectorError

MOST_BYTES = 10_000_000
"""What is read of one sitemap, packed or unpacked; the pages before the cut count."""
MOST_FILES = 20
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Sitemap:
    """What one file names, as it is written there."""

    sitemaps: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)


async def pages_of(wire: Wire, starts: Iterable[str], own: str, headers: Headers, *, most: int) -> tuple[str, ...]:
    """The pages of the site `own` that its sitemaps name, normal and each once, at most `most`. Indexes are followed.
    A sitemap that cannot be had or read names none."""
    waiting, asked = deque(starts), set[str]()
    pages: dict[str, str] = {}
    while waiting and len(asked) < MOST_FILES and len(pages) < most:
        url = waiting.popleft()
        if url in asked or site(url) != own:
            continue
        asked.add(url)
        try:
            reply = await wire.read(url, max_bytes=MOST_BYTES, headers=headers, cut=True)
        except ConnectorError:
            continue
        named = await asyncio.to_thread(sitemap_of, reply.body)
        waiting.extend(found for one in named.sitemaps[:MOST_FILES] if (found := normal(one, reply.url)))
        for one in named.pages:
            page = normal(one, reply.url)
            if page is not None and site(page) == own and may_be_page(page) and len(pages) < most:
                pages.setdefault(key(page), page)
    return tuple(pages.values())


def sitemap_of(data: bytes) -> Sitemap:
    """Read an index, a urlset or a list of addresses, packed by gzip or not. One that declares anything of its own
    (entities) names nothing."""
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(31).decompress(data, MOST_BYTES)
        except zlib.error:
            return Sitemap()
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\0" not in data[:4]:
        return Sitemap(pages=data.decode("utf-8-sig", "replace").split())
    from lxml import etree  # type: ignore[import-untyped] # noqa: PLC0415 - 4 MB that only sites need

    found = Sitemap()
    kinds = {"sitemap": found.sitemaps, "url": found.pages}
    try:
        for _, element in etree.iterparse(
            BytesIO(data), tag="{*}loc", resolve_entities=False, no_network=True, load_dtd=False, recover=True
        ):
            if element.getroottree().docinfo.internalDTD is not None:
                return Sitemap()
            parent = element.getparent()
            into = kinds.get(etree.QName(parent).localname) if parent is not None else None
            if into is not None and element.text:
                into.append(element.text)
    except etree.XMLSyntaxError:
        pass  # cut off, or broken from here on: what stood before counts
    return found
