"""Comments of a presentation: those of PowerPoint up to 2019 and those since, with their replies."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.graphics import Part, parse_xml

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_COMMENTS = "/comments"
"""The last part of the relationship's type, in both kinds."""


def iter_comments(part: Part) -> Iterator[str]:
    """Yields the text of each comment on a slide, and of each reply, in their order."""
    for relation in part.rels.values():
        if relation.is_external or not relation.reltype.endswith(_COMMENTS):
            continue
        try:
            root = parse_xml(relation.target_part.blob)
        except etree.XMLSyntaxError:
            continue
        for element in root.iter("{*}text", "{*}txBody"):
            if text := _read_text(element):
                yield text


def _read_text(element: Element) -> str:
    if element.tag.endswith("}text"):
        return " ".join((element.text or "").split())
    paragraphs = ("".join(run.text or "" for run in p.iter("{*}t")) for p in element.iter("{*}p"))
    return "\n".join(filter(None, paragraphs))
