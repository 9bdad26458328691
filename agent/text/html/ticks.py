"""Ticks that a page draws without an input: by the roles of ARIA, or by an empty element, as exports of Notion have."""

from typing import Any, TypeAlias

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_ROLES = frozenset({"checkbox", "radio", "switch"})
_STATES = {"true": True, "false": False}
_CLASSES = {"checkbox-on": True, "checkbox-off": False}
_PLACES = frozenset({"li", "td", "th"})
"""Elements that place what they hold even if they are ticked themselves."""
_DRAWN = ".//*[@aria-checked or contains(@class, 'checkbox-o')]"


def write_ticks(root: Element) -> None:
    """Puts an input that shows the same at the start of each element that is ticked or may be."""
    for element in root.xpath(_DRAWN):
        is_ticked = _read_state(element)
        if is_ticked is None or element.tag == "input" or next(element.iterdescendants("input"), None) is not None:
            continue
        tick = element.makeelement("input", {"type": "checkbox"} | ({"checked": "checked"} if is_ticked else {}))
        if _is_empty(element):  # a box in its line, whatever element it is
            element.text = element.get("aria-label")
            element.tag = element.tag if element.tag in _PLACES else "span"
        element.text, tick.tail = None, element.text
        element.insert(0, tick)


def _read_state(element: Element) -> bool | None:
    """Whether an element is ticked; None if it does not say so."""
    if element.get("role", "").lower() in _ROLES:
        return _STATES.get(element.get("aria-checked", "").lower())
    names = element.get("class", "").split() if _is_empty(element) else ()
    return next((_CLASSES[name] for name in names if name in _CLASSES), None)


def _is_empty(element: Element) -> bool:
    return len(element) == 0 and not (element.text or "").strip()
