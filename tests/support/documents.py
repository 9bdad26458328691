"""Small documents of every type, made in code: no test needs a file that is not in this repository."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from email.message import EmailMessage
from hashlib import md5
from itertools import accumulate
from math import cos, radians, sin
from typing import NamedTuple

import docx
from docx.oxml import parse_xml
from openpyxl import Workbook  # type: ignore[import-untyped]
from pptx import Presentation
from pptx.util import Pt

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
Rows = Sequence[Sequence[str]]


class Words(NamedTuple):
    """A line of a PDF page: its text, its place in points from the top left, its size, its turn to the left in
    degrees."""

    text: str
    x: float = 72
    y: float = 72
    size: float = 11
    turn: float = 0


def pdf(*pages: Iterable[Words], extra_trailer: str = "") -> bytes:
    """A PDF with these lines of Helvetica on pages of 612 by 792 points."""
    return _pdf([_shown(page) for page in pages], resources="", objects=[], extra_trailer=extra_trailer)


def form_pdf(*fields: str, words: Iterable[Words] = ()) -> bytes:
    """A PDF of one page with these lines and a form. `fields` are the entries of each but its place: the first is 300
    points from the left and 60 from the top, each following one 40 points below."""
    kids = " ".join(f"{4 + place} 0 R" for place in range(len(fields)))
    widgets = [
        f"<</Type/Annot/Subtype/Widget/Rect[300 {716 - 40 * place} 450 {732 - 40 * place}]{entries}>>".encode()
        for place, entries in enumerate(fields)
    ]
    form = f"/AcroForm<</Fields[{kids}]>>"
    return _pdf([_shown(words)], resources="", objects=widgets, catalog=form, page_entries=f"/Annots[{kids}]")


def annotated_pdf(words: Iterable[Words], annotations: Sequence[str]) -> bytes:
    """A PDF of one page with these lines and annotations, each given by its entries without its place."""
    listed = "".join(f"<</Type/Annot/Rect[300 300 400 320]{entries}>>" for entries in annotations)
    return _pdf([_shown(words)], resources="", objects=[], page_entries=f"/Annots[{listed}]")


def drawn_pdf(
    *pages: bytes, resources: str = "", objects: Sequence[str | bytes] = (), catalog: str = "", page_entries: str = ""
) -> bytes:
    """A PDF of pages with these content streams, in which `/F1` is Helvetica. `objects` are numbered from 4."""
    parts = [one.encode() if isinstance(one, str) else one for one in objects]
    return _pdf(pages, resources=resources, objects=parts, catalog=catalog, page_entries=page_entries)


def pdf_stream(entries: str, content: bytes) -> bytes:
    """An object of a PDF: a stream with these entries of its dictionary."""
    return f"<<{entries}/Length {len(content)}>>\nstream\n".encode() + content + b"\nendstream"


def scanned_pdf(text_page: Iterable[Words] = ()) -> bytes:
    """A page that is one picture (black bars on white), after a page of text if there is any."""
    rows = b"".join(b"\x00" * 10 if y % 20 < 4 and y > 20 else b"\xff" * 10 for y in range(100))
    picture = b"<</Type/XObject/Subtype/Image/Width 80/Height 100/BitsPerComponent 1/ColorSpace/DeviceGray/Length %d>>"
    image = picture % len(rows) + b"\nstream\n" + rows + b"\nendstream"
    pages = [_shown(text_page)] if text_page else []
    return _pdf([*pages, b"612 0 0 792 0 0 cm /Im Do"], resources="/XObject<</Im {first} 0 R>>", objects=[image])


def stream_bomb(megabytes: int) -> bytes:
    """A small PDF whose only page unfolds to so many megabytes of spaces."""
    packing = zlib.compressobj(1)
    packed = b"".join([*(packing.compress(b" " * 2**20) for _ in range(megabytes)), packing.flush()])
    plain = _pdf([packed], resources="", objects=[])
    return plain.replace(b"<</Length %d>>" % len(packed), b"<</Length %d/Filter/FlateDecode>>" % len(packed))


def encrypted_pdf() -> bytes:
    """A PDF whose encryption dictionary asks for a password that nobody has."""
    entries = f"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{'41' * 32}>/U<{'42' * 32}>>>/ID[<{'43' * 16}><{'43' * 16}>]"
    return pdf([Words("secret")], extra_trailer=entries)


def protected_pdf(words: Iterable[Words], password: str) -> bytes:
    """A PDF of one page that opens with this password (PDF 1.7, 7.6.3: revision 2, 40 bits)."""
    padding = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
    padded = (password.encode("latin-1") + padding)[:32]
    identity, permissions = b"C" * 16, (-4).to_bytes(4, "little", signed=True)
    owner = _rc4(md5(padded).digest()[:5], padded)
    key = md5(padded + owner + permissions + identity).digest()[:5]
    user = _rc4(key, padding)
    content = _rc4(md5(key + (5).to_bytes(3, "little") + bytes(2)).digest()[:10], _shown(words))
    entries = (
        f"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{owner.hex()}>/U<{user.hex()}>>>"
        f"/ID[<{identity.hex()}><{identity.hex()}>]"
    )
    return _pdf([content], resources="", objects=[], extra_trailer=entries)


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def word(*, title: str = "Report", rows: Rows = (), paragraphs: Sequence[str] = ("A paragraph.",)) -> bytes:
    """A docx: heading, paragraphs, subheading on a second page, a numbered and a bulleted item, a table."""
    document = docx.Document()
    document.add_heading(title, 1)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.add_page_break()  # type: ignore[no-untyped-call]
    document.add_heading("Details", 2)
    document.add_paragraph("First of a list", style="List Bullet")
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for cells, row in zip(table.rows, rows, strict=True):
            for cell, text in zip(cells.cells, row, strict=True):
                cell.text = text
    return _saved(document.save)


def word_with_box(text: str, description: str) -> bytes:
    """A docx with a numbered list, and a described picture that is a text box."""
    document = docx.Document()
    for item in ("First", "Second"):
        document.add_paragraph(item, style="List Number")
    office = "http://schemas.openxmlformats.org"
    shape = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
    box = parse_xml(
        f'<w:r xmlns:w="{office}/wordprocessingml/2006/main" xmlns:wp="{office}/drawingml/2006/wordprocessingDrawing"'
        f' xmlns:a="{office}/drawingml/2006/main" xmlns:s="{shape}"><w:drawing><wp:inline>'
        f'<wp:docPr id="1" name="box" descr="{description}"/><a:graphic><a:graphicData uri="{shape}">'
        f"<s:wsp><s:txbx><w:txbxContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:txbxContent></s:txbx></s:wsp>"
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
    document.add_paragraph("Before the box.")._p.append(box)
    return _saved(document.save)


def slides(titles: Sequence[str], *, rows: Rows = (), notes: str = "") -> bytes:
    """A pptx with a slide a title, each with a text box below it; a table and notes on the first."""
    presentation = Presentation()
    for number, title in enumerate(titles, 1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        assert slide.shapes.title is not None
        slide.shapes.title.text_frame.text = title
        box = slide.shapes.add_textbox(Pt(100), Pt(200), Pt(300), Pt(40))
        box.text_frame.text = f"Text of slide {number}"
        if number == 1 and rows:
            frame = slide.shapes.add_table(len(rows), len(rows[0]), Pt(100), Pt(300), Pt(300), Pt(100))
            for y, row in enumerate(rows):
                for x, text in enumerate(row):
                    frame.table.cell(y, x).text_frame.text = text
        if number == 1 and notes:
            frame_of_notes = slide.notes_slide.notes_text_frame
            assert frame_of_notes is not None
            frame_of_notes.text = notes
    return _saved(presentation.save)


def book(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """An xlsx with these sheets."""
    workbook = Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    return _saved(workbook.save)


def mail(*, subject: str = "Meeting", text: str = "See you at noon.", html: str = "", attachment: str = "") -> bytes:
    """An eml with a plain or an HTML body, or both."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ada <ada@example.org>", "bob@example.org", subject
    message["Date"] = "Mon, 05 Jan 2026 10:00:00 +0000"
    if text:
        message.set_content(text)
        if html:
            message.add_alternative(html, subtype="html")
    else:
        message.set_content(html, subtype="html")
    if attachment:
        message.add_attachment(b"data", maintype="application", subtype="octet-stream", filename=attachment)
    return message.as_bytes()


def office_zip(folder: str, members: dict[str, bytes]) -> bytes:
    """A zip container that passes for an Office file: `folder` is `word/`, `ppt/` or `xl/`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        for name, data in members.items():
            archive.writestr(f"{folder}{name}", data)
    return buffer.getvalue()


def encrypted_office() -> bytes:
    """The outside of a password-protected Office file: an OLE container with an encrypted package."""
    return OLE + b"\x00" * 504 + "EncryptedPackage".encode("utf-16-le") + b"\x00" * 512


def _saved(save: object) -> bytes:
    buffer = io.BytesIO()
    assert callable(save)
    save(buffer)
    return buffer.getvalue()


def _shown(lines: Iterable[Words]) -> bytes:
    return "\n".join(map(_shown_line, lines)).encode("cp1252")


def _shown_line(line: Words) -> str:
    place = f"{line.x} {792 - line.y - line.size}"
    if not line.turn:
        return f"BT /F1 {line.size} Tf {place} Td ({_escaped(line.text)}) Tj ET"
    cosine, sine = cos(radians(line.turn)), sin(radians(line.turn))
    matrix = f"{cosine:.4f} {sine:.4f} {-sine:.4f} {cosine:.4f} {place} Tm"
    return f"BT /F1 {line.size} Tf {matrix} ({_escaped(line.text)}) Tj ET"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _pdf(
    pages: Sequence[bytes],
    *,
    resources: str,
    objects: Sequence[bytes],
    extra_trailer: str = "",
    catalog: str = "",
    page_entries: str = "",
) -> bytes:
    """Objects: catalogue, page tree, font, what `objects` adds, then a page and its content in turn."""
    first_page = 4 + len(objects)
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    parts = [
        f"<</Type/Catalog{catalog}/Pages 2 0 R>>".encode(),
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        *objects,
    ]
    shared = f"/Font<</F1 3 0 R>>{resources.format(first=4)}"
    for index, content in enumerate(pages):
        body = f"{first_page + 2 * index + 1} 0 R"
        page = f"<</Type/Page{page_entries}/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<<{shared}>>/Contents {body}>>"
        parts += [page.encode(), f"<</Length {len(content)}>>\nstream\n".encode() + content + b"\nendstream"]
    framed = [f"{number} 0 obj\n".encode() + part + b"\nendobj\n" for number, part in enumerate(parts, 1)]
    head = b"%PDF-1.4\n"
    offsets = list(accumulate(map(len, framed), initial=len(head)))
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets[:-1])
    xref = f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<</Size {len(parts) + 1}/Root 1 0 R{extra_trailer}>>\nstartxref\n{offsets[-1]}\n%%EOF\n"
    return head + b"".join(framed) + (xref + trailer).encode()
