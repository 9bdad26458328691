"""Word files from their XML, so that a test can wrap a text in whatever Word may wrap it in."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_OFFICE = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_OFFICE}/officeDocument/2006/relationships"
_TYPES = f"{_OFFICE}/package/2006/content-types"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
NAMESPACES = (
    f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main" xmlns:r="{_RELATIONS}"'
    f' xmlns:m="{_OFFICE}/officeDocument/2006/math" xmlns:mc="{_OFFICE}/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
    f' xmlns:wp="{_OFFICE}/drawingml/2006/wordprocessingDrawing" xmlns:a="{_OFFICE}/drawingml/2006/main"'
    f' xmlns:c="{_OFFICE}/drawingml/2006/chart" xmlns:dgm="{_OFFICE}/drawingml/2006/diagram"'
)
CHANGE = 'w:id="1" w:author="Ada" w:date="2026-01-01T00:00:00Z"'


def word_file(
    body: str,
    *,
    parts: Mapping[str, tuple[str, str]] | None = None,
    core: str | None = None,
    section: str = "",
    missing: str = "",
) -> bytes:
    """A docx with this body. `parts` are further parts by relationship id: the kind of the relationship and the XML;
    `core` is the title in the core properties, without which there are none; `missing` a relationship to nothing."""
    relations, overrides = "", ""
    members: dict[str, str] = {}
    for number, (relation, (kind, content)) in enumerate((parts or {}).items(), 1):
        ending = "xml" if content.lstrip().startswith("<") and kind != "aFChunk" else "html"
        name = f"{kind}{number}.{ending}"
        members[f"word/{name}"] = content
        relations += _relation(relation, f"{_RELATIONS}/{kind}", name)
        if kind in {"footnotes", "endnotes", "comments", "header", "footer", "styles", "numbering", "settings"}:
            overrides += f'<Override PartName="/word/{name}" ContentType="{_WORD}.{kind}+xml"/>'
    if missing:
        relations += _relation("missing", f"{_RELATIONS}/image", missing)
    roots = _relation("main", f"{_RELATIONS}/officeDocument", "word/document.xml")
    if core is not None:
        kind = f"{_OFFICE}/package/2006/relationships/metadata/core-properties"
        roots += _relation("core", kind, "docProps/core.xml")
        overrides += (
            '<Override PartName="/docProps/core.xml"'
            ' ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        )
        members["docProps/core.xml"] = (
            f'<cp:coreProperties xmlns:cp="{_OFFICE}/package/2006/metadata/core-properties"'
            f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(core)}</dc:title></cp:coreProperties>'
        )
    members |= {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Default Extension="html" ContentType="text/html"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_WORD}.document.main+xml"/>{overrides}</Types>',
        "_rels/.rels": _relations(roots),
        "word/_rels/document.xml.rels": _relations(relations),
        "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}<w:sectPr>{section}</w:sectPr></w:body>"
        "</w:document>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def paragraph(*content: str, properties: str = "") -> str:
    """A paragraph of runs and whatever else is given."""
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{''.join(content)}</w:p>"


def run(text: str, properties: str = "") -> str:
    """A run of text."""
    inner = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{inner}<w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def cell(*content: str, properties: str = "") -> str:
    """A table cell of paragraphs and tables."""
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{''.join(content)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    """A table row."""
    return f"<w:tr>{f'<w:trPr>{properties}</w:trPr>' if properties else ''}{''.join(cells)}</w:tr>"


def table(*rows: str) -> str:
    """A table."""
    return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(rows)}</w:tbl>"


def text_cells(*texts: str) -> Sequence[str]:
    """Cells of one paragraph each."""
    return [cell(paragraph(run(text))) for text in texts]


def text_box(content: str, *, fallback: str | None = None) -> str:
    """A run with a text box, and its copy for old programs."""
    copy = content if fallback is None else fallback
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData>'
        f"<wps:wsp><wps:txbx><w:txbxContent>{content}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic>"
        f"</wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{copy}</w:txbxContent>"
        "</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


def note_part(kind: str, notes: Mapping[str, str]) -> str:
    """The part of footnotes, endnotes or comments with these texts by id; the first note is a separator."""
    tag = kind.removesuffix("s")
    separator = "" if kind == "comments" else f'<w:{tag} w:type="separator" w:id="-1"><w:p/></w:{tag}>'
    inner = "".join(
        f'<w:{tag} w:id="{number}" w:author="Ada">{paragraph(run(text))}</w:{tag}>' for number, text in notes.items()
    )
    return f"<w:{kind} {NAMESPACES}>{separator}{inner}</w:{kind}>"


def head_part(kind: str, content: str) -> str:
    """A header (`hdr`) or footer (`ftr`)."""
    return f"<w:{kind} {NAMESPACES}>{content}</w:{kind}>"


def _relation(number: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{number}" Type="{kind}" Target="{target}"/>'


def _relations(inner: str) -> str:
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{inner}</Relationships>'
