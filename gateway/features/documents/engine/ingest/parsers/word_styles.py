"""Styles of a Word document: what a paragraph has without saying so."""

import re
from typing import Any, NamedTuple, TypeAlias

from docx.oxml.ns import qn

from agent.text.superscripts import RISES

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_VALUE = qn("w:val")
_MAX_STYLES = 20
"""A longer chain of styles is circular."""
_BUILT_IN_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
"""The names of Word's own headings, in every language of its menus. They are headings without saying so."""


class Style(NamedTuple):
    """An outline level from 0, the id and the level of a list, each empty if there is none; whether its text is hidden
    or struck out, and how far it is raised. `name` is the id of the style that says which list."""

    outline: str = ""
    numbering: str = ""
    hidden: bool = False
    level: str = ""
    name: str = ""
    rise: int = 0
    is_struck: bool = False


class Styles:
    """The styles of a document; `root` is the element of `styles.xml`, if there is one."""

    def __init__(self, root: Element | None) -> None:
        self._elements: dict[str, Element] = {}
        self._default = ""
        self._read: dict[str, Style] = {}
        for style in () if root is None else root.iter(qn("w:style")):
            name = style.get(qn("w:styleId"), "")
            self._elements.setdefault(name, style)
            if style.get(qn("w:type")) == "paragraph" and style.get(qn("w:default")) in {"1", "true", "on"}:
                self._default = self._default or name

    def find(self, name: str | None) -> Style:
        """The style with this id; without one, that of paragraphs which name none."""
        key = name if name in self._elements else self._default
        if key not in self._read:
            self._read[key] = self._resolve(key)
        return self._read[key]

    def _resolve(self, name: str) -> Style:
        outline = numbering = list_level = named = align = ""
        hidden: bool | None = None
        struck: bool | None = None
        style = self._elements.get(name)
        for _ in range(_MAX_STYLES):
            if style is None:
                break
            outline = outline or read_value(style, "w:pPr/w:outlineLvl") or _get_built_in_level(style)
            list_level = list_level or read_value(style, "w:pPr/w:numPr/w:ilvl")
            if not numbering and (numbering := read_value(style, "w:pPr/w:numPr/w:numId")):
                named = style.get(qn("w:styleId"), "")
            vanish = style.find("/".join(map(qn, ("w:rPr", "w:vanish"))))
            align = align or read_value(style, "w:rPr/w:vertAlign")
            hidden = is_on(vanish) if hidden is None and vanish is not None else hidden
            properties = style.find(qn("w:rPr"))
            struck = read_struck(properties) if struck is None and properties is not None else struck
            style = self._elements.get(read_value(style, "w:basedOn"))
        return Style(outline, numbering, bool(hidden), list_level, named, RISES.get(align, 0), bool(struck))


def _get_built_in_level(style: Element) -> str:
    """The outline level, from 0, of a heading or title of Word's own; empty for other styles."""
    name = read_value(style, "w:name").partition(",")[0].strip()  # behind the comma are further names
    match = _BUILT_IN_HEADING.fullmatch(name)
    return str(int(match[1]) - 1) if match else "0" if name.casefold() == "title" else ""


def is_on(element: Element) -> bool:
    """Whether a property that is either on or off is on; without a value it is."""
    return element.get(_VALUE, "1") not in {"0", "false", "off"}


def read_struck(properties: Element) -> bool | None:
    """Whether properties of text strike it out; None if they do not say."""
    marks = [one for name in ("w:strike", "w:dstrike") if (one := properties.find(qn(name))) is not None]
    return any(map(is_on, marks)) if marks else None


def read_value(element: Element, path: str) -> str:
    """The value of the element at a path, or an empty string."""
    child = element.find("/".join(map(qn, path.split("/"))))
    return "" if child is None else child.get(_VALUE, "")
