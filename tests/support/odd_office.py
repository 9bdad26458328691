"""Office files of kinds that programs write less often: other content types, charts of the newer kinds or without
values, sheets from their XML."""

import io
import zipfile
from collections.abc import Callable, Mapping

_OFFICE = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_OFFICE}/officeDocument/2006/relationships"
_NEW_CHART = "http://schemas.microsoft.com/office/drawing/2014/chartex"
_SHEET = f"{_OFFICE}/spreadsheetml/2006/main"
MAIN_TYPES = {
    "docm": "application/vnd.ms-word.document.macroEnabled.main+xml",
    "dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    "dotm": "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
    "pptm": "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    "ppsx": "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
    "ppsm": "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
    "potx": "application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
}
"""What the main part of such a file calls itself."""
NEW_CHART_KIND = "http://schemas.microsoft.com/office/2014/relationships/chartEx"


def change_members(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """The package with the bytes that `change` makes of each member by its name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, change(name, source.read(name)))
    return buffer.getvalue()


def call_main_part(data: bytes, ending: str) -> bytes:
    """A document or presentation as the kind of file that has this ending."""
    plain = "wordprocessingml.document" if ending.startswith("do") else "presentationml.presentation"
    old = f"application/vnd.openxmlformats-officedocument.{plain}.main+xml".encode()
    new = MAIN_TYPES[ending].encode()

    def change(name: str, content: bytes) -> bytes:
        assert name != "[Content_Types].xml" or old in content
        return content.replace(old, new) if name == "[Content_Types].xml" else content

    return change_members(data, change)


def new_chart(title: str, points: Mapping[str, float]) -> str:
    """A chart of the kinds since 2016, such as a waterfall: its title and its points."""
    names = "".join(f'<cx:pt idx="{place}">{name}</cx:pt>' for place, name in enumerate(points))
    values = "".join(f'<cx:pt idx="{place}">{value}</cx:pt>' for place, value in enumerate(points.values()))
    return (
        f'<cx:chartSpace xmlns:cx="{_NEW_CHART}"><cx:chartData><cx:data id="0">'
        f'<cx:strDim type="cat"><cx:lvl ptCount="{len(points)}">{names}</cx:lvl></cx:strDim>'
        f'<cx:numDim type="val"><cx:lvl ptCount="{len(points)}">{values}</cx:lvl></cx:numDim></cx:data></cx:chartData>'
        f"<cx:chart><cx:title><cx:tx><cx:txData><cx:v>{title}</cx:v></cx:txData></cx:tx></cx:title></cx:chart>"
        "</cx:chartSpace>"
    )


def new_chart_frame(relation: str) -> str:
    """What a slide refers to such a chart with."""
    return (
        f'<p:graphicFrame xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:a="{_OFFICE}/drawingml/2006/main"'
        f' xmlns:r="{_RELATIONS}"><p:nvGraphicFramePr><p:cNvPr id="90" name="c"/><p:cNvGraphicFramePr/><p:nvPr/>'
        '</p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm><a:graphic>'
        f'<a:graphicData uri="{_NEW_CHART}"><cx:chart xmlns:cx="{_NEW_CHART}" r:id="{relation}"/></a:graphicData>'
        "</a:graphic></p:graphicFrame>"
    )


def sheet_file(rows: str, *, behind: str = "") -> bytes:
    """An xlsx of one sheet from the XML of its rows, and of what stands `behind` them."""
    types = f"{_OFFICE}/package/2006/content-types"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{types}"><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": _relate("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATIONS}">'
        '<sheets><sheet name="Ledger" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relate("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData>{behind}</worksheet>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def text_cell(address: str, text: str) -> str:
    """A cell that holds its text itself."""
    return f'<c r="{address}" t="inlineStr"><is><t>{text}</t></is></c>'


def _relate(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_RELATIONS}/{kind}" Target="{target}"/></Relationships>'
    )
