"""The numbers of list items and headings as Word shows them: levels, formats and texts such as `%1.%2`."""

import re
from dataclasses import dataclass, field

from docx.oxml.ns import qn

from gateway.features.documents.engine.ingest.parsers.list_counts import format_count
from gateway.features.documents.engine.ingest.parsers.symbol_fonts import read_bullet
from gateway.features.documents.engine.ingest.parsers.word_styles import Element, read_value

_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")


@dataclass(slots=True)
class _Level:
    """One level of a list. `bullet` is empty for an ornament; `restarts` is the number of the level, from 1, whose
    items restart it; 0 means none."""

    format: str = "bullet"
    bullet: str = ""
    text: str = ""
    start: int = 1
    restarts: int | None = None
    style: str = ""
    is_legal: bool = False


@dataclass(slots=True)
class _List:
    """A list: its levels, and the numbers of the last items by level, which lists of the same definition share."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


class ListNumbers:
    """Counts the items of lists; `root` is the element of `numbering.xml`, if there is one."""

    def __init__(self, root: Element | None) -> None:
        self._definitions: dict[str, Element] = {}
        self._numbers: dict[str, Element] = {}
        for element in () if root is None else root:
            if element.tag == qn("w:abstractNum"):
                self._definitions[element.get(qn("w:abstractNumId"), "")] = element
            elif element.tag == qn("w:num"):
                self._numbers[element.get(qn("w:numId"), "")] = element
        self._levels: dict[str, dict[int, _Level]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._lists: dict[str, _List] = {}
        self._begun: set[str] = set()

    def format_marker(self, number: str, level: str = "", style: str = "") -> str:
        """The marker of the next item of the list `number`, with a space behind it: `- `, `3. ` or `3.1(a) `.

        Without a `level`, that of the paragraph's `style` counts, else the first. Empty if it shows no marker.
        """
        if number in {"0", ""} or not number.isdecimal():
            return ""
        word_list = self._find_list(number)
        if word_list is None:
            return "- "
        if number not in self._begun:
            self._begun.add(number)
            self._override_starts(number, word_list)
        place = self._find_level(word_list, level, style)
        level_style = word_list.levels.get(place, _Level())
        if level_style.format == "bullet":
            return level_style.bullet or "- "
        self._count(word_list, place)
        text = _PLACE.sub(
            lambda match: self._format_place(word_list, int(match[1]) - 1, level_style), level_style.text
        ).strip()
        return f"{text} " if text else ""

    def _find_list(self, number: str) -> _List | None:
        element = self._numbers.get(number)
        name = read_value(element, "w:abstractNumId") if element is not None else ""
        definition = self._resolve_link(self._definitions.get(name))
        if definition is None:
            return None
        name = definition.get(qn("w:abstractNumId"), "")
        if number not in self._lists:
            if name not in self._levels:
                self._levels[name] = {place: _read_level(one) for place, one in _iter_levels(definition)}
            self._lists[number] = _List(dict(self._levels[name]), self._counts.setdefault(name, {}))
        return self._lists[number]

    def _resolve_link(self, definition: Element | None) -> Element | None:
        """The definition, or the one of the list style that it refers to."""
        link = read_value(definition, "w:numStyleLink") if definition is not None else ""
        linked = (one for one in self._definitions.values() if link and read_value(one, "w:styleLink") == link)
        return next(linked, definition)

    def _find_level(self, found: _List, level: str, style: str) -> int:
        if level.isdecimal():
            return min(int(level), _LEVELS - 1)
        return next((place for place, one in found.levels.items() if style and one.style == style), 0)

    def _override_starts(self, number: str, found: _List) -> None:
        """Applies what a list has of its own: other starts, and other levels."""
        for override in self._numbers[number].iter(qn("w:lvlOverride")):
            place = override.get(qn("w:ilvl"), "")
            if not place.isdecimal():
                continue
            own = override.find(qn("w:lvl"))
            if own is not None:
                found.levels[int(place)] = _read_level(own)
            start = read_value(override, "w:startOverride")
            if start.isdecimal():
                found.counts[int(place)] = int(start) - 1

    def _count(self, found: _List, place: int) -> None:
        """Counts an item, and restarts the levels below."""
        for above in range(place):
            found.counts.setdefault(above, found.levels.get(above, _Level()).start)
        start = found.levels.get(place, _Level()).start
        found.counts[place] = found.counts.get(place, start - 1) + 1
        for below in [one for one in found.counts if one > place]:
            restarts = found.levels.get(below, _Level()).restarts
            if restarts is None or restarts > place:
                del found.counts[below]

    def _format_place(self, found: _List, place: int, shown: _Level) -> str:
        level = found.levels.get(place, _Level())
        count = found.counts.get(place, level.start)
        return format_count(count, "decimal" if shown.is_legal else level.format)


def _iter_levels(definition: Element) -> list[tuple[int, Element]]:
    levels = [(one.get(qn("w:ilvl"), ""), one) for one in definition.iter(qn("w:lvl"))]
    return [(int(place), one) for place, one in levels if place.isdecimal()]


def _read_level(element: Element) -> _Level:
    start, restarts = read_value(element, "w:start"), read_value(element, "w:lvlRestart")
    text = element.find(qn("w:lvlText"))
    place = element.get(qn("w:ilvl"), "0")
    fonts = element.find(f"{qn('w:rPr')}/{qn('w:rFonts')}")
    return _Level(
        format=read_value(element, "w:numFmt") or "decimal",
        bullet=read_bullet("" if fonts is None else fonts.get(qn("w:ascii"), ""), read_value(element, "w:lvlText")),
        text=f"%{int(place) + 1 if place.isdecimal() else 1}." if text is None else text.get(qn("w:val"), ""),
        start=int(start) if start.isdecimal() else 1,
        restarts=int(restarts) if restarts.isdecimal() else None,
        style=read_value(element, "w:pStyle"),
        is_legal=element.find(qn("w:isLgl")) is not None,
    )
