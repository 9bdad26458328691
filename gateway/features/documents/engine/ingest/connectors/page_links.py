"""Reads from a page what a crawler needs: its links, and whether it may be indexed and followed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.features.documents.engine.ingest.connectors.urls import get_site, make_url_key, may_be_page, normalise_url

if TYPE_CHECKING:
    import httpx

if TYPE_CHECKING:
    from lxml import etree  # type: ignore[import-untyped]

ROBOT_NAME = "stepgate"
"""Our name in robots.txt, `meta` and `X-Robots-Tag`, in lower case."""
MAX_BYTES = 5_000_000
"""Bytes of a page that are searched for links."""
_EVERYBODY = "robots"


@dataclass(frozen=True, slots=True)
class RobotsDirectives:
    """The directives of a page for robots."""

    may_index: bool = True
    may_follow: bool = True

    def __and__(self, other: "RobotsDirectives") -> "RobotsDirectives":
        return RobotsDirectives(self.may_index and other.may_index, self.may_follow and other.may_follow)


@dataclass(frozen=True, slots=True)
class PageInfo:
    """The links of a page within its own site, in order, normalised and unique; and its directives."""

    links: tuple[str, ...]
    directives: RobotsDirectives


def read_directives_from_headers(headers: "httpx.Headers") -> RobotsDirectives:
    """Parses `X-Robots-Tag`: `noindex, nofollow`, or for one robot, `stepgate: none`."""
    directives = RobotsDirectives()
    for line in headers.get_list("x-robots-tag"):
        name, colon, rest = (part.strip() for part in line.lower().partition(":"))
        named = bool(colon) and "," not in name and not name.startswith(("unavailable_after", "max-"))
        if not named or name in (_EVERYBODY, ROBOT_NAME):
            for directive in (rest if named else line.lower()).split(","):
                directives &= _parse_directive(directive.strip())
    return directives


def parse_page(data: bytes, url: str, charset: str | None, *, most_links: int) -> PageInfo:
    """Parses a page that came from `url`. Never raises; an unparsable page has no links."""
    tree = _parse_html(data[:MAX_BYTES], charset)
    if tree is None:
        return PageInfo((), RobotsDirectives())
    directives = RobotsDirectives()
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").strip().lower() in (_EVERYBODY, ROBOT_NAME):
            for directive in (meta.get("content") or "").lower().split(","):
                directives &= _parse_directive(directive.strip())
    if not directives.may_follow:
        return PageInfo((), directives)
    base = next((link for one in tree.iter("base") if (link := normalise_url(one.get("href") or "", url))), url)
    return PageInfo(tuple(_iter_same_site_links(_iter_link_targets(tree), url, base, most_links)), directives)


def _parse_directive(directive: str) -> RobotsDirectives:
    return RobotsDirectives(
        may_index=directive not in ("noindex", "none"), may_follow=directive not in ("nofollow", "none")
    )


def _parse_html(data: bytes, charset: str | None) -> "etree._Element | None":
    from lxml import etree  # noqa: PLC0415 - 4 MB that only sites need

    for encoding in (charset, None):
        try:
            parser = etree.HTMLParser(encoding=encoding, no_network=True, remove_comments=True, remove_pis=True)
            return etree.fromstring(data, parser)
        except LookupError:
            continue  # a charset nobody knows: the page's own word is taken
        except (etree.ParserError, etree.XMLSyntaxError):
            return None
    return None


def _iter_link_targets(tree: "etree._Element") -> Iterator[str]:
    for element in tree.iter("a", "area", "link"):
        relations = (element.get("rel") or "").lower().split()
        if "nofollow" in relations or (element.tag == "link" and "canonical" not in relations):
            continue
        if target := element.get("href"):
            yield target


def _iter_same_site_links(targets: Iterable[str], url: str, base: str, most: int) -> Iterator[str]:
    """Yields the targets that lead to other pages of the same site."""
    own, seen, spellings = get_site(url), {make_url_key(url)}, set[str]()
    for target in targets:
        spelling = target.partition("#")[0]
        if spelling in spellings:
            continue
        spellings.add(spelling)
        if len(spellings) > 4 * most or len(seen) > most:
            return
        link = normalise_url(spelling, base)
        if link is None or get_site(link) != own or make_url_key(link) in seen or not may_be_page(link):
            continue
        seen.add(make_url_key(link))
        yield link
