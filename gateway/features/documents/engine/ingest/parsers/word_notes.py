"""The parts of a Word document beside its body: foot- and endnotes, comments, headers and footers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from docx.oxml import parse_xml
from docx.oxml.ns import qn
from lxml import etree  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.graphics import Part
from gateway.features.documents.engine.ingest.parsers.word_inline import NoteReference
from gateway.features.documents.engine.ingest.parsers.word_styles import is_on

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_LABELS = {"footnote": "Footnote", "endnote": "Endnote", "comment": "Comment"}
_PAGE_DIGITS = 4
"""Converters write the number of a page as plain text; a longer one is that of a document."""
_PARTS = {"footnote": "footnotes", "endnote": "endnotes", "comment": "comments"}


class FoundPart(NamedTuple):
    """A part that another one is related to, and the element that it holds."""

    part: Part
    root: Element


class Note(NamedTuple):
    """A note, comment, header or footer: what it is called, and where its content stands."""

    kind: str
    label: str
    element: Element
    part: Part


@dataclass
class Notes:
    """The notes and comments of a document by kind and id. Each is taken once, and numbered then."""

    notes: dict[tuple[str, str], Note]
    damaged: list[str] = field(default_factory=list)
    """The kinds whose part is not XML."""
    _counts: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(part: Part) -> "Notes":
        """The notes that the main part refers to."""
        notes: dict[tuple[str, str], Note] = {}
        damaged: list[str] = []
        for kind, name in _PARTS.items():
            part_root = find_part(part, name)
            if part_root is None and any(one.reltype.endswith(f"/{name}") for one in part.rels.values()):
                damaged.append(name)
            for element in () if part_root is None else part_root.root.iter(qn(f"w:{kind}")):
                if part_root is not None and element.get(qn("w:type"), "normal") == "normal":
                    label = _LABELS[kind]
                    if kind == "comment" and (author := element.get(qn("w:author"))):
                        label = f"Comment by {author}"
                    notes.setdefault((kind, element.get(qn("w:id"), "")), Note(kind, label, element, part_root.part))
        return Notes(notes, damaged)

    def take(self, reference: NoteReference) -> Note | None:
        """The note of a reference, numbered; None for one that is missing or was taken before."""
        note = self.notes.pop((reference.kind, reference.id), None)
        if note is None or note.kind == "comment":
            return note
        self._counts[note.kind] = self._counts.get(note.kind, 0) + 1
        return note._replace(label=f"{note.label} {self._counts[note.kind]}")

    def take_open_comments(self) -> Iterator[Note]:
        """Yields the comments that were not taken. Notes without a reference are not shown by Word."""
        for key in [key for key in self.notes if key[0] == "comment"]:
            yield self.notes.pop(key)


def find_part(part: Part, name: str) -> FoundPart | None:
    """The part that is related as `name`, such as `footnotes`; None if there is none, or it is not XML."""
    for relation in part.rels.values():
        if relation.reltype.rpartition("/")[2] == name and not relation.is_external:
            root = _load(relation.target_part)
            if root is not None:
                return root
    return None


def list_running_heads(part: Part, body: Element) -> list[Note]:
    """The headers and footers that the sections of a document show, each part once. A section has those of the one
    before it, unless it names its own."""
    settings = find_part(part, "settings")
    even = None if settings is None else settings.root.find(qn("w:evenAndOddHeaders"))
    heads: dict[str, Note] = {}
    current: dict[tuple[str, str], str] = {}
    for section in body.iter(qn("w:sectPr")):
        first = section.find(qn("w:titlePg"))
        head_types = {"default"} | ({"first"} if first is not None and is_on(first) else set())
        head_types |= {"even"} if even is not None and is_on(even) else set()
        for kind in ("header", "footer"):
            for reference in section.iter(qn(f"w:{kind}Reference")):
                current[kind, reference.get(qn("w:type"), "default")] = reference.get(qn("r:id"), "")
        for (kind, head_type), relation in current.items():
            if head_type in head_types and relation in part.rels and relation not in heads:
                target = _load(part.rels[relation].target_part)
                if target is not None:
                    heads[relation] = Note(kind, f"Page {kind}", target.root, target.part)
    return list(heads.values())


def is_page_number(text: str, head: Element) -> bool:
    """Whether a header or footer shows the number of its page alone, which says nothing."""
    if any(letter.isalpha() for letter in text):
        return False
    instructions = [one.text or "" for one in head.iter(qn("w:instrText"))]
    instructions += [one.get(qn("w:instr"), "") for one in head.iter(qn("w:fldSimple"))]
    is_counted = any("PAGE" in instruction.upper() for instruction in instructions)
    return is_counted or sum(map(str.isdigit, text)) <= _PAGE_DIGITS


def _load(target: Any) -> FoundPart | None:
    element = getattr(target, "element", None)
    if element is not None:
        return FoundPart(target, element)
    try:
        return FoundPart(target, parse_xml(target.blob))  # with python-docx's elements, which know their styles
    except etree.XMLSyntaxError:
        return None
