"""Names of pictures that a page draws without an image, such as the ticks and stars of a table (Accessible Name 1.2).

They become images with that description.
"""

from typing import Any, TypeAlias

from agent.text.html.blocks import HEADINGS
from agent.text.html.styles import read_own_style
from agent.text.html.tables import BLOCKS

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_CONTROLS = frozenset({"a", "button", "label", "textarea", "select", "option", "meter", "progress"})
"""Their names say what they do, not what they show, as do those of pictures in them."""
_UNNAMED_IN = (*_CONTROLS, *HEADINGS)
"""Where pictures are signs beside the text, or for what a click does."""
_VOID = frozenset({"br", "hr", "input", "wbr"})
_SHOWN = ("input", "math", "table")


def name_drawing(drawing: Element) -> bool:
    """Puts an image in the place of an SVG drawing that is shown and has a name; whether it has one."""
    if drawing.get("hidden") is not None or read_own_style(drawing.get("style", "")).get("display") == "none":
        return False
    name = _read_name(drawing) or (drawing.findtext("title") or "").strip()
    if name and not _is_silent(drawing):
        _make_image(drawing, name)
    return bool(name) and drawing.tag == "img"


def name_pictures(body: Element) -> None:
    """Puts images in the place of the elements of a page that have a name and show nothing."""
    for element in body.xpath(".//*[@aria-label or @title]"):
        if element.tag in _VOID or (element.tag == "img" and element.get("alt") is not None):
            continue
        is_picture = element.get("role", "").lower() == "img" or element.tag not in BLOCKS | _CONTROLS
        if is_picture and (name := _read_name(element)) and not _shows(element) and not _is_silent(element):
            _make_image(element, name)


def _read_name(element: Element) -> str:
    """The name that an element gives itself. The `title` of one without a role is a hint, or data of programs."""
    hint = element.get("title", "") if element.get("role", "").lower() == "img" else ""
    return str(element.get("aria-label", "").strip() or hint.strip())


def _shows(element: Element) -> bool:
    return (
        bool(element.text_content().strip())
        or any(image.get("alt") for image in element.iter("img"))
        or next(element.iterdescendants(*_SHOWN), None) is not None
    )


def _is_silent(element: Element) -> bool:
    """Whether an element is for people who see it only, or belongs to a control or a heading."""
    if next(element.iterancestors(*_UNNAMED_IN), None) is not None:
        return True
    return any(one.get("aria-hidden") == "true" for one in (element, *element.iterancestors()))


def _make_image(element: Element, name: str) -> None:
    tail, style = element.tail, element.get("style")
    element.clear()
    element.tag, element.tail = "img", tail
    element.set("alt", name)
    if style:
        element.set("style", style)
