"""The visible blocks of a page, in page order: headings, paragraphs, list items, tables and described pictures.

The one reader of HTML: ingestion and `web_fetch` use it on a tree without what a browser hides.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Protocol

from lxml import etree, html  # type: ignore[import-untyped]

from agent.text.html.lists import ListMarkers
from agent.text.html.storage_format import (
    close_empty_elements,
    escape_sections,
    is_storage_format,
    rewrite_elements,
)
from agent.text.html.struck import mark_struck_text
from agent.text.html.tables import (
    BLOCKS,
    MOVED,
    SEPARATE,
    Element,
    extract_visible_text,
    is_data_table,
    iter_loose_texts,
    list_nested_tables,
    read_shown_value,
    read_table_rows,
    write_moved_figure,
)
from agent.text.html.ticks import write_ticks
from agent.text.superscripts import write_fractions

_END = re.compile(r"</(?:html|body)\s*>", re.IGNORECASE)
"""What libxml2 takes for the end of the text. A browser shows what follows, such as a second page or a footer of mail
servers."""
_XML = re.compile(r"\s*<\?xml\b")
_SOFT_HYPHEN = re.compile(r"\xad|&(?:shy;?|#0{0,5}173;|#[xX]0{0,5}[aA][dD];)")
"""A place where a word may be parted: nobody sees it within a line, and with it no search finds the word."""
_MAX_TERM = 200
_CONTEXT = 6
"""Pieces of text before a raised figure that may have the amount that it belongs to."""
_NO_TERM = BLOCKS | {"img", "input", "button", "br"}
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BEHIND_TERMS = frozenset({"dl", "hr", "li", "menu", "ol", "pre", "section", "table", "ul", *HEADINGS})
"""What does not go on in the line of a term."""


_BREAK = "\x00"
"""A line break; no text of a page has this character."""


class _Picture(str):
    """The description of a picture in its place among the words of a line."""

    __slots__ = ()


class TooDeepError(ValueError):
    """Raised for a page nested deeper than the 256 levels that libxml2 follows."""


def parse_tree(text: str) -> Element | None:
    """The tree of a page that is text already; None if it has nothing but comments or white space. Raises
    `TooDeepError`."""
    has_storage_format = is_storage_format(text)
    if has_storage_format or _XML.match(text):  # in XML this is text; in HTML a comment, which nobody sees
        text = escape_sections(text)
    if has_storage_format:
        text = close_empty_elements(text)
    text = _SOFT_HYPHEN.sub("", text)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(_END.sub("", text).encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:
        return None
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise TooDeepError("the page is nested deeper than 256 levels")
    if has_storage_format:
        rewrite_elements(root)
    write_ticks(root)
    return root


class BlockSink(Protocol):
    """What takes the blocks of a page, in its order. `text` of lists begins with the item's marker."""

    def add_heading(self, text: str, level: int) -> None:
        """Takes a heading of level 1 to 6."""

    def add_text(self, text: str) -> None:
        """Takes a paragraph, a list item or preformatted text."""

    def add_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Takes a table of data, its first row the header."""

    def add_image(self, description: str) -> None:
        """Takes a described picture."""


class HtmlWalk:
    """Walks a tree, at most 256 deep, and gives its blocks to a sink: inline text is collected until a block begins or
    ends."""

    def __init__(self, sink: BlockSink) -> None:
        self._sink = sink
        self._words: list[str] = []
        self._marker = ""
        self._term = ""
        self._lists: list[ListMarkers] = []

    def visit(self, element: Element) -> None:
        """Gives the element's blocks to the sink. Marks what is struck out in the tree."""
        mark_struck_text(element)
        self._visit_element(element)
        self._flush()
        self._flush_term()

    def _visit_element(self, element: Element) -> None:
        tag = element.tag
        if not isinstance(tag, str):
            return
        if tag == "br":
            self._words.append(_BREAK)
        elif tag == "img":
            self._words.append(_Picture(element.get("alt") or ""))
        elif tag == "input":
            self._words.append(read_shown_value(element))
        elif tag in SEPARATE:
            self._words.append(" ")
            self._visit_children(element)
            self._words.append(" ")
        elif tag in MOVED and (figure := write_moved_figure(element, "".join(self._words[-_CONTEXT:]))) is not None:
            self._words.append(figure)
        elif tag not in BLOCKS:  # a browser shows what it does not know as part of the line
            self._visit_children(element)
        else:
            self._flush()
            if tag in _BEHIND_TERMS:
                self._flush_term()
            self._add_block(element, tag)
            self._flush()

    def _add_block(self, element: Element, tag: str) -> None:
        if tag == "dt" and (term := _read_term(element)):
            self._term = f"{self._term}, {term}" if self._term else term
        elif tag in HEADINGS:
            self._sink.add_heading(extract_visible_text(element), int(tag[1]))
        elif tag == "pre":
            for line_break in element.iter("br"):
                line_break.tail = f"\n{line_break.tail or ''}"
            for part in element.iter("img", "input"):
                text = read_shown_value(part) if part.tag == "input" else part.get("alt", "")
                part.tail = f"{text}{part.tail or ''}"
            self._sink.add_text(element.text_content())
        elif tag == "table" and is_data_table(element):
            self._add_table(element)
        elif tag == "dl":
            self._visit_children(element)
            self._flush()
            self._flush_term()
        elif tag in {"ul", "ol", "menu"}:
            self._lists.append(ListMarkers(element))
            self._visit_children(element)
            self._flush()
            self._lists.pop()
        else:
            if tag == "li":
                self._marker = self._lists[-1].take(element) if self._lists else "- "
            self._visit_children(element)

    def _visit_children(self, element: Element) -> None:
        self._words.append(element.text or "")
        for child in element:
            self._visit_element(child)
            self._words.append(child.tail or "")

    def _add_table(self, element: Element) -> None:
        for text in iter_loose_texts(element):
            self._sink.add_text(text)
        self._sink.add_table(read_table_rows(element))
        for inner in list_nested_tables(element):
            self._add_table(inner)

    def _flush(self) -> None:
        words, images = _place_pictures(self._words)
        text = write_fractions(_collapse_whitespace(words))
        self._words.clear()
        if text:
            term = f"{self._term.rstrip(' :')}: " if self._term else ""
            self._sink.add_text(self._marker + term + text)
            self._marker = self._term = ""
        for image in images:
            self._sink.add_image(image)

    def _flush_term(self) -> None:
        if self._term:
            self._sink.add_text(self._term)
        self._term = ""


def _read_term(element: Element) -> str:
    """The term of a definition list that a definition follows; empty if it is more than a line of words."""
    following = element.getnext()
    if following is None or following.tag not in {"dt", "dd"}:
        return ""
    is_line = all(isinstance(one.tag, str) and one.tag not in _NO_TERM for one in element.iterdescendants())
    text = extract_visible_text(element) if is_line else ""
    return text if len(text) <= _MAX_TERM else ""


def _place_pictures(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """The words with the descriptions of pictures within a line, such as a formula, and of signs beside its text; the
    other descriptions."""
    placed: list[str] = []
    others: list[str] = []
    for is_break, group in groupby(words, key=lambda word: word == _BREAK):
        line = list(group)
        texts = [] if is_break else [at for at, word in enumerate(line) if word.strip() and type(word) is str]
        for at, word in enumerate(line):
            if not isinstance(word, _Picture):
                placed.append(word)
                continue
            is_sign = not any(map(str.isalnum, word))
            is_placed = bool(texts) and (is_sign or texts[0] < at < texts[-1])
            sign = f" {word} " if is_sign else f" [image: {word.strip()}]"
            placed.append(sign if is_placed else " ")
            if word.strip() and not is_placed:
                others.append(str(word))
    return placed, others


def _collapse_whitespace(words: Iterable[str]) -> str:
    """Collapses white space as a browser does, keeping explicit line breaks."""
    text = re.sub(r"\s+", " ", "".join(words))
    return "\n".join(line.strip() for line in text.split(_BREAK)).strip()
