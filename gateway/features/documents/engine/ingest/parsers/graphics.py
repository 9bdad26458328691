"""Charts and SmartArt of Office files: a chart is a table of its values, SmartArt a list of its texts."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from agent.workbooks.number_formats import GENERAL, classify_format, format_number
from gateway.features.documents.engine.ingest.parsers.draft import Box, Draft

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

CHOICES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_CHART_15 = "{http://schemas.microsoft.com/office/drawing/2012/chart}"
_CHART_EX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_TEXTS = (f"{DRAWING}t", f"{DRAWING}br")
_MOMENTS = frozenset({"date", "time", "datetime", "duration"})
_MAX_POINTS = 100_000
_MAX_DEPTH = 20
"""Levels of a SmartArt that are followed; deeper ones are circular."""


class Part(Protocol):
    """A part of an Office package, as python-docx and python-pptx have it."""

    @property
    def rels(self) -> Any:
        """The part's relationships by their ids."""

    @property
    def blob(self) -> bytes:
        """The part's bytes."""


class Cells(Protocol):
    """The workbook that a chart is in: what the chart shows that stores only where its values are."""

    def show_area(self, reference: str) -> Sequence[Sequence[str]]:
        """The cells of an area row by row."""

    def get_area_format(self, reference: str) -> str:
        """The format of an area's first value."""


class Chart(NamedTuple):
    """A chart: its title and other labels, and its values, the first row being the names of the series."""

    labels: tuple[str, ...]
    tables: tuple[list[list[str]], ...]


def add_graphics(
    draft: Draft,
    element: Element,
    part: Part,
    page: int | None = None,
    box: Box | None = None,
    *,
    cells: Cells | None = None,
) -> bool:
    """Adds the charts and the SmartArt that an element of a part refers to. Returns whether there are any."""
    has_any = False
    for reference in element.iter(f"{_CHART}chart", f"{_CHART_EX}chart", f"{_DIAGRAM}relIds"):
        name = "dm" if reference.tag.startswith(_DIAGRAM) else "id"
        data = _load(part, reference.get(f"{_RELATIONS}{name}"))
        if data is None:
            draft.uncertainties.append("a chart or diagram is not in the file")
        elif name == "dm":
            has_any = True
            for depth, text in iter_diagram_texts(data):
                draft.add_text(f"{'  ' * depth}- {text}", page, box)
        else:
            has_any = True
            chart = read_chart(data, cells)
            if not any(map(_has_values, chart.tables)):
                draft.uncertainties.append("a chart stores no values: they were not read")
            if unnamed := sum(not row[0] and any(row) for rows in chart.tables for row in rows[1:]):
                draft.uncertainties.append(f"a chart stores no names of some values: rows without a name: {unnamed}")
            add_chart(draft, chart, page, box)
            _add_shapes_of_chart(draft, data, part.rels[reference.get(f"{_RELATIONS}id")].target_part, page, box)
    return has_any


def _add_shapes_of_chart(draft: Draft, data: Element, chart: Part, page: int | None, box: Box | None) -> None:
    """Adds the text boxes that somebody drew on a chart."""
    for reference in data.iter(f"{_CHART}userShapes"):
        shapes = _load(chart, reference.get(f"{_RELATIONS}id"))
        if shapes is not None:
            draft.add_text("\n".join(iter_drawn_lines(shapes)), page, box)


def add_chart(draft: Draft, chart: Chart, page: int | None = None, box: Box | None = None) -> None:
    """Adds a chart's labels as a paragraph and its values as tables."""
    draft.add_text("\n".join(chart.labels), page, box)
    for rows in chart.tables:
        draft.add_table(rows, page, box)


def _has_values(rows: Sequence[Sequence[str]]) -> bool:
    return any(cell for row in rows[1:] for cell in row[1:])


def iter_drawn_lines(body: Element) -> Iterator[str]:
    """Yields the paragraphs of a text in DrawingML that have words."""
    for paragraph in body.iter(f"{DRAWING}p"):
        text = "".join("\n" if one.tag == f"{DRAWING}br" else one.text or "" for one in paragraph.iter(*_TEXTS))
        if text.strip():
            yield text


def _load(part: Part, relation: str | None) -> Element | None:
    try:
        return parse_xml(part.rels[relation].target_part.blob)
    except (KeyError, ValueError, AttributeError, etree.XMLSyntaxError):
        return None


def parse_xml(data: bytes) -> Element:
    """Parses a part of a package without entities and network."""
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False))


def read_chart(root: Element, cells: Cells | None = None) -> Chart:
    """Reads the part of a chart, of the older kinds or of those since 2016. `cells` are of the workbook it is in."""
    labels = tuple(dict.fromkeys(text for title in root.iter() if (text := _read_label(title))))
    if root.tag.startswith(_CHART_EX):
        return Chart(labels, tuple(_iter_new_tables(root)))
    return Chart(labels, tuple(_iter_tables(root, _Points(root, cells))))


def _read_label(element: Element) -> str:
    """The text of a title, of a trend line or of a data label that somebody wrote."""
    if element.tag == f"{_CHART}trendline":
        return str(element.findtext(f"{_CHART}name", ""))
    if not isinstance(element.tag, str) or element.tag.rpartition("}")[2] not in {"title", "dLbl", "dispUnitsLbl"}:
        return ""
    paragraphs = ["".join(map(_read_run, p.iter(f"{DRAWING}t"))) for p in element.iter(f"{DRAWING}p")]
    text = " ".join(filter(None, paragraphs))
    return text or " ".join(v.text or "" for v in element.iter(f"{_CHART}v", f"{_CHART_EX}v"))


def _read_run(run: Element) -> str:
    """The text of a run; of a field of a label it is only the name of what is shown, such as `[CELLRANGE]`."""
    text = run.text or ""
    is_name = run.getparent().tag == f"{DRAWING}fld" and text.startswith("[") and text.endswith("]")
    return "" if is_name else text


def _iter_tables(root: Element, points: "_Points") -> Iterator[list[list[str]]]:
    """Yields a table for all series with the same categories."""
    groups: list[tuple[list[str] | None, str, list[tuple[str, list[str]]]]] = []
    for series in root.iter(f"{_CHART}ser"):
        name = " ".join(points.read(series.find(f"{_CHART}tx")))
        across = series.find(f"{_CHART}xVal")
        named = series.find(f"{_CHART}cat") if across is None else across
        categories = None if named is None else points.read(named)
        head = "x" if across is not None else ""
        columns = [(name, points.read(series.find(f"{_CHART}{tag}"))) for tag in ("val", "yVal", "bubbleSize")]
        columns.append(("label", points.read(next(series.iter(f"{_CHART_15}dlblRangeCache"), None))))
        same_group = next((group for group in groups if group[0] == categories and group[1] == head), None)
        if same_group is None:
            same_group = (categories, head, [])
            groups.append(same_group)
        same_group[2].extend((name, values) for name, values in columns if values)
    for categories, head, columns in groups:
        yield _make_table(categories, head, columns)


def _iter_new_tables(root: Element) -> Iterator[list[list[str]]]:
    names = [" ".join(v.text or "" for v in series.iter(f"{_CHART_EX}v")) for series in root.iter(f"{_CHART_EX}series")]
    for index, data in enumerate(root.iter(f"{_CHART_EX}data")):
        texts = [_read_new_points(level) for level in data.iter(f"{_CHART_EX}lvl") if _is_text(level)]
        numbers = [_read_new_points(level) for level in data.iter(f"{_CHART_EX}lvl") if not _is_text(level)]
        categories = _join_levels(texts[::-1])
        name = names[index] if index < len(names) else ""
        yield _make_table(categories, "", [(name, values) for values in numbers])


def _is_text(level: Element) -> bool:
    return bool(level.getparent().tag == f"{_CHART_EX}strDim")


def _read_new_points(level: Element) -> list[str]:
    return _place_points(level.findall(f"{_CHART_EX}pt"), lambda point: point.text or "")


def _make_table(
    categories: Sequence[str] | None, head: str, columns: Sequence[tuple[str, list[str]]]
) -> list[list[str]]:
    """The rows of a chart. It numbers them itself where it has no categories."""
    length = max((len(values) for _, values in columns), default=0)
    names = list(map(str, range(1, length + 1))) if categories is None else categories
    length = max(length, len(names))
    rows = [[head, *(name for name, _ in columns)]]
    for index in range(length):
        cells = [names[index] if index < len(names) else ""]
        rows.append(cells + [values[index] if index < len(values) else "" for _, values in columns])
    return rows


class _Points:
    """Reads what the references of a chart store, else what the cells say that they name."""

    def __init__(self, root: Element, cells: Cells | None) -> None:
        self._cells = cells
        epoch = root.find(f"{_CHART}date1904")
        self._date1904 = epoch is not None and epoch.get("val", "1") in {"1", "true"}

    def read(self, element: Element | None) -> list[str]:
        """The values of a reference, or the value in the chart itself."""
        if element is None:
            return []
        levels = element.findall(f".//{_CHART}lvl")
        if levels:
            return _join_levels([self._read_cache(level) for level in reversed(levels)])
        reference = element.findtext(f".//{_CHART}f", "")
        if element.find(f".//{_CHART}pt") is not None:
            return self._read_cache(element, reference)
        values = [value.text for value in element.iter(f"{_CHART}v") if value.text]
        if values or self._cells is None:
            return values
        rows = self._cells.show_area(reference)
        is_upright = len(rows) >= max(map(len, rows), default=0)  # more points than levels
        return _join_levels(list(map(list, zip(*rows, strict=True))) if is_upright else rows)

    def _read_cache(self, element: Element, reference: str = "") -> list[str]:
        common = element.findtext(f".//{_CHART}formatCode", "")
        if common in {"", GENERAL} and self._cells is not None:  # not every program copies the format of the cells
            common = self._cells.get_area_format(reference)

        def read(point: Element) -> str:
            text = "".join(value.text or "" for value in point.iter(f"{_CHART}v"))
            return format_value(text, point.get("formatCode") or common, date1904=self._date1904)

        return _place_points(list(element.iter(f"{_CHART}pt")), read)


def _join_levels(levels: Sequence[Sequence[str]]) -> list[str]:
    """The names of points by their levels from the outermost one, whose names hold up to the next ones there."""
    names = []
    current = [""] * len(levels)
    for index in range(max(map(len, levels), default=0)):
        for depth, level in enumerate(levels):
            text = level[index] if index < len(level) else ""
            if text or depth == len(levels) - 1:
                current[depth:] = [text, *[""] * (len(levels) - depth - 1)]
        names.append(" / ".join(filter(None, current)))
    return names


def _place_points(points: Sequence[Element], read: Any) -> list[str]:
    """The points at the places that they name; places without a point are empty."""
    placed: dict[int, str] = {}
    for order, point in enumerate(points):
        index = point.get("idx", "")
        place = int(index) if index.isdecimal() and len(index) < 7 else order
        if place < _MAX_POINTS:
            placed[place] = read(point)
    return [placed.get(index, "") for index in range(max(placed, default=-1) + 1)]


def format_value(text: str, code: str = "", *, date1904: bool = False) -> str:
    """A stored number as a chart means it: 0.175 in a format of percent is 17.5%, 46082 in one of dates a day.

    Digits that no program shows go (0.17499999999999999 is 0.175); others stay, also where the format rounds.
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    if classify_format(code) in _MOMENTS:
        return format_number(number, code, date1904=date1904)
    if "%" in code:
        return f"{number * 100:.15g}%"
    return f"{number:.15g}" if len(text) > 15 else text


def iter_diagram_texts(root: Element) -> Iterator[tuple[int, str]]:
    """Yields the depth and the text of each point of a SmartArt, in the order of its outline."""
    points = {point.get("modelId"): point for point in root.iter(f"{_DIAGRAM}pt")}
    children: dict[str, list[tuple[int, str]]] = {}
    below = set()
    for link in root.iter(f"{_DIAGRAM}cxn"):
        if link.get("type", "parOf") == "parOf":
            order = link.get("srcOrd", "0")
            child = link.get("destId", "")
            children.setdefault(link.get("srcId", ""), []).append((int(order) if order.isdecimal() else 0, child))
            below.add(child)
    seen: set[str] = set()

    def visit(name: str, depth: int) -> Iterator[tuple[int, str]]:
        if name in seen or depth > _MAX_DEPTH:
            return
        seen.add(name)
        text = _read_point_text(points.get(name))
        if text:
            yield max(depth, 0), text
        for _, child in sorted(children.get(name, ())):
            yield from visit(child, depth + 1)

    for name, point in points.items():
        if name not in below:
            yield from visit(name, -1 if point.get("type") == "doc" else 0)
    for name in points:  # what a damaged outline does not reach
        yield from visit(name, 0)


def _read_point_text(point: Element | None) -> str:
    if point is None or point.get("type") == "pres":
        return ""
    body = point.find(f"{_DIAGRAM}t")
    if body is None:
        return ""
    return " ".join(" ".join(iter_drawn_lines(body)).split())


def choose_content(element: Element) -> Element:
    """The branch of an `mc:AlternateContent` that is shown: the first choice that has anything, else the
    fall-back for old programs."""
    branches = [child for child in element if child.tag in {f"{CHOICES}Choice", f"{CHOICES}Fallback"}]
    return next((branch for branch in branches if len(branch)), element)
