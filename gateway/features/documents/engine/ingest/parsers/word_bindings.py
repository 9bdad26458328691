"""Content controls of Word that are bound to data in the file: Word fills them from there when it opens the file, and
does not show the placeholders that are stored in them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from docx.oxml.ns import qn
from lxml import etree  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.graphics import parse_xml

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_STORES = frozenset({"customXml", "core-properties", "extended-properties"})
_STEP = re.compile(r"/(?:[\w.-]+:)?([\w.-]+)(?:\[(\d{1,6})\])?")
"""A step of the paths that Word writes: `/ns0:contract[1]`, `/ns0:notice[1]`."""


class _Store:
    """The elements of a part by the element that they are in, by name and by number from 1."""

    def __init__(self, root: Element) -> None:
        self._children: dict[tuple[Element | None, str, int], Element] = {(None, _get_name(root), 1): root}
        for parent in root.iter(etree.Element):
            counts: Counter[str] = Counter()
            for child in parent.iterchildren(etree.Element):
                name = _get_name(child)
                counts[name] += 1
                self._children[parent, name, counts[name]] = child

    def read(self, path: str) -> str:
        """The text of an element without others in it; empty if it is not there, or the path is of another kind."""
        element = None
        if _STEP.sub("", path):
            return ""
        for name, number in _STEP.findall(path):
            element = self._children.get((element, name, int(number or 1)))
            if element is None:
                return ""
        return "" if element is None or len(element) else (element.text or "").strip()


def fill_controls(part: Any, roots: Iterable[Element]) -> None:
    """Puts the data that controls are bound to in the place of their placeholders."""
    bound = [(one, path) for root in roots for one in root.iter(qn("w:sdt")) if (path := _find_path(one))]
    stores = list(_iter_stores(part)) if bound else []
    for control, path in bound:
        value = next(filter(None, (store.read(path) for store in stores)), "")
        texts = list(control.iter(qn("w:t"))) if value else []
        for place, text in enumerate(texts):
            text.text = "" if place else value


def _find_path(control: Element) -> str:
    """The path of the data that a control with a placeholder is bound to; empty for other controls."""
    properties = control.find(qn("w:sdtPr"))
    if properties is None or properties.find(qn("w:showingPlcHdr")) is None:
        return ""
    binding = properties.find(qn("w:dataBinding"))
    return "" if binding is None else str(binding.get(qn("w:xpath"), ""))


def _iter_stores(part: Any) -> Iterator[_Store]:
    for relation in (*part.rels.values(), *part.package.rels.values()):
        if relation.reltype.rpartition("/")[2] in _STORES and not relation.is_external:
            try:
                yield _Store(parse_xml(relation.target_part.blob))
            except etree.XMLSyntaxError:
                continue


def _get_name(element: Element) -> str:
    return str(element.tag.rpartition("}")[2])
