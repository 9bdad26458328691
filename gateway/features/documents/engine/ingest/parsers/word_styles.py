"""Styles and list numbering of a Word document: what a paragraph has without saying so."""

from typing import Any, NamedTuple, TypeAlias

from docx.oxml.ns import qn

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_VALUE = qn("w:val")
_MAX_STYLES = 20
"""A longer chain of styles is circular."""


class Style(NamedTuple):
    """An outline level from 0 and the id of a list's numbering, each empty if there is none; whether its text is
    hidden."""

    outline: str = ""
    numbering: str = ""
    hidden: bool = False


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
        """Returns the style with this id; without one, that of paragraphs which name none."""
        key = name if name in self._elements else self._default
        if key not in self._read:
            self._read[key] = self._resolve(key)
        return self._read[key]

    def _resolve(self, name: str) -> Style:
        outline = numbering = ""
        hidden: bool | None = None
        style = self._elements.get(name)
        for _ in range(_MAX_STYLES):
            if style is None:
                break
            level = "0" if _read_value(style, "w:name") == "Title" else _read_value(style, "w:pPr/w:outlineLvl")
            outline = outline or level
            numbering = numbering or _read_value(style, "w:pPr/w:numPr/w:numId")
            vanish = style.find("/".join(map(qn, ("w:rPr", "w:vanish"))))
            hidden = is_on(vanish) if hidden is None and vanish is not None else hidden
            style = self._elements.get(_read_value(style, "w:basedOn"))
        return Style(outline, numbering, bool(hidden))


class ListNumbers:
    """Counts the items of numbered lists; `root` is the element of `numbering.xml`, if there is one."""

    def __init__(self, root: Element | None) -> None:
        self._root = root
        self._counts: dict[str, int] = {}
        self._formats: dict[str, str] = {}

    def format_marker(self, number: str) -> str:
        """Returns the marker of the next item of a list: `- `, or its number."""
        if number in {"0", ""} or not number.isdecimal():
            return ""
        if number not in self._formats:
            self._formats[number] = self._find_format(number)
        if self._formats[number] == "bullet":
            return "- "
        self._counts[number] = self._counts.get(number, 0) + 1
        return f"{self._counts[number]}. "

    def _find_format(self, number: str) -> str:
        """Returns `bullet` or a number format: that of the first level of the list's definition."""
        if self._root is None:
            return "bullet"
        found = self._root.xpath(f"./w:num[@w:numId={number}]/w:abstractNumId/@w:val")
        formats = (
            self._root.xpath(f"./w:abstractNum[@w:abstractNumId={found[0]}]/w:lvl/w:numFmt/@w:val")
            if found and found[0].isdecimal()
            else []
        )
        return str(formats[0]) if formats else "bullet"


def is_on(element: Element) -> bool:
    """Returns whether a property that is either on or off is on; without a value it is."""
    return element.get(_VALUE, "1") not in {"0", "false", "off"}


def _read_value(element: Element, path: str) -> str:
    found = element.find("/".join(map(qn, path.split("/"))))
    return "" if found is None else found.get(_VALUE, "")
