"""White space where style sheets part what has none between it in the page: boxes of a line, such as prices in rows."""

from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from agent.text.html_styles import read_own_style
from agent.text.html_tables import BLOCKS

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_IN_LINE = frozenset({"", "inline", "contents", "none", "initial", "inherit", "unset", "revert", "revert-layer"})
_CONTAINERS = ("flex", "grid", "-box", "flexbox")
"""Ends of the values of `display` that make a box of each child (CSS Display 3, 2.7)."""
_TAKEN_OUT = {"float": ("left", "right", "inline-start", "inline-end"), "position": ("absolute", "fixed")}
"""Values by which an element leaves its line, and is a box of its own."""
_BOX_ROLES = frozenset(
    {"row", "cell", "gridcell", "columnheader", "rowheader", "listitem", "treeitem", "option", "tab", "heading"}
    | {"button", "menuitem", "term", "definition", "paragraph", "table", "list", "rowgroup"}
)
"""Roles of WAI-ARIA 1.2 whose elements are never parts of one word."""
_LINKS = frozenset({"a", "label"})
_PARTS = frozenset({"sup", "sub", "wbr", "rt", "rp"})
"""Elements that belong to the word before them, wherever a sheet puts them."""


class _Layout(NamedTuple):
    is_box: bool = False
    is_inline_box: bool = False
    is_container: bool = False
    is_transparent: bool = False


def part_boxes(body: Element) -> None:
    """Puts a space before and behind each element of a line that is laid out as a box. In preformatted text a box is a
    line."""
    for element in body.iter("*"):
        if element is not body and element.tag not in BLOCKS and element.tag not in _PARTS and _is_box(element):
            _set_apart(element, "\n" if next(element.iterancestors("pre"), None) is not None else " ")


def _is_box(element: Element) -> bool:
    layout = _read_layout(element.get("style", ""))
    if layout.is_inline_box and _is_letter(element):
        return False
    if layout.is_box or element.get("role") in _BOX_ROLES:
        return True
    parent = element.getparent()
    while parent is not None and _read_layout(parent.get("style", "")).is_transparent:
        parent = parent.getparent()
    is_item = parent is not None and _read_layout(parent.get("style", "")).is_container
    return is_item or _follows_its_like(element)


def _is_letter(element: Element) -> bool:
    """Whether an element is one of several letters that a page shows one by one, as moving headings do."""
    neighbours = [element.getnext() if not element.tail else None, element.getprevious()]
    if neighbours[1] is not None and neighbours[1].tail:
        neighbours[1] = None
    near = [one for one in neighbours if one is not None and isinstance(one.tag, str)]
    return bool(near) and all(len(one.text_content()) == 1 for one in (element, *near))


def _follows_its_like(element: Element) -> bool:
    """Whether a custom element or a link stands directly behind another one, with nothing between them.

    Pages give them the layout of boxes. A link that is in pieces leads to one place.
    """
    before = element.getprevious()
    if before is None or before.tail or not isinstance(before.tag, str):
        return False
    if element.tag in _LINKS:
        return before.tag == element.tag and not (element.get("href") and element.get("href") == before.get("href"))
    return "-" in element.tag and "-" in before.tag


@lru_cache(maxsize=2_000)
def _read_layout(style: str) -> _Layout:
    if not style:
        return _Layout()
    own = read_own_style(style)
    display = own.get("display", "")
    is_taken_out = any(own.get(name) in values for name, values in _TAKEN_OUT.items())
    return _Layout(
        is_box=is_taken_out or not _IN_LINE.issuperset(display.split()),
        is_inline_box=display.startswith("inline-") and not is_taken_out,
        is_container=display.endswith(_CONTAINERS),
        is_transparent=display == "contents",
    )


def _set_apart(element: Element, space: str) -> None:
    before, parent = element.getprevious(), element.getparent()
    if before is not None:
        before.tail = f"{before.tail or ''}{space}"
    elif parent is not None:
        parent.text = f"{parent.text or ''}{space}"
    element.tail = f"{space}{element.tail or ''}"
