"""A web page as Markdown: what a reader sees of its main part, in page order.

trafilatura knows the main text of most pages, and loses words in the middle of it: times, labels, the text of `div`s
between paragraphs. So it only says which part of the page is the main one. That part is read as documents are, by
`HtmlWalk`, and the words of the rest are counted.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from agent.text.html.blocks import HtmlWalk, TooDeepError, parse_tree
from agent.text.html.mathml import write_equations
from agent.text.html.tables import BLOCKS, Element, extract_visible_text
from agent.text.html.visibility import remove_hidden

MAX_TABLES, MAX_COLUMNS = 500, 100
MIN_MATCH_CHARS: Final = 20
"""Shorter texts, such as "Home", are in navigation as well."""
MIN_MAIN_CHARS: Final = 40
"""Characters below which a page has no main part: then all of it is read."""
_AROUND: Final = frozenset({"nav", "footer", "aside", "form", "header"})
_AROUND_ROLES: Final = frozenset({"navigation", "contentinfo", "complementary", "search", "banner"})
_WHOLE: Final = frozenset({"main", "article"})
LINK_SHARE: Final = 0.6
"""A block of which links are at least this share of the characters is a list of links."""
MIN_LINKS: Final = 3
COMPARED_WORDS: Final = 60
"""Words of a block that are compared with the main text."""
_LISTS: Final = frozenset({"ul", "ol", "menu", "dl", "p", "div"})
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MainPart:
    """The main part of a page as Markdown, and the number of words of the rest."""

    title: str
    text: str
    left_out: int = 0


@dataclass
class _Markdown:
    """Takes the blocks of a page as Markdown."""

    blocks: list[str] = field(default_factory=list)
    tables: int = 0

    def add_heading(self, text: str, level: int) -> None:
        """See `BlockSink`."""
        self.blocks.append(f"{'#' * level} {text}" if text else "")

    def add_text(self, text: str) -> None:
        """See `BlockSink`."""
        self.blocks.append(text)

    def add_table(self, rows: Sequence[Sequence[str]]) -> None:
        """See `BlockSink`. The first row is the header."""
        cells = [[_format_cell(cell) for cell in row[:MAX_COLUMNS]] for row in rows]
        filled = [row for row in cells if any(row)]
        self.tables += 1
        if not filled or self.tables > MAX_TABLES:
            self.blocks += [" ".join(row) for row in filled]
            return
        width = max(map(len, filled))
        lines = [f"| {' | '.join((*row, *[''] * (width - len(row))))} |" for row in filled]
        self.blocks.append("\n".join((lines[0], "|" + " --- |" * width, *lines[1:])))

    def add_image(self, description: str) -> None:
        """See `BlockSink`."""
        self.blocks.append(f"[image: {' '.join(description.split())}]")

    def join(self) -> str:
        """The blocks, a blank line between two that are not items of one list."""
        text, before = "", ""
        for block in filter(None, map(str.strip, self.blocks)):
            is_list = _is_item(before) and _is_item(block)
            text += ("\n" if is_list else "\n\n" if text else "") + block
            before = block
        return text


def extract_main_part(page: str, url: str) -> MainPart:
    """Reads a page. One that is not HTML is its own text."""
    # Imported here, in the thread: the library takes 0.1 s to import, and most runs fetch no page.
    import trafilatura  # noqa: PLC0415

    try:
        root = parse_tree(page)
    except TooDeepError:
        return MainPart("", (trafilatura.html2txt(page) or "").strip())
    if root is None:
        return MainPart("", "")
    title = _find_title(page, url)
    remove_hidden(root)
    write_equations(root)
    body = root.find("body")
    whole = root if body is None else body
    words = len(extract_visible_text(whole).split())
    extracted = trafilatura.extract(root, url=url, output_format="txt", include_tables=True) or ""
    main_text = _MainText(extracted)
    main = _find_main(whole, main_text) if len(extracted) >= MIN_MAIN_CHARS else None
    part = whole if main is None else main
    if len(extracted) >= MIN_MAIN_CHARS:
        _drop_surroundings(part, main_text)
    left_out = words - len(extract_visible_text(part).split())
    _write_links(part, url)
    sink = _Markdown()
    HtmlWalk(sink).visit(part)
    return MainPart(title, sink.join(), max(0, left_out))


def _find_title(page: str, url: str) -> str:
    import trafilatura  # noqa: PLC0415 - as above

    metadata = trafilatura.extract_metadata(page, default_url=url)
    return ((metadata.title or "") if metadata is not None else "").strip()


class _MainText:
    """Says of a text whether the main text holds it, by its words in their order."""

    def __init__(self, text: str) -> None:
        words = _split_words(text)
        self._runs = {*zip(words, words[1:], words[2:], strict=False)}

    def holds_any(self, text: str) -> bool:
        """Whether three words that follow each other do, of the first ones."""
        words = _split_words(text)[:COMPARED_WORDS]
        return any(run in self._runs for run in zip(words, words[1:], words[2:], strict=False))


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _find_main(whole: Element, main_text: _MainText) -> Element | None:
    """The smallest element that holds all that belongs to the main text; None if the whole page does."""
    texts = ((element, extract_visible_text(element)) for element in _iter_inner_blocks(whole))
    common = _find_common(
        [element for element, text in texts if len(text) >= MIN_MATCH_CHARS and main_text.holds_any(text)], whole
    )
    if common is None:
        return None
    # All of an article, and of the main part that says so itself: further articles, a heading or an address at its end.
    around = [one for one in (common, *common.iterancestors()) if one.tag in _WHOLE or one.get("role") == "main"]
    return around[-1] if around else common


def _find_common(elements: Sequence[Element], whole: Element) -> Element | None:
    """The nearest element that holds them all; None for the whole page."""
    if not elements:
        return None
    common = [*reversed([elements[0], *elements[0].iterancestors()])]
    for element in elements[1:]:
        path = [*reversed([element, *element.iterancestors()])]
        length = next((n for n, (a, b) in enumerate(zip(common, path, strict=False)) if a is not b), None)
        common = common[: min(len(common), len(path)) if length is None else length]
    return common[-1] if common and common[-1] is not whole and whole in common else None


def _iter_inner_blocks(whole: Element) -> Iterator[Element]:
    """Yields the blocks without blocks in them."""
    for element in whole.iter():
        if isinstance(element.tag, str) and element.tag in BLOCKS and not _holds_blocks(element):
            yield element


def _holds_blocks(element: Element) -> bool:
    return any(isinstance(one.tag, str) and one.tag in BLOCKS for one in element.iterdescendants())


def _drop_surroundings(part: Element, main_text: _MainText) -> None:
    """Removes navigation and the like from within a part: what says so, or is a list of links, and has nothing of the
    main text."""
    left = [*part]
    while left:
        element = left.pop()
        if not isinstance(element.tag, str):
            continue
        is_around = element.tag in _AROUND or element.get("role") in _AROUND_ROLES
        is_block = element.tag in BLOCKS
        if is_block and (is_around or _is_list_of_links(element)) and not _holds_main(element, main_text):
            element.drop_tree()
        else:
            left += element


def _holds_main(element: Element, main_text: _MainText) -> bool:
    return any(main_text.holds_any(extract_visible_text(one)) for one in (element, *_iter_inner_blocks(element)))


def _is_list_of_links(element: Element) -> bool:
    """Whether most of an element is links."""
    if element.tag not in _LISTS:
        return False
    links = [*element.iter("a")]
    characters = len(extract_visible_text(element)) if len(links) >= MIN_LINKS else 0
    return bool(characters) and sum(len(extract_visible_text(link)) for link in links) >= LINK_SHARE * characters


def _write_links(part: Element, url: str) -> None:
    """Writes each link of words as Markdown, its address absolute."""
    for link in [*part.iter("a")]:
        address = (link.get("href") or "").strip()
        text = extract_visible_text(link)
        if not text or not address or address.startswith(("#", "javascript:", "data:")) or _holds_blocks(link):
            continue
        for child in list(link):
            link.remove(child)
        link.text = f"[{text}]({_join(url, address)})"


def _join(url: str, address: str) -> str:
    try:
        return urljoin(url, address)
    except ValueError:
        return address


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _is_item(block: str) -> bool:
    marker = block.split(" ", 1)[0]
    return marker == "-" or (marker.endswith(".") and marker[:-1].isalnum() and len(marker) <= 5)
