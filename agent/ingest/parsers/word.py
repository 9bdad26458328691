"""docx by python-docx and its XML: headings by outline level, lists, tables with merged cells, and the page breaks that
Word stored."""

import io
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import docx
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from agent.ingest.parsers.draft import Draft
from agent.ingest.parsers.file_input import InputFile

if TYPE_CHECKING:
    from docx.document import Document
    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.styles.style import BaseStyle

_CONTAINERS = (qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:smartTag"), qn("w:ins"))
_MAX_STYLES = 20
"""A longer chain of styles is circular."""


def read_word(source: InputFile) -> Draft:
    """Reads a document. Raises python-docx's errors. `total_pages` is 1 if Word stored no page breaks."""
    document = docx.Document(io.BytesIO(source.data))
    core = document.core_properties
    metadata = {"title": core.title, "authors": [core.author] if core.author else None}
    draft = Draft(metadata={name: value for name, value in metadata.items() if value})
    walk = _Walk(document, draft)
    for element in _iter_children(document.element.body):
        walk.add(element)
    draft.pages = walk.page
    return draft


def _iter_children(parent: "BaseOxmlElement") -> Iterator["BaseOxmlElement"]:
    for child in parent:
        if child.tag in _CONTAINERS:
            yield from _iter_children(child)
        else:
            yield child


class _Style(NamedTuple):
    """What paragraphs of a style have without saying so: an outline level from 0, and the id of a list's numbering."""

    outline: str = ""
    numbering: str = ""


class _Walk:
    """Adds paragraphs and tables in order, counting pages and numbered lists."""

    def __init__(self, document: "Document", draft: Draft) -> None:
        self._document = document
        self._draft = draft
        self._numbers: dict[str, int] = {}
        self._styles: dict[str | None, _Style] = {}
        self.page = 1

    def add(self, element: "BaseOxmlElement") -> None:
        """Adds a body element's blocks."""
        if element.tag == qn("w:p"):
            self._add_paragraph(Paragraph(element, self._document._body))
        elif element.tag == qn("w:tbl"):
            self._draft.add_table(_read_rows(Table(element, self._document._body)), self.page)

    def _add_paragraph(self, paragraph: Paragraph) -> None:
        element = paragraph._p
        breaks = _find_page_breaks(element)
        starts = sum(1 for at_start in breaks if at_start)
        self.page += starts
        text = paragraph.text.strip()
        if text and (level := self._get_heading_level(paragraph)) is not None:
            self._draft.add_heading(text, level, self.page)
        elif text:
            self._draft.add_text(self._format_marker(paragraph) + text, self.page)
        for picture in element.iter(qn("wp:docPr")):
            self._draft.add_image(picture.get("descr") or picture.get("title") or "", self.page)
        for inner in _iter_text_boxes(element):
            self._draft.add_text("\n".join(Paragraph(p, paragraph._parent).text for p in inner), self.page)
        self.page += len(breaks) - starts

    def _format_marker(self, paragraph: Paragraph) -> str:
        own = paragraph._p.xpath("./w:pPr/w:numPr/w:numId/@w:val")
        number = own[0] if own else self._find_style(paragraph).numbering
        if number in {"0", ""} or not number.isdecimal():
            return ""
        if "bullet" in self._format(number):
            return "- "
        self._numbers[number] = self._numbers.get(number, 0) + 1
        return f"{self._numbers[number]}. "

    def _get_heading_level(self, paragraph: Paragraph) -> int | None:
        own = paragraph._p.xpath("./w:pPr/w:outlineLvl/@w:val")
        level = own[0] if own else self._find_style(paragraph).outline
        return int(level) + 1 if level.isdecimal() and int(level) < 9 else None  # 9 is body text

    def _find_style(self, paragraph: Paragraph) -> _Style:
        """Returns the style of a paragraph. python-docx searches all styles for one, so that each is read once."""
        name = paragraph._p.style
        if name not in self._styles:
            self._styles[name] = _read_style(paragraph.style)
        return self._styles[name]

    def _format(self, number: str) -> str:
        """Returns `bullet` or a number format from numbering.xml: the list's definition, then its first level."""
        try:
            numbering = self._document.part.numbering_part.element
        except (KeyError, NotImplementedError):
            return "bullet"
        found = numbering.xpath(f"./w:num[@w:numId={number}]/w:abstractNumId/@w:val")
        formats = (
            numbering.xpath(f"./w:abstractNum[@w:abstractNumId={found[0]}]/w:lvl/w:numFmt/@w:val") if found else []
        )
        return str(formats[0]) if formats else "bullet"


def _find_page_breaks(paragraph: "BaseOxmlElement") -> list[bool]:
    """Returns a flag for each page break in a paragraph; true for those before its first text."""
    found, seen_text, asked = [], False, False
    for element in paragraph.iter(qn("w:t"), qn("w:br"), qn("w:lastRenderedPageBreak")):
        if element.tag == qn("w:t"):
            seen_text = seen_text or bool((element.text or "").strip())
        elif element.tag == qn("w:br") and element.get(qn("w:type")) == "page":
            found.append(not seen_text)
            asked = True
        elif element.tag == qn("w:lastRenderedPageBreak"):
            if not asked:  # Word notes the break it was asked for a second time
                found.append(not seen_text)
            asked = False
    return found


def _read_style(style: "BaseStyle | None") -> _Style:
    """Returns the nearest outline level and numbering of a style and those it is based on."""
    outline = numbering = ""
    for _ in range(_MAX_STYLES):
        if style is None:
            break
        level = style.element.xpath("./w:pPr/w:outlineLvl/@w:val")
        number = style.element.xpath("./w:pPr/w:numPr/w:numId/@w:val")
        outline = outline or ("0" if style.name == "Title" else next(iter(level), ""))
        numbering = numbering or next(iter(number), "")
        style = getattr(style, "base_style", None)
    return _Style(outline, numbering)


def _iter_text_boxes(paragraph: "BaseOxmlElement") -> Iterator[list["BaseOxmlElement"]]:
    """Yields the paragraphs of each text box, without its copy for old programs (`mc:Fallback`)."""
    for box in paragraph.iter(qn("w:txbxContent")):
        if not any(parent.tag.endswith("}Fallback") for parent in box.iterancestors()):
            yield list(box.iter(qn("w:p")))


def _read_rows(table: Table) -> list[list[str]]:
    """Returns the table's rows. A merged cell stands in its first column of every row; rows that start late are
    shifted."""
    rows = []
    for row in table.rows:
        cells = [None, *row.cells]
        texts = [
            "" if before is not None and before._tc is cell._tc else cell.text
            for before, cell in pairwise(cells)
            if cell is not None
        ]
        rows.append([""] * row.grid_cols_before + texts)
    return rows
