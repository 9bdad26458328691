"""The text of a pptx by kind: slides in any shape, tables, notes, charts and diagrams."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from gateway.features.documents.engine.ingest.coverage.fractions import part_fractions
from gateway.features.documents.engine.ingest.coverage.office_source import (
    Package,
    add_graphic_parts,
    choose_branch,
    get_attribute,
    get_name,
    iter_text,
)
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_CONTROL = re.compile("_x00[01][0-9A-Fa-f]_")
"""Control characters, as XML writes them."""
_REPEATED = frozenset({"sldNum", "dt", "ftr", "hdr"})
"""Placeholders of a notes page that repeat."""


def read_source(data: bytes, _file_type: FileType, _encoding: str, _deadline: float) -> SourceText:
    """Counts the words of the slides and of their notes."""
    package = Package(data)
    main = package.find_main_part()
    source = SourceText()
    relations = package.list_relations(main)
    root = package.read(main)
    texts: set[str] = set()
    layouts: set[str] = set()
    for reference in () if root is None else root.iter():
        relation = relations.get(get_attribute(reference, "id") or "") if get_name(reference) == "sldId" else None
        # `id` of a slide is a number too, so that the relationship is the attribute that is one.
        relation = relation or next((relations[v] for v in reference.attrib.values() if v in relations), None)
        if get_name(reference) == "sldId" and relation is not None:
            slide = package.read(relation.target)
            if slide is None:
                continue
            _count_slide(source, package, relation.target, slide)
            layout = _find_above(package, relation.target, "slideLayout") if _shows_master(slide) else ""
            if layout and layout not in layouts:
                layouts.add(layout)
                _count_layout(source, package, layout, texts)
    return source


def _shows_master(slide: Element) -> bool:
    return slide.get("showMasterSp") not in {"0", "false"}


def _find_above(package: Package, path: str, kind: str) -> str:
    return next((one.target for one in package.list_relations(path).values() if one.kind == kind), "")


def _count_layout(source: SourceText, package: Package, path: str, seen: set[str]) -> None:
    """Counts the texts that slides show of their layout and its master, each once."""
    layout = package.read(path)
    master = package.read(_find_above(package, path, "slideMaster"))
    for part in (layout, master if layout is not None and _shows_master(layout) else None):
        for text in () if part is None else _iter_layout_texts(part):
            if text not in seen:
                source.add("slide layout", text)
            seen.add(text)


def _iter_layout_texts(element: Element) -> Iterator[str]:
    """Yields the text of each shape but placeholders."""
    for child in element:
        name = get_name(child)
        if name == "AlternateContent":
            yield from _iter_layout_texts(choose_branch(child))
        elif name in {"sp", "grpSp"} and _is_hidden(child):
            continue
        elif name == "sp":
            runs = [t.text or "" for one in child.iter() if get_name(one) == "r" for t in one if get_name(t) == "t"]
            is_own = not any(get_name(one) == "ph" for one in child.iter())
            if is_own and any(map(str.isalnum, "".join(runs))):  # a number of the slide alone is a field
                yield "\n".join(iter_text(child))
        else:
            yield from _iter_layout_texts(child)


def _count_slide(source: SourceText, package: Package, path: str, slide: Element) -> None:
    _count(source, slide, "slide text")
    add_graphic_parts(source, package, path, slide)
    for relation in package.list_relations(path).values():
        part = package.read(relation.target) if relation.kind in {"notesSlide", "comments"} else None
        if part is not None and relation.kind == "comments":
            _count_comments(source, part)
        elif part is not None:
            _count_notes(source, part)


def _count_notes(source: SourceText, notes: Element) -> None:
    for shape in notes.iter():
        if get_name(shape) == "graphicFrame":
            _count(source, shape, "notes")
        if get_name(shape) != "sp":
            continue
        kind = next((get_attribute(p, "type") for p in shape.iter() if get_name(p) == "ph"), None)
        if kind not in _REPEATED:
            _count(source, shape, "notes")
        else:
            inner = SourceText()
            _count(inner, shape, "text")
            if repeated := sum(counter.total() for counter in inner.words.values()):
                source.omitted["repeated header"] += repeated


def _count_comments(source: SourceText, part: Element) -> None:
    """Counts comments of both kinds: a `text` alone, or paragraphs of DrawingML."""
    for one in part.iter():
        if get_name(one) == "text":
            source.add("comment", one.text or "")
    _count(source, part, "comment")


def _count(source: SourceText, element: Element, kind: str) -> None:
    for child in element:
        name = get_name(child)
        if name == "AlternateContent":
            _count(source, choose_branch(child), kind)
        elif _is_hidden(child):
            source.omit("hidden shape", " ".join(iter_text(child)))
        elif name == "p" and "drawingml" in child.tag:
            _count_paragraph(source, child, kind)
        else:
            _count(source, child, "table" if name == "tbl" else kind)


def _is_hidden(shape: Element) -> bool:
    return any(get_name(one) == "cNvPr" and one.get("hidden") in {"1", "true"} for head in shape for one in head)


def _count_paragraph(source: SourceText, paragraph: Element, kind: str) -> None:
    part_fractions(paragraph)
    parts: list[str] = []
    copies = {id(one) for branch in paragraph.iter() if get_name(branch) == "Fallback" for one in branch.iter()}
    for one in paragraph.iter():
        if id(one) in copies:
            continue
        name = get_name(one)
        if name == "t" and "/math}" in one.tag:
            source.add_loose("equation", one.text or "")
            parts.append(" ")
        elif name == "t":
            parts.append(_CONTROL.sub(" ", one.text or ""))
        elif name in {"br", "tab"}:
            parts.append(" ")
    source.add(kind, "".join(parts))
