"""The text of a Word paragraph as the program shows it: every run, whatever it is wrapped in, but what was deleted.

Only what is never shown is listed here. Any other element is looked into, so that a wrapper which nobody thought of
loses no text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from docx.oxml.ns import qn

from agent.text.struck import join_pieces, strike_out
from agent.text.superscripts import RISES, write_fractions, write_moved
from gateway.features.documents.engine.ingest.parsers.equations import MATH, format_equation
from gateway.features.documents.engine.ingest.parsers.graphics import CHOICES, choose_content
from gateway.features.documents.engine.ingest.parsers.symbol_fonts import convert_symbol, convert_symbol_text
from gateway.features.documents.engine.ingest.parsers.word_fields import format_field, shows_result
from gateway.features.documents.engine.ingest.parsers.word_styles import Style, Styles, is_on, read_struck

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

VML = "{urn:schemas-microsoft-com:vml}"
_HIDDEN_NAMES = (
    "del moveFrom delText delInstrText instrText pPr rPr sdtPr sdtEndPr tblPr tblGrid tblPrEx trPr tcPr sectPr rubyPr "
    "smartTagPr customXmlPr footnoteRef endnoteRef annotationRef"
)
HIDDEN = frozenset(qn(f"w:{name}") for name in _HIDDEN_NAMES.split())
"""Deleted and moved text, the instructions of fields, and properties."""

_NOTES = {
    qn("w:footnoteReference"): "footnote",
    qn("w:endnoteReference"): "endnote",
    qn("w:commentReference"): "comment",
}
_CHARACTERS = {
    qn("w:tab"): "\t",
    qn("w:ptab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}
_INSTRUCTION = qn("w:instrText")
_NEAR = 5
"""Elements behind a run that may have no text, such as bookmarks and marks of the spelling."""
_LEAST_RISE = 4
"""Half points by which a text is raised or lowered at least, where its size is not known; less only aligns it."""
_LEAST_SHARE = 5
"""A text of a size is raised or lowered by a fifth of it at least."""
_GRAPHICS = (qn("w:drawing"), qn("w:pict"), qn("w:object"))


class NoteReference(NamedTuple):
    """A place where a foot- or endnote or a comment belongs: `word` is the text just before it."""

    kind: str
    id: str
    word: str


@dataclass(slots=True)
class _OpenField:
    """A field whose end has not come. `default_text` is what it shows before somebody fills it in, `chosen` its entry
    or box, which some programs also store as its result. `start` is the number of parts before it.
    """

    start: int
    chosen: str
    instruction: list[str] = field(default_factory=list)
    default_text: str = ""
    has_result: bool = False


@dataclass
class Inline:
    """A paragraph's text; the drawings, and the references of notes in it."""

    parts: list[str] = field(default_factory=list)
    graphics: list[Element] = field(default_factory=list)
    notes: list[NoteReference] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text."""
        return write_fractions(join_pieces(self.parts))


class InlineReader:
    """Reads paragraphs in their order: a field may begin in one and end in another."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self._fields: list[_OpenField] = []
        self._hides = False
        """Whether the style of the paragraph hides text that does not say itself that it is shown."""
        self._raised: tuple[Inline, int, str] | None = None
        """Where the last raised text stands, its end, and what is before it: Word parts one text into several runs."""
        self.unstored: list[str] = []
        """The instructions of fields that Word computes: the file has no result of theirs."""
        self._visits: dict[str, Callable[[Element, Inline], None]] = {
            qn("w:r"): self._visit_run,
            qn("w:t"): self._visit_text,
            qn("w:sym"): self._visit_symbol,
            qn("w:fldChar"): self._visit_field_mark,
            qn("w:fldSimple"): self._visit_simple_field,
            qn("w:ruby"): self._visit_ruby,
            f"{MATH}oMath": self._visit_equation,
            f"{MATH}oMathPara": self._visit_equation,
            f"{CHOICES}AlternateContent": self._visit_choices,
            **dict.fromkeys(_GRAPHICS, self._visit_graphic),
            **dict.fromkeys(_NOTES, self._visit_note),
        }

    def read(self, paragraph: Element, *, is_hidden: bool = False) -> Inline:
        """The visible content of a paragraph, or of any element without paragraphs. `is_hidden`: by its style."""
        inline = Inline()
        self._hides = is_hidden
        self._visit_children(paragraph, inline)
        # An instruction ends with its paragraph, so that a damaged field does not hide the rest of the document.
        self._fields = [one for one in self._fields if one.has_result]
        return inline

    def _visit_children(self, element: Element, inline: Inline) -> None:
        for child in element:
            tag = child.tag
            if tag == _INSTRUCTION and self._fields:
                self._fields[-1].instruction.append(child.text or "")
            if not isinstance(tag, str) or tag in HIDDEN:
                continue
            visit = self._visits.get(tag)
            if visit is not None:
                visit(child, inline)
            elif tag in _CHARACTERS:
                self._add(_CHARACTERS[tag], inline)
            else:
                self._visit_children(child, inline)

    def _add(self, text: str, inline: Inline) -> None:
        if self._is_shown() and not self._hides:
            inline.parts.append(text)

    def _is_shown(self) -> bool:
        """Whether no instruction of a field is open."""
        return all(one.has_result for one in self._fields)

    def _visit_run(self, run: Element, inline: Inline) -> None:
        properties = run.find(qn("w:rPr"))
        if properties is None:
            self._visit_children(run, inline)
            return
        if self._is_hidden(properties):
            return
        start = len(inline.parts)
        hides = self._hides
        self._hides = hides and properties.find(qn("w:vanish")) is None
        self._visit_children(run, inline)
        self._hides = hides
        if rise := self._read_rise(properties):
            before, after = self._read_before(inline, start, rise), self._read_behind(run, rise)
            inline.parts[start:] = [write_moved(rise, before, "".join(inline.parts[start:]), after)]
            self._raised = (inline, len(inline.parts), before) if rise > 0 else None
        fonts = properties.find(qn("w:rFonts"))
        if fonts is not None and (font := fonts.get(qn("w:ascii")) or fonts.get(qn("w:hAnsi"))):
            inline.parts[start:] = [convert_symbol_text(font, part) for part in inline.parts[start:]]
        struck = read_struck(properties)
        if self._find_style(properties).is_struck if struck is None else struck:
            inline.parts[start:] = [strike_out("".join(inline.parts[start:]))]

    def _is_hidden(self, properties: Element) -> bool:
        own = properties.find(qn("w:vanish"))
        if own is not None:
            return is_on(own)
        return self._find_style(properties).hidden

    def _read_rise(self, properties: Element) -> int:
        own = properties.find(qn("w:vertAlign"))
        if own is not None:
            return RISES.get(own.get(qn("w:val")), 0)
        position = properties.find(qn("w:position"))
        if position is not None:
            rise, size = (_read_number(one) for one in (position, properties.find(qn("w:sz"))))
            return rise if _LEAST_SHARE * abs(rise) >= (size or _LEAST_SHARE * _LEAST_RISE) else 0
        return self._find_style(properties).rise

    def _read_before(self, inline: Inline, start: int, rise: int) -> str:
        """What stands before a moved text; before the whole of it if it is raised in several runs."""
        if rise > 0 and self._raised is not None and self._raised[0] is inline and self._raised[1] == start:
            return self._raised[2]
        return inline.parts[start - 1] if start else ""

    def _read_behind(self, run: Element, rise: int) -> str:
        """The text of the next run that has any and belongs to no raised text that goes on."""
        for one in islice(run.itersiblings(), _NEAR):
            properties = one.find(qn("w:rPr"))
            text = "".join(text.text or "" for text in one.iter(qn("w:t")))
            if text and (rise < 0 or properties is None or self._read_rise(properties) <= 0):
                return text
        return ""

    def _find_style(self, properties: Element) -> Style:
        """The character style of a run."""
        style = properties.find(qn("w:rStyle"))
        return Style() if style is None else self._styles.find(style.get(qn("w:val")))

    def _visit_text(self, element: Element, inline: Inline) -> None:
        self._add(element.text or "", inline)

    def _visit_symbol(self, element: Element, inline: Inline) -> None:
        try:
            place = int(element.get(qn("w:char"), ""), 16)
        except ValueError:
            return
        self._add(convert_symbol(element.get(qn("w:font"), ""), place), inline)

    def _visit_field_mark(self, mark: Element, inline: Inline) -> None:
        match mark.get(qn("w:fldCharType")):
            case "begin":
                opened = _OpenField(len(inline.parts), _read_form_field(mark), default_text=_read_default_text(mark))
                self._fields.append(opened)
            case "separate" if self._fields:
                self._fields[-1].has_result = True
            case "end" if self._fields:
                closed = self._fields.pop()
                if closed.chosen:
                    is_stored = any(part.strip() for part in inline.parts[closed.start :])
                    self._add("" if is_stored else closed.chosen, inline)
                elif not closed.has_result:
                    if closed.default_text:
                        self._add(closed.default_text, inline)
                    else:
                        self._add_unstored("".join(closed.instruction), inline)

    def _visit_simple_field(self, element: Element, inline: Inline) -> None:
        before = len(inline.parts), len(inline.graphics)
        self._visit_children(element, inline)
        if before == (len(inline.parts), len(inline.graphics)):
            self._add_unstored(element.get(qn("w:instr"), ""), inline)

    def _add_unstored(self, instruction: str, inline: Inline) -> None:
        """Adds what a field without a result shows, or notes that only Word knows it."""
        text = format_field(instruction)
        self._add(text, inline)
        if not text and self._is_shown() and not self._hides and shows_result(instruction):
            self.unstored.append(" ".join(instruction.split()))

    def _visit_ruby(self, ruby: Element, inline: Inline) -> None:
        """Adds the base text, then its reading in parentheses, as browsers without ruby show it."""
        for name, marks in (("w:rubyBase", ("", "")), ("w:rt", ("(", ")"))):
            part = ruby.find(qn(name))
            if part is not None:
                self._add(marks[0], inline)
                self._visit_children(part, inline)
                self._add(marks[1], inline)

    def _visit_equation(self, equation: Element, inline: Inline) -> None:
        self._add(format_equation(equation), inline)

    def _visit_choices(self, element: Element, inline: Inline) -> None:
        self._visit_children(choose_content(element), inline)

    def _visit_graphic(self, graphic: Element, inline: Inline) -> None:
        if self._is_shown():
            inline.graphics.append(graphic)

    def _visit_note(self, reference: Element, inline: Inline) -> None:
        before = inline.text.split()
        kind, number = _NOTES[reference.tag], reference.get(qn("w:id"), "")
        inline.notes.append(NoteReference(kind, number, before[-1] if before else ""))


def iter_text_boxes(graphic: Element) -> Iterator[Element]:
    """Yields the outermost text boxes of a drawing, without their copies for old programs."""
    for child in graphic:
        if not isinstance(child.tag, str):
            continue
        if child.tag == qn("w:txbxContent"):
            yield child
        elif child.tag == f"{CHOICES}AlternateContent":
            yield from iter_text_boxes(choose_content(child))
        else:
            yield from iter_text_boxes(child)


def _read_number(element: Element | None) -> int:
    """The whole number of a property; 0 without one."""
    value = "" if element is None else str(element.get(qn("w:val"), ""))
    return int(value) if value.removeprefix("-").isdecimal() else 0


def _read_form_field(mark: Element) -> str:
    """The visible text of a form field without one of its own: its chosen entry, or a ticked or empty box."""
    data = mark.find(qn("w:ffData"))
    if data is None:
        return ""
    choices = data.find(qn("w:ddList"))
    if choices is not None:
        entries = [entry.get(qn("w:val"), "") for entry in choices.findall(qn("w:listEntry"))]
        result = choices.find(qn("w:result"))
        result = choices.find(qn("w:default")) if result is None else result
        index = result.get(qn("w:val"), "0") if result is not None else "0"
        return entries[int(index)] if index.isdecimal() and int(index) < len(entries) else "".join(entries[:1])
    box = data.find(qn("w:checkBox"))
    if box is None:
        return ""
    state = box.find(qn("w:checked"))
    state = box.find(qn("w:default")) if state is None else state
    return "☒" if state is not None and is_on(state) else "☐"


def _read_default_text(mark: Element) -> str:
    """What a form's text field shows before somebody fills it in."""
    default = mark.find("/".join(map(qn, ("w:ffData", "w:textInput", "w:default"))))
    return "" if default is None else default.get(qn("w:val"), "")
