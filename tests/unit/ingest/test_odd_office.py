"""Office files of kinds that programs write less often lose nothing without a word about it."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.util import Pt

from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type
from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.ingest.parsers.graphics import iter_diagram_texts, read_chart
from tests.support.documents import slides, word
from tests.support.odd_office import (
    MAIN_TYPES,
    NEW_CHART_KIND,
    call_main_part,
    change_members,
    new_chart,
    new_chart_frame,
    sheet_file,
    text_cell,
)
from tests.support.word_files import note_part, paragraph, run, word_file
from tests.unit.ingest.test_pdf_slides_coverage import complete, lines, presentation
from tests.unit.ingest.test_pdf_slides_coverage import read as read_slides
from tests.unit.ingest.test_sheet_coverage import read as read_book
from tests.unit.ingest.test_sheet_parts import drawn, shape
from tests.unit.ingest.test_word_coverage import read as read_word
from tests.unit.ingest.test_word_coverage import text_of


@pytest.mark.parametrize("ending", MAIN_TYPES)
def test_templates_shows_and_files_with_macros_are_read_as_documents(ending: str, tmp_path: Path) -> None:
    file_type = TYPES[f".{ending}"]
    made = word(paragraphs=("Rent is 512.",)) if file_type == "docx" else slides(["Rent is 512."])
    output = read_slides(call_main_part(made, ending), file_type, tmp_path)
    assert "Rent is 512." in lines(output)
    assert output.metadata["parser"] in {"python-docx", "python-pptx"}
    assert not output.uncertainties
    assert detect_file_type("application/octet-stream", f"report.{ending}") == file_type


def test_a_chart_of_the_newer_kinds_has_its_title(tmp_path: Path) -> None:
    def build(slide: Any, deck: Any) -> None:
        chart = Part(
            PackURI("/ppt/charts/chartEx1.xml"),
            "application/vnd.ms-office.chartex+xml",
            deck.part.package,
            new_chart("Rent by berth", {"North": 512, "South": 480.5}).encode(),
        )
        relation = slide.part.relate_to(chart, NEW_CHART_KIND)
        slide.shapes._spTree.append(parse_xml(new_chart_frame(relation)))

    output = read_slides(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Rent by berth", "| North | 512 |\n| --- | --- |\n| South | 480.5 |"]
    assert complete(output)


def test_a_chart_without_stored_values_is_reported(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
        data.categories = ["2025"]
        data.add_series("Fees", (950,))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.PIE, Pt(10), Pt(10), Pt(200), Pt(200), data).chart
        for cache in list(chart._chartSpace.iter("{*}numCache", "{*}strCache")):
            cache.getparent().remove(cache)
        slide.shapes.title.text_frame.text = "Fees"

    output = read_slides(presentation(build, layout=5), "pptx", tmp_path)
    assert lines(output) == ["Fees"]
    assert output.uncertainties == ("a chart stores no values: they were not read",)


def test_embedded_objects_of_a_workbook_are_named(tmp_path: Path) -> None:
    buffer = io.BytesIO(sheet_file(f'<row r="1">{text_cell("A1", "Rent")}</row>'))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("xl/embeddings/Microsoft_Word_Document1.docx", b"PK")
    assert read_book(buffer.getvalue(), tmp_path).uncertainties == (
        "an embedded object was not read (Microsoft_Word_Document1.docx)",
    )


def test_hidden_slides_are_read_and_named(tmp_path: Path) -> None:
    def build(slide: Any, deck: Any) -> None:
        slide.shapes.title.text_frame.text = "Fees"
        second = deck.slides.add_slide(deck.slide_layouts[5])
        second.shapes.title.text_frame.text = "Old fees"
        second._element.set("show", "0")

    output = read_slides(presentation(build, layout=5), "pptx", tmp_path)
    assert lines(output) == ["Fees", "Old fees"]
    assert output.uncertainties == ("slide 2 is hidden: a show leaves out what was read of it",)


def test_what_a_slide_shows_struck_out_is_marked(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        paragraph = slide.shapes.title.text_frame.paragraphs[0]
        for text, strike in (("Fee ", "noStrike"), ("2", "sngStrike"), ("00 ", "dblStrike"), ("150", "")):
            one = paragraph.add_run()
            one.text = text
            if strike:
                one.font._element.set("strike", strike)

    assert lines(read_slides(presentation(build, layout=5), "pptx", tmp_path)) == ["Fee ~~200~~ 150"]


@pytest.mark.parametrize(
    ("core", "title"),
    [
        ("PowerPoint Presentation", "Harbour plan"),
        ("PowerPoint-Präsentation", "Harbour plan"),
        ("Présentation PowerPoint", "Harbour plan"),
        ("Harbour plan in PowerPoint", "Harbour plan in PowerPoint"),
    ],
)
def test_the_title_that_powerpoint_gives_every_file_is_passed_over(core: str, title: str, tmp_path: Path) -> None:
    def build(slide: Any, deck: Any) -> None:
        slide.shapes.title.text_frame.text = "Harbour plan"
        deck.core_properties.title = core

    assert read_slides(presentation(build, layout=5), "pptx", tmp_path).metadata["title"] == title


def test_lines_of_a_diagram_stay_apart() -> None:
    names = (
        'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
        ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )
    text = "<a:p><a:r><a:t>North</a:t></a:r><a:br/><a:r><a:t>quay</a:t></a:r></a:p>"
    point = f'<dgm:pt modelId="1"><dgm:t>{text}</dgm:t></dgm:pt>'
    root = parse_xml(f"<dgm:dataModel {names}><dgm:ptLst>{point}</dgm:ptLst></dgm:dataModel>")
    assert list(iter_diagram_texts(root)) == [(0, "North quay")]


def field(instruction: str, kind: str) -> str:
    if kind == "simple":
        return f'<w:fldSimple w:instr="{instruction}"/>'
    marks = [f'<w:r><w:fldChar w:fldCharType="{one}"/></w:r>' for one in ("begin", "end")]
    return f"{marks[0]}<w:r><w:instrText>{instruction}</w:instrText></w:r>{marks[1]}"


@pytest.mark.parametrize("kind", ["simple", "marked"])
def test_fields_that_only_word_computes_are_reported(kind: str, tmp_path: Path) -> None:
    body = paragraph(run("Total: "), field(" =SUM(ABOVE) ", kind), field(" PAGE ", kind), field(" XE berth ", kind))
    output = read_word(word_file(body), tmp_path)
    assert text_of(output) == "Total:"
    assert output.uncertainties == ("fields without a stored result were not computed: =SUM(ABOVE)",)


def test_what_a_note_could_not_show_is_reported(tmp_path: Path) -> None:
    body = paragraph(run("Rent"), '<w:r><w:footnoteReference w:id="2"/></w:r>')
    notes = note_part("footnote", {"2": "Due on"}).replace("</w:p>", f"{field('DOCPROPERTY Due', 'simple')}</w:p>", 1)
    output = read_word(word_file(body, parts={"f": ("footnotes", notes)}), tmp_path)
    assert output.uncertainties == ("fields without a stored result were not computed: DOCPROPERTY Due",)


HEAD = f'<row r="1">{text_cell("A1", "Item")}{text_cell("B1", "Price")}</row>'


@pytest.mark.parametrize(
    ("formulas", "expected"),
    [
        (('<f t="array" ref="B2:B3">SORT(D2:D3)</f>', ""), "B2, B3"),
        (('<f t="dataTable" ref="B2:B3" r1="D1"/><v>7</v>', '<f t="dataTable" ref="B2:B3" r1="D1"/>'), "B3"),
        (('<f t="shared" si="9"/>', "<v>7</v>"), "B2"),
    ],
)
def test_cells_that_other_formulas_fill_are_reported(formulas: Sequence[str], expected: str, tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{number}">{text_cell(f"A{number}", "Bolt")}<c r="B{number}">{formula}</c></row>'
        for number, formula in enumerate(formulas, 2)
    )
    output = read_book(sheet_file(HEAD + rows), tmp_path)
    assert output.uncertainties == (f"sheet Ledger: formula without value: {expected}",)
    for address in expected.split(", "):
        assert f"[formula without value {address}:" in output.chunks[-1].content


def test_a_formula_does_not_fill_more_cells_than_a_sheet_is_read_for(tmp_path: Path) -> None:
    row = f'<row r="2">{text_cell("A2", "Bolt")}<c r="B2"><f t="array" ref="B2:XFD1048576">SORT(D2:D3)</f></c></row>'
    output = read_book(sheet_file(HEAD + row), tmp_path)
    assert any("formula without value: B2, C2" in note for note in output.uncertainties)


def test_ranges_that_end_before_they_begin_cost_no_time(tmp_path: Path) -> None:
    formula = '<f t="array" ref="C1:B9999999">SORT(D2)</f>'
    rows = "".join(
        f'<row r="{number}">{text_cell(f"A{number}", "Bolt")}<c r="B{number}">{formula}</c></row>'
        for number in (2, 3, 4)
    )
    output = read_book(sheet_file(HEAD + rows), tmp_path)
    assert output.uncertainties == ("sheet Ledger: formula without value: B2, B3, B4",)
    assert output.processing_time_ms < 1_000


def test_a_message_names_all_cells_that_show_it(tmp_path: Path) -> None:
    places = ("A2 A3", "B2:B9", "B2:B9 " + " ".join(f"D{row}" for row in range(1, 12)))
    shown = "".join(f'<dataValidation sqref="{one}" prompt="In euros" showInputMessage="1"/>' for one in places)
    output = read_book(sheet_file(HEAD, behind=f"<dataValidations>{shown}</dataValidations>"), tmp_path)
    listed = "A2, A3, B2:B9, D1, D2, D3, D4, D5, D6, D7 and 4 more"
    assert output.chunks[-1].content == f"Input message at {listed}: In euros"


def test_messages_for_people_who_fill_cells_in_are_read(tmp_path: Path) -> None:
    message = 'sqref="B2:B9" promptTitle="Price" prompt="In euros, with &quot;,&quot;"'
    shown = f'<dataValidation {message} showInputMessage="1"/><dataValidation {message}/>'
    output = read_book(sheet_file(HEAD, behind=f"<dataValidations>{shown}</dataValidations>"), tmp_path)
    assert output.chunks[-1].content == 'Input message at B2:B9: Price: In euros, with ","'
    assert complete(output)


def test_descriptions_of_shapes_on_a_sheet_are_read(tmp_path: Path) -> None:
    output = read_book(drawn(shape("Berth 7", 'descr="Arrow to dock"')), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["Berth 7", "[image: Arrow to dock]"]


def test_macro_books_are_read(tmp_path: Path) -> None:
    plain = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    with_macros = b"application/vnd.ms-excel.sheet.macroEnabled.main+xml"
    data = change_members(sheet_file(HEAD), lambda _, content: content.replace(plain, with_macros))
    assert "Price" in read_book(data, tmp_path).chunks[-1].content
    assert TYPES[".xlsm"] == detect_file_type("application/vnd.ms-excel.sheet.macroEnabled.12", "") == "xlsx"


def test_a_formula_whose_value_is_an_empty_text_is_an_empty_cell(tmp_path: Path) -> None:
    formula = '<f>IF(A2="","late","")</f>'
    row = f'<row r="2">{text_cell("A2", "Bolt")}<c r="B2" t="str">{formula}<v></v></c></row>'
    other = f'<row r="3">{text_cell("A3", "Nut")}<c r="B3">{formula}<v></v></c></row>'
    output = read_book(sheet_file(HEAD + row + other), tmp_path)
    assert "| Bolt |  |" in output.chunks[-1].content
    assert output.uncertainties == ("sheet Ledger: formula without value: B3",)


@pytest.mark.parametrize(("number", "shown"), [(1, "1 cell shows"), (2, "2 cells show")])
def test_cells_of_linked_data_are_reported(number: int, shown: str, tmp_path: Path) -> None:
    cells = "".join(f'<c r="{column}2" t="e" vm="1"><v>#VALUE!</v></c>' for column in "BC"[:number])
    row = f'<row r="2">{text_cell("A2", "Bolt")}{cells}<c r="D2" t="e"><v>#REF!</v></c></row>'
    output = read_book(sheet_file(HEAD + row), tmp_path)
    assert output.uncertainties == (f"sheet Ledger: {shown} a picture or linked data, which was not read",)


def test_a_control_on_a_page_is_reported(tmp_path: Path) -> None:
    control = '<w:r><w:object><w:control r:id="c" w:name="Amount"/></w:object></w:r>'
    output = read_word(word_file(paragraph(run("Amount: "), control)), tmp_path)
    assert output.uncertainties == ("a form control was not read (Amount)",)


def test_names_from_cells_label_the_points_of_a_chart() -> None:
    chart = parse_xml(
        '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
        ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
        ' xmlns:c15="http://schemas.microsoft.com/office/drawing/2012/chart"><c:ser><c:tx><c:v>Rent</c:v></c:tx>'
        '<c:dLbls><c:dLbl><c:tx><c:rich><a:p><a:fld id="{0}" type="CELLRANGE"><a:t>[CELLRANGE]</a:t></a:fld>'
        "<a:r><a:t> (new)</a:t></a:r></a:p></c:rich></c:tx></c:dLbl></c:dLbls>"
        "<c:xVal><c:numCache><c:pt><c:v>1</c:v></c:pt></c:numCache></c:xVal>"
        "<c:yVal><c:numCache><c:pt><c:v>512</c:v></c:pt></c:numCache></c:yVal><c:extLst><c:ext><c15:datalabelsRange>"
        '<c15:dlblRangeCache><c:pt idx="0"><c:v>Birch</c:v></c:pt></c15:dlblRangeCache></c15:datalabelsRange></c:ext>'
        "</c:extLst></c:ser></c:chartSpace>"
    )
    assert read_chart(chart) == (((" (new)"),), ([["x", "Rent", "label"], ["1", "512", "Birch"]],))
