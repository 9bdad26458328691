"""The numbers of list items as a browser shows them: `start`, `value`, `reversed` and `type` (HTML, 4.4.5),
and `list-style` of their own."""

import re
from typing import Any, TypeAlias

from agent.text.html.styles import read_own_style
from agent.text.list_numbers import format_letters, format_roman

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_STYLE = re.compile(
    r"list-style(?:-type)?\s*+:[^;]{0,200}?\b(?P<name>none|decimal-leading-zero|decimal|(?:lower|upper)-[a-z]+)\b"
)
_STYLES = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
    "upper-roman": "I",
}
"""The `type` that says the same as a style."""
_INTEGER = re.compile(r"\s*([-+]?\d{1,9})")


class ListMarkers:
    """Counts the items of one list, of whatever kind."""

    def __init__(self, element: Element) -> None:
        is_ordered = element.tag == "ol"
        self._type = (element.get("type", "").strip() or "1") if is_ordered else ""
        self._style = _read_style(element) if is_ordered else ""
        self._step = find_step(element)
        self._next = find_start(element)

    def take(self, item: Element) -> str:
        """The marker of the next item, with a space behind it."""
        if not self._type:
            return "- "
        value = find_value(item)
        number = self._next if value is None else value
        self._next = number + self._step
        style = _read_style(item) or self._style
        if style == "none" or _is_box(item):
            return ""
        if style:
            return f"{format_counter(number, style)}. "
        return f"{_format(number, item.get('type', '').strip() or self._type)}. "


def find_step(element: Element) -> int:
    """What is added to the number of an item for that of the next one."""
    return -1 if element.tag == "ol" and element.get("reversed") is not None else 1


def find_start(element: Element) -> int:
    """The number of a list's first item."""
    start = _read_integer(element.get("start")) if element.tag == "ol" else None
    if start is not None:
        return start
    return sum(child.tag == "li" for child in element) if find_step(element) < 0 else 1


def find_value(item: Element) -> int | None:
    """The number that an item gives itself, if it does."""
    return _read_integer(item.get("value"))


def format_counter(number: int, style: str) -> str:
    """A number as a `list-style-type` writes it; in digits for those that are not known."""
    match style:
        case "none":
            return ""
        case "decimal-leading-zero":
            return f"{number:02}"
        case _:
            return _format(number, _STYLES.get(style, "1"))


def _read_style(element: Element) -> str:
    """The `list-style-type` that an element's style sets last; empty if it sets none."""
    styles = _STYLE.findall(element.get("style", "").lower())
    return str(styles[-1]) if styles else ""


def _is_box(item: Element) -> bool:
    """Whether an item is laid out as a box without a marker."""
    display = read_own_style(item.get("style", "")).get("display", "list-item")
    return display in ("block", "flex", "grid", "table")


def _read_integer(text: str | None) -> int | None:
    match = _INTEGER.match(text or "")
    return None if match is None else int(match[1])


def _format(number: int, kind: str) -> str:
    match kind:
        case "a" | "A" if number > 0:
            text = format_letters(number)
        case "i" | "I":
            text = format_roman(number)
        case _:
            return str(number)
    return text.upper() if kind.isupper() else text
