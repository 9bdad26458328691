"""Parts of a workbook beside cells of numbers: charts as sheets, form controls, drawings, escaped texts, ISO dates."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]

from agent.workbooks import form_controls, open_workbook
from agent.workbooks.package import collect_string
from tests.support.workbooks import workbook
from tests.unit.ingest.test_sheet_coverage import complete, read, table

OFFICE = "http://schemas.openxmlformats.org"
RELATIONS = f"{OFFICE}/officeDocument/2006/relationships"
PACKAGE = f"{OFFICE}/package/2006/relationships"
DRAWING = (
    f'xmlns:xdr="{OFFICE}/drawingml/2006/spreadsheetDrawing" xmlns:a="{OFFICE}/drawingml/2006/main"'
    f' xmlns:r="{RELATIONS}" xmlns:mc="{OFFICE}/markup-compatibility/2006" xmlns:c="{OFFICE}/drawingml/2006/chart"'
)
SHEET = "xl/worksheets/sheet1.xml"


def change(parts: Mapping[str, str], *, replaced: Mapping[str, tuple[str, str]] | None = None) -> bytes:
    """A workbook of one sheet with further parts, and with texts of its own parts replaced."""
    made = workbook({"Ledger": [["Item", "Price"], ["Bolt", 77]]})
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode()
            old, new = (replaced or {}).get(name, ("", ""))
            assert old in text
            target.writestr(name, text.replace(old, new, 1) if old else text)
        for name, text in parts.items():
            target.writestr(name, text)
    return buffer.getvalue()


def relate(kind: str, target: str) -> str:
    relation = f'<Relationship Id="rId9" Type="{RELATIONS}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}">{relation}</Relationships>'


def shape(text: str, properties: str = "") -> str:
    head = f'<xdr:nvSpPr><xdr:cNvPr id="2" name="s" {properties}/></xdr:nvSpPr>'
    return f"<xdr:sp>{head}<xdr:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"


def drawn(content: str) -> bytes:
    return change({
        "xl/worksheets/_rels/sheet1.xml.rels": relate("drawing", "../drawings/drawing1.xml"),
        "xl/drawings/drawing1.xml": f"<xdr:wsDr {DRAWING}><xdr:oneCellAnchor>{content}</xdr:oneCellAnchor></xdr:wsDr>",
    })  # fmt: skip


CHART = f"""<c:chartSpace {DRAWING}><c:ser><c:tx><c:v>Rent</c:v></c:tx><c:val><c:numRef><c:numCache>
<c:pt idx="0"><c:v>512</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:chartSpace>"""
CHART_FRAME = """<xdr:absoluteAnchor><xdr:graphicFrame><a:graphic><a:graphicData><c:chart r:id="rId9"/></a:graphicData>
</a:graphic></xdr:graphicFrame></xdr:absoluteAnchor>"""


def test_a_chart_that_is_a_sheet_is_read(tmp_path: Path) -> None:
    sheet = f'<sheet xmlns:r="{RELATIONS}" name="Rents" sheetId="9" r:id="rId99"/></sheets>'
    relation = f'<Relationship Id="rId99" Type="{RELATIONS}/chartsheet" Target="chartsheets/sheet1.xml"/>'
    data = change(
        {
            "xl/chartsheets/sheet1.xml": "<chartsheet/>",
            "xl/chartsheets/_rels/sheet1.xml.rels": relate("drawing", "../drawings/drawing1.xml"),
            "xl/drawings/drawing1.xml": f"<xdr:wsDr {DRAWING}>{CHART_FRAME}</xdr:wsDr>",
            "xl/drawings/_rels/drawing1.xml.rels": relate("chart", "../charts/chart1.xml"),
            "xl/charts/chart1.xml": CHART,
        },
        replaced={
            "xl/workbook.xml": ("</sheets>", sheet),
            "xl/_rels/workbook.xml.rels": ("</Relationships>", f"{relation}</Relationships>"),
        },
    )
    output = read(data, tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["Rents", "|  | Rent |\n| --- | --- |\n| 1 | 512 |"]
    assert complete(output)


def control(text: str, kind: str) -> str:
    data = f'<x:ClientData ObjectType="{kind}"/>'
    return f"<v:shape><v:textbox><div><font>{text}<br></font></div></v:textbox>{data}</v:shape>"


def controls() -> bytes:
    shapes = control("Tick if paid", "Checkbox") + control("a copy", "Note") + control(" ", "Button")
    names = 'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:x="urn:schemas-microsoft-com:office:excel"'
    return change({
        "xl/worksheets/_rels/sheet1.xml.rels": relate("vmlDrawing", "../drawings/controls.vml"),
        "xl/drawings/controls.vml": f"<xml {names}>{shapes}</xml>",
    })  # fmt: skip


def test_captions_of_form_controls_are_read(tmp_path: Path) -> None:
    output = read(controls(), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["Form control: Tick if paid"]
    assert complete(output)


def test_coverage_falls_when_controls_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_controls, "_COMMENT", "Checkbox")
    output = read(controls(), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"form controls": 1}


def test_of_drawings_only_what_is_shown_is_read(tmp_path: Path) -> None:
    choice = (
        f'<mc:Choice Requires="a14">{shape("All net")}</mc:Choice><mc:Fallback>{shape("Old program")}</mc:Fallback>'
    )
    hidden = shape("Not shown", 'hidden="1"')
    content = f"<mc:AlternateContent>{choice}</mc:AlternateContent>{hidden}"
    output = read(drawn(content), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["All net"]
    assert complete(output)
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden shape": 2}


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("North_x000D_quay", "North quay"),
        ("a_x005F_x0041_b", "a_x0041_b"),
        ("x_x_y", "x_x_y"),
        ("_x00e5_r", "år"),
        ("A_xD83D__xDE00_", "A\N{GRINNING FACE}"),
        ("A_xD83D_b", "A\ufffdb"),
    ],
)
def test_escaped_characters_are_decoded_once(stored: str, shown: str, tmp_path: Path) -> None:
    for cell in (f'<c t="inlineStr"><is><t>{stored}</t></is></c>', f'<c t="str"><f>A1</f><v>{stored}</v></c>'):
        data = change({}, replaced={SHEET: ("</sheetData>", f'<row r="9">{cell}<c><v>5</v></c></row></sheetData>')})
        output = read(data, tmp_path)
        assert f"| {shown} | 5 |" in table(output)
        assert complete(output)


def test_a_date_in_iso_8601_is_one_by_its_format(tmp_path: Path) -> None:
    cells = '<c t="d" s="1"><v>2026-03-01</v></c><c t="d" s="1"><v>soon</v></c>'
    data = change(
        {},
        replaced={
            SHEET: ("</sheetData>", f'<row r="9">{cells}</row></sheetData>'),
            "xl/styles.xml": ("</cellXfs>", '<xf numFmtId="15"/></cellXfs>'),
        },
    )
    output = read(data, tmp_path)
    assert "| 1-Mar-26 | soon |" in table(output)
    assert complete(output)
    book = open_workbook(data)
    typed = book.get_typed(book.sheets[0], 9, 1)
    assert typed is not None
    assert typed.kind == "date"


def test_a_title_beside_the_number_of_the_page_is_read(tmp_path: Path) -> None:
    heads = "<headerFooter><oddHeader>&amp;CRent roll 2026, page &amp;P/&amp;N</oddHeader>"
    heads += "<oddFooter>&amp;LPage &amp;P&amp;C&amp;P</oddFooter></headerFooter>"
    output = read(change({}, replaced={SHEET: ("</worksheet>", f"{heads}</worksheet>")}), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["Page header or footer: Rent roll 2026, page /"]
    assert complete(output)


def test_a_number_that_its_format_rounds_to_nothing_is_no_loss(tmp_path: Path) -> None:
    output = read(workbook({"S": [["Item", "Share"], ["a", -0.04]]}, formats={"B2": "0.0"}), tmp_path)
    assert "0.0 |" in table(output)
    assert complete(output)


@pytest.mark.parametrize(("old", "new"), [("sheet1.xml", "Sheet1.XML"), ("xl/worksheets/", "xl\\worksheets\\")])
def test_paths_of_parts_are_compared_as_programs_do(old: str, new: str, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(change({}))) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            target.writestr(name.replace(old, new), source.read(name))
    output = read(buffer.getvalue(), tmp_path)
    assert output.metadata["parser"] == "workbook"
    assert "| Bolt | 77 |" in table(output)
    assert complete(output)


def test_cells_without_addresses_are_counted_in_hidden_columns(tmp_path: Path) -> None:
    columns = '<cols><col min="2" max="2" hidden="1"/></cols><sheetData>'
    cells = '<row r="9"><c t="inlineStr"><is><t>Nut</t></is></c><c><v>4711</v></c></row></sheetData>'
    data = change({}, replaced={SHEET: ("</sheetData>", cells)})
    hidden = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(hidden, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name).replace(b"<sheetData>", columns.encode()))
    output = read(hidden.getvalue(), tmp_path)
    assert "4711" not in table(output)
    assert complete(output)


def test_a_raised_figure_of_a_rich_text_is_raised(tmp_path: Path) -> None:
    raised = '<r><rPr><vertAlign val="superscript"/></rPr><t>{}</t></r>'
    strings = {
        "Item": f"<r><t>Area in m</t></r>{raised.format(2)}",
        "Bolt": f"<r><t>10</t></r>{raised.format(3)}<r><t> each</t></r>",
        "Cup": f"<r><t>1</t></r>{raised.format(1)}<r><t>/</t></r>{raised.format(2).replace('super', 'sub')}",
    }
    made = workbook({"Ledger": [["Item", "Price"], ["Bolt", 77], ["Cup", 7]]})
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode()
            for old, new in strings.items():
                text = text.replace(f"<t>{old}</t>", new)
            target.writestr(name, text)
    output = read(buffer.getvalue(), tmp_path)
    rows = ["| Area in m² | Price |", "| --- | --- |", "| 10³ each | 77 |", "| 1 1/2 | 7 |"]
    assert table(output).splitlines() == rows
    assert complete(output)


@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        (("log", "-2", "8"), "log₂8"),
        (("101", "-2", " is 5"), "101₂ is 5"),
        (("CO", "-2", " 415"), "CO2 415"),
        (("10", "+-6", " l"), "10⁻⁶ l"),
        (("1 ", "+3", "/", "-4"), "1 3/4"),
        (("In all ", "+1", "90"), "In all ¹ 90"),
        (("Since ", "+20", "+19", " and 20", "+1", "+2"), "Since 2019 and 20¹²"),
        (("x", "+2", "-1", "5"), "x²₁5"),
        ((), ""),
    ],
)
def test_a_moved_figure_of_a_rich_text_makes_no_larger_number(runs: tuple[str, ...], shown: str) -> None:
    aligns = {"+": '<rPr><vertAlign val="superscript"/></rPr>', "-": '<rPr><vertAlign val="subscript"/></rPr>'}
    pieces = (
        f"<r>{aligns[one[0]]}<t>{one[1:]}</t></r>" if one[0] in aligns else f"<r><t>{one}</t></r>" for one in runs
    )
    assert collect_string(etree.fromstring(f"<si>{''.join(pieces)}</si>")) == shown
