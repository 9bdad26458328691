"""The text that a page shows struck out, marked in its tree."""

from typing import Any, TypeAlias

from agent.text.html.styles import read_own_style
from agent.text.html.tables import BLOCKS
from agent.text.struck import MARK, strike_out

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_STRUCK = frozenset({"del", "s", "strike"})


def mark_struck_text(root: Element) -> None:
    """Puts marks around what is struck out below an element, block by block. Insertions stay as they are: they are what
    is valid."""
    marked: set[Element] = set()
    for element in root.iter("*"):
        if element.getparent() in marked:
            marked.add(element)
        elif _is_struck(element):
            _mark(element)
            marked.add(element)


def _is_struck(element: Element) -> bool:
    if element.tag in _STRUCK:
        return True
    style = element.get("style", "")
    if "line-through" not in style.lower():
        return False
    return "line-through" in read_own_style(style).get("text-decoration-line", "")


def _mark(element: Element) -> None:
    if next(element.iterdescendants(*BLOCKS), None) is None:
        if element.text_content().strip():
            _mark_line(element)
        return
    element.text = strike_out(element.text or "")
    for child in element:
        if isinstance(child.tag, str):
            _mark(child)
        child.tail = strike_out(child.tail or "")


def _mark_line(element: Element) -> None:
    """Marks an element that is part of one line, whatever is in it."""
    if not len(element):
        element.text = strike_out(element.text or "")
        return
    text = element.text or ""
    start = len(text) - len(text.lstrip())
    element.text = f"{text[:start]}{MARK}{text[start:]}"
    last = element[-1]
    tail = last.tail or ""
    end = len(tail.rstrip())
    last.tail = f"{tail[:end]}{MARK}{tail[end:]}"
