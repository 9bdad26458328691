"""The numbers that PowerPoint writes before the paragraphs of numbered lists (DrawingML `a:buAutoNum`)."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.features.documents.engine.ingest.parsers.list_counts import format_count
from gateway.features.documents.engine.ingest.parsers.symbol_fonts import read_bullet

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_FORMATS = (
    ("alphaLc", "lowerLetter"), ("alphaUc", "upperLetter"), ("romanLc", "lowerRoman"), ("romanUc", "upperRoman"),
    ("arabic", "decimal"), ("circleNum", "decimalEnclosedCircle"),
)  # fmt: skip
_MARKS = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")")}


@dataclass
class SlideNumbers:
    """Counts the paragraphs of one text. `_open` holds by level the kind of list, its start and its last number."""

    styles: Element | None = None
    """The properties of each level that the text's shape has for its paragraphs (`a:lstStyle`)."""
    _open: dict[int, tuple[str, int, int]] = field(default_factory=dict)

    def format_number(self, paragraph: Element) -> str:
        """The number of the next paragraph, or a bullet that says something, with a space behind it; empty if it has
        neither.

        A list goes on over paragraphs of deeper levels, and ends with one of its own or of a higher level that is no
        part of it."""
        properties = paragraph.find("{*}pPr")
        level = properties.get("lvl", "0") if properties is not None else "0"
        place = int(level) if level.isdecimal() else 0
        self._open = {one: state for one, state in self._open.items() if one <= place}
        automatic = self._find_automatic(properties, place)
        if automatic is None:
            self._open.pop(place, None)
            return _read_bullet(properties)
        kind, given = automatic.get("type", ""), automatic.get("startAt", "1")
        start = int(given) if given.isdecimal() else 1
        before = self._open.get(place)
        count = before[2] + 1 if before is not None and before[:2] == (kind, start) else start
        self._open[place] = (kind, start, count)
        return _format(kind, count)

    def _find_automatic(self, properties: Element | None, place: int) -> Element | None:
        for one in () if properties is None else properties:
            if str(one.tag).endswith(("}buAutoNum", "}buNone", "}buChar", "}buBlip")):
                return one if one.tag.endswith("}buAutoNum") else None
        return None if self.styles is None else self.styles.find(f"{{*}}lvl{place + 1}pPr/{{*}}buAutoNum")


def _read_bullet(properties: Element | None) -> str:
    bullet = None if properties is None else properties.find("{*}buChar")
    if properties is None or bullet is None:
        return ""
    font = properties.find("{*}buFont")
    return read_bullet("" if font is None else font.get("typeface", ""), bullet.get("char", ""))


def _format(kind: str, count: int) -> str:
    name = next((name for head, name in _FORMATS if kind.startswith(head)), "decimal")
    left, right = next((marks for ending, marks in _MARKS.items() if kind.endswith(ending)), ("", ""))
    return f"{left}{format_count(count, name)}{right} "
