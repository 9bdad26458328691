"""Content controls of Word that are bound to data in the file: Word fills them from there when it opens the file, and
does not show the placeholders that are stored in them."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from docx.oxml.ns import qn
from lxml import etree  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.graphics import parse_xml

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_STORES = {
    "customXml": "",
    "core-properties": "{6C3C8BC8-F283-45AE-878A-BAB7291924A1}",
    "extended-properties": "{6668398D-A668-4E3E-A5EB-62B293D839F1}",
}
"""The kinds of parts with data, and the ids that Word has for them; custom XML has one in its properties."""
_STEP = re.compile(r"/(?:([\w.-]+):)?([\w.-]+)(?:\[(\d{1,6})\])?")
"""A step of the paths that Word writes: `/ns0:contract[1]`, `/ns0:notice[1]`."""
_MAPPING = re.compile(r"xmlns:([\w.-]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\")")


class _Store:
    """The elements of a part by the element that they are in, by name and by number from 1; each name also without its
    namespace, for paths that do not say it."""

    def __init__(self, root: Element, identifier: str) -> None:
        self.identifier = identifier.upper()
        self._children: dict[tuple[Element | None, str, int], Element] = {}
        self._add(None, [root])
        for parent in root.iter(etree.Element):
            self._add(parent, parent.iterchildren(etree.Element))

    def _add(self, parent: Element | None, children: Iterable[Element]) -> None:
        counts: Counter[str] = Counter()
        for child in children:
            for name in {str(child.tag), _get_name(child)}:
                counts[name] += 1
                self._children[parent, name, counts[name]] = child

    def read(self, path: str, namespaces: Mapping[str, str]) -> str | None:
        """The text of an element, empty if it has others in it; None if it is not there, or the path is of another
        kind."""
        element = None
        if _STEP.sub("", path):
            return None
        for prefix, name, number in _STEP.findall(path):
            full = f"{{{namespaces[prefix]}}}{name}" if prefix in namespaces else name
            element = self._children.get((element, full, int(number or 1)))
            if element is None:
                return None
        return "" if element is None or len(element) else (element.text or "").strip()


def fill_controls(part: Any, roots: Iterable[Element]) -> None:
    """Puts the data that controls are bound to in the place of their placeholders. Those of empty elements stay."""
    bound = [
        (one, bind) for root in roots for one in root.iter(qn("w:sdt")) if (bind := _find_binding(one)) is not None
    ]
    stores = list(_iter_stores(part)) if bound else []
    for control, binding in bound:
        path = str(binding.get(qn("w:xpath"), ""))
        mappings = _MAPPING.findall(binding.get(qn("w:prefixMappings"), ""))
        namespaces = {prefix: single or double for prefix, single, double in mappings}
        wanted = binding.get(qn("w:storeItemID"), "").upper()
        chosen = [one for one in stores if wanted and one.identifier == wanted] or stores
        values = (store.read(path, namespaces) for store in chosen)
        value = next((one for one in values if one is not None), "")
        texts = list(control.iter(qn("w:t"))) if value else []
        for place, text in enumerate(texts):
            text.text = "" if place else value


def _find_binding(control: Element) -> Element | None:
    """What says which data a control with a placeholder is bound to; None for other controls."""
    properties = control.find(qn("w:sdtPr"))
    if properties is None or properties.find(qn("w:showingPlcHdr")) is None:
        return None
    return properties.find(qn("w:dataBinding"))


def _iter_stores(part: Any) -> Iterator[_Store]:
    for relation in (*part.rels.values(), *part.package.rels.values()):
        kind = _get_kind(relation)
        if kind in _STORES and not relation.is_external:
            try:
                root = parse_xml(relation.target_part.blob)
            except etree.XMLSyntaxError:
                continue
            yield _Store(root, _STORES[kind] or _find_identifier(relation.target_part))


def _find_identifier(store: Any) -> str:
    """The id in the properties of custom XML; empty without one."""
    for relation in store.rels.values():
        if _get_kind(relation) == "customXmlProps" and not relation.is_external:
            with contextlib.suppress(etree.XMLSyntaxError):
                attributes = parse_xml(relation.target_part.blob).attrib
                return next((str(id_) for name, id_ in attributes.items() if name.rpartition("}")[2] == "itemID"), "")
    return ""


def _get_kind(relation: Any) -> str:
    return str(relation.reltype.rpartition("/")[2])


def _get_name(element: Element) -> str:
    return str(element.tag.rpartition("}")[2])
