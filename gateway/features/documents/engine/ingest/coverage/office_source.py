"""Shared by Office files: their parts, read by the standard library's XML parser; charts and diagrams."""

import io
import posixpath
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from gateway.features.documents.engine.ingest.coverage.source_text import Cell, SourceText


def get_name(element: Element) -> str:
    """An element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def get_attribute(element: Element, name: str) -> str | None:
    """An attribute by its name without a namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


class Relation(NamedTuple):
    """A relationship of a part: the last word of its type, and the path of its target."""

    kind: str
    target: str


class Package:
    """The parts of an Office file. Its checks are those of the archive: sizes, and no document type declarations."""

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        self._places = {name.replace("\\", "/").lower(): name for name in self._archive.namelist()}
        """Where a part is, by its path in small letters."""

    def read(self, path: str) -> Element | None:
        """The element of a part; None if it is not there, or no XML."""
        if not self.has(path):
            return None
        try:
            return ET.fromstring(self._archive.read(self._places[path.lower()]))  # noqa: S314 - documents with declarations were refused
        except ET.ParseError:
            return None

    def holds(self, path: str, text: bytes) -> bool:
        """Whether a part is there and has these bytes."""
        return self.has(path) and text in self._archive.read(self._places[path.lower()])

    def has(self, path: str) -> bool:
        """Whether a part is there."""
        return path.lower() in self._places

    def open(self, path: str) -> "zipfile.ZipExtFile":
        """Opens a part as a stream."""
        return self._archive.open(self._places[path.lower()])  # type: ignore[return-value]  # typeshed says IO[bytes]

    def list_relations(self, path: str) -> Mapping[str, Relation]:
        """The relationships of a part by their ids, those to other places left out."""
        folder, name = posixpath.split(path)
        root = self.read(posixpath.join(folder, "_rels", f"{name}.rels"))
        relations: dict[str, Relation] = {}
        for one in () if root is None else root:
            target = one.get("Target", "")
            if one.get("TargetMode") != "External":
                full = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                relations[one.get("Id", "")] = Relation(one.get("Type", "").rpartition("/")[2], full)
        return relations

    def find_main_part(self) -> str:
        """The path of the main part; empty if there is none."""
        for relation in self.list_relations("").values():
            if relation.kind == "officeDocument":
                return relation.target
        return ""


def choose_branch(element: Element) -> Element:
    """The branch of an `mc:AlternateContent` that is shown: the first with anything in it."""
    return next((branch for branch in element if len(branch)), element)


def iter_text(element: Element) -> Iterator[str]:
    """Yields the paragraphs of DrawingML text (`a:p` with `a:t`)."""
    for paragraph in element.iter():
        if get_name(paragraph) == "p":
            parts = []
            for inner in paragraph.iter():
                name = get_name(inner)
                if name == "t":
                    parts.append(inner.text or "")
                elif name in {"br", "tab"}:
                    parts.append(" ")
            yield "".join(parts)


def add_graphic_parts(source: SourceText, package: Package, path: str, element: Element) -> None:
    """Counts the charts and diagrams that an element of a part refers to."""
    relations = package.list_relations(path)
    for reference in element.iter():
        name = get_name(reference)
        relation = get_attribute(reference, "dm" if name == "relIds" else "id") or ""
        if name in {"chart", "relIds"} and relation in relations:
            root = package.read(relations[relation].target)
            if root is not None:
                _add_diagram(source, root) if name == "relIds" else _add_chart(source, root)
                _add_shapes(source, package, relations[relation].target, root)


def _add_shapes(source: SourceText, package: Package, path: str, chart: Element) -> None:
    """Counts the text boxes on a chart."""
    numbers = {get_attribute(one, "id") for one in chart.iter() if get_name(one) == "userShapes"}
    for number, relation in package.list_relations(path).items():
        shapes = package.read(relation.target) if number in numbers else None
        for text in () if shapes is None else iter_text(shapes):
            source.add("text on a chart", text)


def _add_chart(source: SourceText, root: Element) -> None:
    """Counts the points of a chart, and its titles. Series with the same categories show them once."""
    categories = set()
    for series in root.iter():
        name = get_name(series)
        if name == "ser":
            for part in series:
                values = list(_iter_values(part))
                key = (get_name(part), *values)
                if get_name(part) in {"cat", "xVal"} and key in categories:
                    continue
                categories.add(key)
                is_number = any(get_name(one) in {"numCache", "numLit"} for one in part.iter())
                for value in values:
                    _add_point(source, value, is_number=is_number)
        elif name == "pt" and series.text and series.text.strip():  # charts of the kinds since 2016
            source.add("chart", _round(series.text))
        elif name == "trendline":
            source.add("chart", " ".join(one.text or "" for one in series if get_name(one) == "name"))
        elif name == "title":
            texts = list(iter_text(series))
            for text in texts or [one.text or "" for one in series.iter() if get_name(one) == "v"]:
                source.add("chart", text)


def _iter_values(part: Element) -> Iterator[str]:
    """Yields the values of a part of a series. The names of an outer level of categories are beside each point that
    they hold for."""
    levels = [one for one in part.iter() if get_name(one) == "lvl"]
    if len(levels) < 2:
        yield from (_read_value(point) for point in part.iter() if get_name(point) == "v")
        return
    inner = sorted(_get_place(point) for point in levels[0] if get_name(point) == "pt")
    bounds: set[int] = set()
    for level in reversed(levels):
        points = [point for point in level if get_name(point) == "pt"]
        bounds.update(map(_get_place, points))
        ends = sorted(bounds)
        for point in points:
            start = bisect_left(inner, _get_place(point))
            following = bisect_right(ends, _get_place(point))
            end = bisect_left(inner, ends[following]) if following < len(ends) else len(inner)
            for value in point:
                yield from [_read_value(value)] * (1 if level is levels[0] else max(end - start, 1))


def _get_place(point: Element) -> int:
    return int(point.get("idx") or 0)


def _add_point(source: SourceText, value: str, *, is_number: bool) -> None:
    """Counts a value. A number is compared as such: 0.175 may be 17.5%, 46082 a day, in a format of its own or in that
    of the cell which the chart refers to."""
    if is_number:
        try:
            source.add_cell("chart", Cell(number=float(value)))
        except ValueError:
            source.add("chart", value)
    else:
        source.add("chart", value)


def _add_diagram(source: SourceText, root: Element) -> None:
    for point in root.iter():
        if get_name(point) == "pt" and point.get("type") != "pres":
            for text in iter_text(point):
                source.add("diagram", text)


def _read_value(point: Element) -> str:
    return _round(point.text or "")


def _round(text: str) -> str:
    """A number with the 15 digits that programs show."""
    if len(text) <= 15:
        return text
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text
