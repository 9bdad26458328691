"""What a crawler must know of a page: its links, and whether it may be kept and followed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from agent.knowledge.connectors.urls import key, may_be_page, normal, site

if TYPE_CHECKING:
    from lxml import etree  # type: ignore[import-untyped]

AGENT = "stepgate"
"""Our name in robots.txt, in `meta` and in `X-Robots-Tag`, in small letters."""
MOST_BYTES = 5_000_000
"""How much of a page is searched for links."""
_EVERYBODY = "robots"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a page asks of robots."""

    keep: bool = True
    follow: bool = True

    def __and__(self, other: "Wishes") -> "Wishes":
        return Wishes(self.keep and other.keep, self.follow and other.follow)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The links of a page to its own site, in their order, normal and each once; and its wishes."""

    links: tuple[str, ...]
    wishes: Wishes


def wishes_of(headers: httpx.Headers) -> Wishes:
    """The wishes in `X-Robots-Tag`: `noindex, nofollow`, or for one robot by name, `stepgate: none`."""
    found = Wishes()
    for line in headers.get_list("x-robots-tag"):
        name, colon, rest = (part.strip() for part in line.lower().partition(":"))
        named = bool(colon) and "," not in name and not name.startswith(("unavailable_after", "max-"))
        if not named or name in (_EVERYBODY, AGENT):
            for directive in (rest if named else line.lower()).split(","):
                found &= _wish(directive.strip())
    return found


def facts_of(data: bytes, url: str, charset: str | None, *, most_links: int) -> PageFacts:
    """Read a page that came from `url`; never raises, a page without sense has no links."""
    tree = _parsed(data[:MOST_BYTES], charset)
    if tree is None:
        return PageFacts((), Wishes())
    wishes = Wishes()
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").strip().lower() in (_EVERYBODY, AGENT):
            for directive in (meta.get("content") or "").lower().split(","):
                wishes &= _wish(directive.strip())
    if not wishes.follow:
        return PageFacts((), wishes)
    base = next((found for one in tree.iter("base") if (found := normal(one.get("href") or "", url))), url)
    return PageFacts(tuple(_own(_targets(tree), url, base, most_links)), wishes)


def _wish(directive: str) -> Wishes:
    return Wishes(keep=directive not in ("noindex", "none"), follow=directive not in ("nofollow", "none"))


def _parsed(data: bytes, charset: str | None) -> "etree._Element | None":
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


def _targets(tree: "etree._Element") -> Iterator[str]:
    for element in tree.iter("a", "area", "link"):
        relations = (element.get("rel") or "").lower().split()
        if "nofollow" in relations or (element.tag == "link" and "canonical" not in relations):
            continue
        if target := element.get("href"):
            yield target


def _own(targets: Iterable[str], url: str, base: str, most: int) -> Iterator[str]:
    """Those that lead to other pages of the same site."""
    own, seen, spellings = site(url), {key(url)}, set[str]()
    for target in targets:
        spelling = target.partition("#")[0]
        if spelling in spellings:
            continue
        spellings.add(spelling)
        if len(spellings) > 4 * most or len(seen) > most:
            return
        link = normal(spelling, base)
        if link is None or site(link) != own or key(link) in seen or not may_be_page(link):
            continue
        seen.add(key(link))
        yield link
