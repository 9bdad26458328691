"""Sitemaps (sitemaps.org/protocol.html): the pages that a site lists itself."""

import asyncio
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO

from gateway.features.documents.engine.ingest.connectors.source_client import Headers, SourceClient
from gateway.features.documents.engine.ingest.connectors.urls import get_site, make_url_key, may_be_page, normalise_url
from gateway.features.documents.engine.ingest.errors import ConnectorError

MAX_BYTES = 10_000_000
"""Bytes that are read of one sitemap, packed or unpacked; pages before the cut count."""
MAX_FILES = 20
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Sitemap:
    """The addresses in one file, as written."""

    sitemaps: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)


async def list_sitemap_pages(
    client: SourceClient, starts: Iterable[str], own: str, headers: Headers, *, most: int
) -> tuple[str, ...]:
    """Up to `most` normalised, unique pages of the site `own` from its sitemaps and sitemap indexes.

    A sitemap that cannot be read counts as empty.
    """
    waiting, requested_urls = deque(starts), set[str]()
    pages: dict[str, str] = {}
    while waiting and len(requested_urls) < MAX_FILES and len(pages) < most:
        url = waiting.popleft()
        if url in requested_urls or get_site(url) != own:
            continue
        requested_urls.add(url)
        try:
            reply = await client.read(url, max_bytes=MAX_BYTES, headers=headers, cut=True)
        except ConnectorError:
            continue
        named = await asyncio.to_thread(parse_sitemap, reply.body)
        waiting.extend(address for one in named.sitemaps[:MAX_FILES] if (address := normalise_url(one, reply.url)))
        for one in named.pages:
            page = normalise_url(one, reply.url)
            if page is not None and get_site(page) == own and may_be_page(page) and len(pages) < most:
                pages.setdefault(make_url_key(page), page)
    return tuple(pages.values())


def parse_sitemap(data: bytes) -> Sitemap:
    """Parses an index, a urlset or a list of addresses, optionally gzipped. A file that declares entities counts as
    empty."""
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(31).decompress(data, MAX_BYTES)
        except zlib.error:
            return Sitemap()
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\0" not in data[:4]:
        return Sitemap(pages=data.decode("utf-8-sig", "replace").split())
    from lxml import etree  # type: ignore[import-untyped] # noqa: PLC0415 - 4 MB that only sites need

    sitemap = Sitemap()
    kinds = {"sitemap": sitemap.sitemaps, "url": sitemap.pages}
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
    return sitemap
