"""The storage format of Confluence, which its exports and its API have, as a page shows it.

It is XHTML with elements of its own: tasks, macros with plain text in sections, links and pictures that only have
attributes.
"""

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, TypeAlias

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_SIGN = re.compile(r"<ac:(?:structured-macro|macro|task-list|link|image|layout|plain-text-body|emoticon)\b")
_EMPTY = re.compile(r"<((?:ac|ri):[\w-]+|time)\b((?:[^<>\"'/]|/(?!>)|\"[^<\"]*\"|'[^<']*')*+)/>")
_SECTION_START, _SECTION_END = "<![CDATA[", "]]>"
_SHOWN_PARAMETERS = frozenset({"title", "key", "label", "name", "date", "subtle-title"})
"""Parameters of macros that are texts of the page; others say how it looks, such as `language` and `colour`."""
_UNSEEN = frozenset(
    {"ac:task-id", "ac:task-uuid", "ac:placeholder", "ac:adf-attribute", "ac:default-parameter", "ac:parameter"}
)
_TAGS = {
    "ac:task-list": "ul",
    "ac:task": "li",
    "ac:task-status": "input",
    "ac:plain-text-body": "pre",
    "ac:rich-text-body": "div",
    "ac:structured-macro": "div",
    "ac:macro": "div",
    "ac:layout": "div",
    "ac:layout-section": "div",
    "ac:layout-cell": "div",
    "ac:caption": "div",
    "ac:adf-node": "div",
    "ac:adf-content": "div",
}
_IN_LINE = frozenset({"status", "jira", "date", "anchor", "profile", "view-file"})
"""Macros that are a part of their line."""
_TARGETS = ("ri:content-title", "ri:filename", "ri:value", "ri:space-key")
"""What names the target of a link that has no text."""
_PEOPLE = ("ri:username", "ri:account-id", "ri:userkey")
"""What names a person that a page mentions: only Confluence has the full name."""


def is_storage_format(text: str) -> bool:
    """Whether a page is in the storage format."""
    return _SIGN.search(text) is not None


def close_empty_elements(text: str) -> str:
    """The text of a page in the storage format with an end for each element that has no content: parsers of HTML know
    no others than those of HTML."""
    return _EMPTY.sub(r"<\1\2></\1>", text)


def escape_sections(text: str) -> str:
    """The text of an XML page with its sections of plain text as HTML writes them."""
    pieces: list[str] = []
    place = 0
    while (start := text.find(_SECTION_START, place)) >= 0:
        end = text.find(_SECTION_END, start)
        if end < 0:  # nor do the sections behind it end: a search for each would read the page as often
            break
        pieces += (text[place:start], escape(text[start + len(_SECTION_START) : end]))
        place = end + len(_SECTION_END)
    return "".join((*pieces, text[place:]))


def rewrite_elements(root: Element) -> None:
    """Writes the elements of the storage format as those of HTML that show the same."""
    for element in [one for one in root.iter("*") if isinstance(one.tag, str)]:
        if element.tag == "ac:task-status":
            _write_tick(element)
        elif element.tag == "ac:image":
            _write_picture(element)
        elif element.tag in _NAMES and not element.text_content().strip():
            element.text = _NAMES[element.tag](element)
        elif _is_unseen(element):
            element.drop_tree()
        else:
            element.tag = _find_tag(element)


def _is_unseen(element: Element) -> bool:
    is_shown = element.tag == "ac:parameter" and element.get("ac:name") in _SHOWN_PARAMETERS
    is_repeated = element.tag == "ac:adf-fallback" and element.getprevious() is not None
    return (element.tag in _UNSEEN and not is_shown) or is_repeated


def _find_tag(element: Element) -> str:
    """The element of HTML that is shown alike; its own one for all others."""
    if element.tag == "ac:parameter":
        return "span" if element.getparent().get("ac:name") in _IN_LINE else "p"
    is_in_line = element.tag in {"ac:structured-macro", "ac:macro"} and element.get("ac:name") in _IN_LINE
    return "span" if is_in_line else _TAGS.get(element.tag, str(element.tag))


def _write_tick(element: Element) -> None:
    is_done = element.text_content().strip() == "complete"
    element.clear()
    element.tail = " "
    element.tag = "input"
    element.set("type", "checkbox")
    if is_done:
        element.set("checked", "checked")


def _write_picture(element: Element) -> None:
    """A picture by its description; its caption is a line below it."""
    description = element.get("ac:alt") or element.get("ac:title") or _name_target(element)
    element.tag = "div"
    picture = element.makeelement("img", {"alt": description})
    element.insert(0, picture)


def _name_target(element: Element) -> str:
    """The name of what a link or a picture leads to."""
    targets = (one.get(name) for one in element.iter("*") for name in _TARGETS)
    people = (f"@{one.get(name)}" for one in element.iter("*") for name in _PEOPLE if one.get(name))
    return next(filter(None, targets), "") or next(people, "") or element.get("ac:anchor") or ""


_NAMES: Mapping[str, Callable[[Element], str]] = {
    "ac:link": _name_target,
    "ac:emoticon": lambda element: element.get("ac:emoji-fallback") or "",
    "time": lambda element: element.get("datetime") or "",
}
"""What elements without a text show."""
