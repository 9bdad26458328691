"""docx by python-docx and its XML: everything the program shows, in its order, with headings by outline level, lists,
tables with merged cells, notes where they belong, and the page breaks that Word stored."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import docx
from docx.oxml.ns import qn

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.parsers.draft import Draft
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile
from gateway.features.documents.engine.ingest.parsers.graphics import (
    CHOICES,
    DRAWING,
    Part,
    add_graphics,
    choose_content,
    iter_drawn_lines,
)
from gateway.features.documents.engine.ingest.parsers.office_package import has_core_properties, prepare_package
from gateway.features.documents.engine.ingest.parsers.word_bindings import fill_controls
from gateway.features.documents.engine.ingest.parsers.word_inline import (
    HIDDEN,
    VML,
    Inline,
    InlineReader,
    NoteReference,
    iter_text_boxes,
)
from gateway.features.documents.engine.ingest.parsers.word_lists import ListNumbers
from gateway.features.documents.engine.ingest.parsers.word_notes import (
    Note,
    Notes,
    find_part,
    is_page_number,
    list_running_heads,
)
from gateway.features.documents.engine.ingest.parsers.word_paragraphs import OpenParagraph
from gateway.features.documents.engine.ingest.parsers.word_styles import Styles, is_on
from gateway.features.documents.engine.ingest.parsers.word_tables import read_grid

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_MAX_FIELDS = 5
_MAX_INSTRUCTION = 60
_DOTTED = re.compile(r"\d+(\.\d+)+")
_PARAGRAPH = qn("w:p")
_TABLE = qn("w:tbl")
_EMBEDDED = (qn("w:altChunk"), qn("w:subDoc"))
"""Other documents in a document. Those of a master document have files of their own."""
_PICTURES = ("{http://schemas.openxmlformats.org/drawingml/2006/picture}pic", f"{VML}imagedata")


def read_word(source: InputFile) -> Draft:
    """Reads a document. Raises python-docx's errors. `total_pages` is 1 if Word stored no page breaks."""
    document = docx.Document(io.BytesIO(prepare_package(source.data)))
    metadata: JsonObject = {}
    if has_core_properties(source.data):  # python-docx invents a title where there are none
        core = document.core_properties
        metadata = {"title": core.title, "authors": [core.author] if core.author else None}
    draft = Draft(metadata={name: value for name, value in metadata.items() if value})
    part, body = document.part, document.element.body
    context = _Context.of(part)
    draft.uncertainties += [f"the {name} of the file are damaged and were not read" for name in context.notes.damaged]
    heads = list_running_heads(part, body)
    fill_controls(part, [body, *(head.element for head in heads)])
    _add_running_heads(draft, [head for head in heads if head.kind == "header"], context)
    walk = _Walk(draft, part, context)
    walk.add_blocks(body)
    walk.add_open_comments()
    walk.note_unstored_fields()
    _add_running_heads(draft, [head for head in heads if head.kind == "footer"], context)
    draft.pages = walk.page
    draft.use_first_heading_as_title()
    return draft


@dataclass(frozen=True)
class _Context:
    """Shared by the parts of a document."""

    styles: Styles
    numbers: ListNumbers
    notes: Notes

    @staticmethod
    def of(part: Part) -> "_Context":
        styles, numbering = (find_part(part, name) for name in ("styles", "numbering"))
        return _Context(Styles(styles and styles.root), ListNumbers(numbering and numbering.root), Notes.of(part))


@dataclass
class _Extras:
    """The blocks of a table's cells that its text cannot contain: they follow the table."""

    graphics: list[Element] = field(default_factory=list)
    tables: list[Element] = field(default_factory=list)
    notes: list[NoteReference] = field(default_factory=list)


class _Walk:
    """Adds paragraphs and tables of one part in order, counting pages."""

    def __init__(self, draft: Draft, part: Part, context: _Context) -> None:
        self._draft = draft
        self._part = part
        self._context = context
        self._inline = InlineReader(context.styles)
        self._open = OpenParagraph()
        self.page = 1

    def add_blocks(self, parent: Element) -> None:
        """Adds the blocks below an element, whatever they are wrapped in."""
        for child in parent:
            tag = child.tag
            if not isinstance(tag, str) or tag in HIDDEN:
                continue
            if tag == _PARAGRAPH:
                self._add_paragraph(child)
            elif tag == _TABLE:
                self._end_open_paragraph()
                self._add_table(child)
            elif tag in _EMBEDDED:
                self._end_open_paragraph()
                self._note_embedded(child)
            elif tag == f"{CHOICES}AlternateContent":
                self.add_blocks(choose_content(child))
            elif next(child.iter(_PARAGRAPH, _TABLE, qn("w:altChunk")), None) is not None:
                self.add_blocks(child)
            else:
                self._add_inline(self._inline.read(child))
        self._end_open_paragraph()

    def add_open_comments(self) -> None:
        """Adds the comments that no place of the text refers to."""
        for note in self._context.notes.take_open_comments():
            self._add_note(note, "")

    def note_unstored_fields(self) -> None:
        """Reports the fields that Word would compute."""
        fields = list(dict.fromkeys(self._inline.unstored))
        if fields:
            more = f" and {len(fields) - _MAX_FIELDS} more" if len(fields) > _MAX_FIELDS else ""
            listed = ", ".join(one[:_MAX_INSTRUCTION] for one in fields[:_MAX_FIELDS])
            self._draft.uncertainties.append(f"fields without a stored result were not computed: {listed}{more}")

    def _add_paragraph(self, element: Element) -> None:
        breaks = _find_page_breaks(element)
        starts = sum(1 for at_start in breaks if at_start)
        self.page += starts
        inline = self._inline.read(element, is_hidden=self._is_hidden(element))
        if (text := self._open.add(element, inline.text)) is not None:
            self._add_line(element, text.strip())
        self._add_graphics(inline.graphics)
        self._add_notes(inline.notes)
        for embedded in element.iter(qn("w:subDoc")):
            self._note_embedded(embedded)
        self.page += len(breaks) - starts

    def _end_open_paragraph(self) -> None:
        if (last := self._open.end()) is not None:
            self._add_line(last[0], last[1].strip())

    def _add_line(self, paragraph: Element, text: str) -> None:
        number = self._format_marker(paragraph) if text or not self._is_unseen(paragraph) else ""
        if text and (level := self._get_heading_level(paragraph)) is not None:
            is_plain = number == "- " or _names_own_number(text, number)
            self._draft.add_heading(text if is_plain else number + text, level, self.page)
        elif text:
            self._draft.add_text(number + text, self.page)

    def _add_inline(self, inline: Inline) -> None:
        if text := inline.text.strip():
            self._draft.add_text(text, self.page)
        self._add_graphics(inline.graphics)
        self._add_notes(inline.notes)

    def _add_graphics(self, graphics: list[Element]) -> None:
        for graphic in graphics:
            shapes = graphic.iter(qn("wp:docPr"), "{*}cNvPr", f"{VML}shape")  # those of a group have their own
            descriptions = map(_read_description, shapes)
            captions = list(filter(None, descriptions))
            if not captions and next(graphic.iter(*_PICTURES), None) is not None:
                captions = [""]
            for description in dict.fromkeys(captions):
                self._draft.add_image(description, self.page)
            for program in (one.get("ProgID", "") for one in graphic.iter("{*}OLEObject")):
                self._draft.uncertainties.append(f"an embedded object was not read ({program or 'unknown program'})")
            for control in graphic.iter(qn("w:control")):
                name = control.get(qn("w:name"), "without a name")
                self._draft.uncertainties.append(f"a form control was not read ({name})")
            for path in graphic.iter(f"{VML}textpath"):  # WordArt of older files
                self._draft.add_text(path.get("string", ""), self.page)
            add_graphics(self._draft, graphic, self._part, self.page)
            for body in graphic.iter(f"{DRAWING}txBody"):  # shapes of a locked canvas have no text boxes of Word's
                self._draft.add_text("\n".join(iter_drawn_lines(body)), self.page)
            for box in iter_text_boxes(graphic):
                around, self._open = self._open, OpenParagraph()
                self.add_blocks(box)
                self._open = around

    def _add_notes(self, references: list[NoteReference]) -> None:
        for reference in references:
            if (note := self._context.notes.take(reference)) is not None:
                self._add_note(note, reference.word)

    def _add_note(self, note: Note, word: str) -> None:
        text = _read_text(note.element, note.part, self._context, self._draft.uncertainties)
        if text:
            place = f" on “{word}”" if word else ""
            self._draft.add_text(f"{note.label}{place}: {text}", self.page)

    def _add_table(self, table: Element) -> None:
        extras = _Extras()
        self._draft.add_table(read_grid(table, lambda cell: self._read_cell(cell, extras)), self.page)
        self._add_graphics(extras.graphics)
        for inner in extras.tables:
            self._add_table(inner)
        self._add_notes(extras.notes)

    def _read_cell(self, cell: Element, extras: _Extras) -> str:
        lines: list[str] = []
        around, self._open = self._open, OpenParagraph()
        for block in self._iter_cell_blocks(cell):
            if block.tag == _TABLE:
                self._end_cell_line(lines)
                extras.tables.append(block)
            elif block.tag == qn("w:altChunk"):
                self._end_cell_line(lines)
                self._note_embedded(block)
            else:
                is_hidden = block.tag == _PARAGRAPH and self._is_hidden(block)
                inline = self._inline.read(block, is_hidden=is_hidden)
                if is_hidden and not inline.text:
                    continue
                text = self._open.add(block, inline.text)
                if text is not None:
                    lines.append(self._format_cell_marker(block) + text)
                extras.graphics += inline.graphics
                extras.notes += inline.notes
        self._end_cell_line(lines)
        self._open = around
        return "\n".join(lines)

    def _end_cell_line(self, lines: list[str]) -> None:
        if (last := self._open.end()) is not None:
            lines.append(self._format_cell_marker(last[0]) + last[1])

    def _format_cell_marker(self, block: Element) -> str:
        is_numbered = block.tag == _PARAGRAPH and not self._is_unseen(block)
        return self._format_marker(block).removeprefix("- ") if is_numbered else ""

    def _iter_cell_blocks(self, parent: Element) -> Iterator[Element]:
        for child in parent:
            tag = child.tag
            if not isinstance(tag, str) or tag in HIDDEN:
                continue
            if tag == f"{CHOICES}AlternateContent":
                yield from self._iter_cell_blocks(choose_content(child))
            elif tag in {_PARAGRAPH, _TABLE, qn("w:altChunk")}:
                yield child
            elif next(child.iter(_PARAGRAPH, _TABLE, qn("w:altChunk")), None) is not None:
                yield from self._iter_cell_blocks(child)
            else:
                yield child

    def _note_embedded(self, element: Element) -> None:
        try:
            name = str(self._part.rels[element.get(qn("r:id"))].target_ref)
        except KeyError:
            name = "missing in the file"
        self._draft.uncertainties.append(f"an embedded document was not read: {name}")

    def _is_hidden(self, paragraph: Element) -> bool:
        return self._context.styles.find(paragraph.style).hidden

    def _is_unseen(self, paragraph: Element) -> bool:
        """Whether a paragraph without text has no number either: its end is hidden. Others count in their list."""
        vanish = paragraph.find("/".join(map(qn, ("w:pPr", "w:rPr", "w:vanish"))))
        return self._is_hidden(paragraph) or (vanish is not None and is_on(vanish))

    def _format_marker(self, paragraph: Element) -> str:
        """The marker of a list item or the number of a heading, as Word shows it."""
        style = self._context.styles.find(paragraph.style)
        own = paragraph.xpath("./w:pPr/w:numPr/w:numId/@w:val")
        level = paragraph.xpath("./w:pPr/w:numPr/w:ilvl/@w:val")
        number = own[0] if own else style.numbering
        return self._context.numbers.format_marker(number, level[0] if level else style.level, style.name)

    def _get_heading_level(self, paragraph: Element) -> int | None:
        own = paragraph.xpath("./w:pPr/w:outlineLvl/@w:val")
        level = own[0] if own else self._context.styles.find(paragraph.style).outline
        return int(level) + 1 if level.isdecimal() and int(level) < 9 else None  # 9 is body text


def _add_running_heads(draft: Draft, heads: list[Note], context: _Context) -> None:
    """Adds the text of headers or footers, each once, for it repeats on every page."""
    texts = {_read_text(head.element, head.part, context, draft.uncertainties): head for head in reversed(heads)}
    for text, head in reversed(texts.items()):
        if text and not is_page_number(text, head.element):
            draft.add_text(f"{head.label}: {text}", 1 if head.kind == "header" else None)


def _read_text(element: Element, part: Part, context: _Context, uncertainties: list[str]) -> str:
    """The text of a note, a header or a footer. `uncertainties` takes what could not be read of it."""
    inner = Draft(uncertainties=uncertainties)
    walk = _Walk(inner, part, context)
    walk.add_blocks(element)
    walk.note_unstored_fields()
    return "\n".join(block.text.strip() for block in inner.blocks if block.text.strip() != "[image]")


def _read_description(shape: Element) -> str:
    return shape.get("descr") or shape.get("title") or shape.get("alt") or ""


def _names_own_number(heading: str, number: str) -> bool:
    """Whether a heading ends with Word's number, or is nothing but a word and a dotted number of the same chapter and
    level ("Section 1.2"). Others refer to it, so a second number in front of it would be wrong."""
    words, counted = heading.split(), number.strip(" .")
    own = words[-1].strip(".")
    is_label = len(words) == 2 and bool(_DOTTED.fullmatch(own)) and own.count(".") == counted.count(".")
    return own == counted or (is_label and own.partition(".")[0] == counted.partition(".")[0])


def _find_page_breaks(paragraph: Element) -> list[bool]:
    """A flag for each page break in a paragraph; true for those before its first text."""
    page_breaks, seen_text, is_break = [], False, False
    for element in paragraph.iter(qn("w:t"), qn("w:br"), qn("w:lastRenderedPageBreak")):
        if element.tag == qn("w:t"):
            seen_text = seen_text or bool((element.text or "").strip())
        elif element.tag == qn("w:br") and element.get(qn("w:type")) == "page":
            page_breaks.append(not seen_text)
            is_break = True
        elif element.tag == qn("w:lastRenderedPageBreak"):
            if not is_break:  # Word notes the break it was asked for a second time
                page_breaks.append(not seen_text)
            is_break = False
    return page_breaks
