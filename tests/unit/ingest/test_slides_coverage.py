"""Presentations: shapes of every kind, comments, notes pages, charts by their formats, embedded objects."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.util import Pt

from tests.unit.ingest.test_pdf_slides_coverage import add_box, complete, lines, presentation, read

OFFICE = "http://schemas.openxmlformats.org"
NAMESPACES = (
    f'xmlns:a="{OFFICE}/drawingml/2006/main" xmlns:p="{OFFICE}/presentationml/2006/main"'
    f' xmlns:m="{OFFICE}/officeDocument/2006/math" xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"'
)


def add_shape(shapes: Any, content: str, properties: str = "", number: int = 90) -> None:
    """Adds a shape without a geometry, which some programs write."""
    shapes._spTree.append(
        parse_xml(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="s" {properties}/><p:cNvSpPr/><p:nvPr/>'
            f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p>{content}</a:p></p:txBody></p:sp>"
        )
    )


def run(text: str) -> str:
    return f"<a:r><a:t>{text}</a:t></a:r>"


def test_a_shape_without_a_geometry_is_read(tmp_path: Path) -> None:
    output = read(presentation(lambda slide, _: add_shape(slide.shapes, run("Berth 7"))), "pptx", tmp_path)
    assert lines(output) == ["Berth 7"]
    assert output.metadata["parser"] == "python-pptx"
    assert complete(output)


def test_a_hidden_shape_is_left_out_and_counted(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_box(slide, "Shown", 10, 10)
        add_shape(slide.shapes, run("Not shown"), 'hidden="1"')

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Shown"]
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden shape": 2}


def test_descriptions_of_drawn_shapes_are_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_shape(slide.shapes, "", 'descr="Arrow from quay to dock"')
        add_shape(slide.shapes, run("Berth 7"), 'descr="Berth 7"', 91)
        slide.shapes._spTree.append(
            parse_xml(
                f'<p:grpSp {NAMESPACES}><p:nvGrpSpPr><p:cNvPr id="92" name="g" descr="Plan of the harbour"/>'
                f"<p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/></p:grpSp>"
            )
        )

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["[image: Arrow from quay to dock]", "Berth 7", "[image: Plan of the harbour]"]


def test_an_equation_is_latex(tmp_path: Path) -> None:
    square = "<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    equation = f"<a14:m><m:oMathPara><m:oMath><m:r><m:t>E=m</m:t></m:r>{square}</m:oMath></m:oMathPara></a14:m>"
    output = read(presentation(lambda slide, _: add_shape(slide.shapes, run("Thus ") + equation)), "pptx", tmp_path)
    assert lines(output) == ["Thus E=mc^{2}"]
    assert complete(output)


OLD_COMMENTS = f'<p:cmLst {NAMESPACES}><p:cm authorId="0" idx="1"><p:text>Check 55</p:text></p:cm></p:cmLst>'
NEW_COMMENTS = (
    f'<c:cmLst xmlns:c="http://schemas.microsoft.com/office/powerpoint/2018/8/main" {NAMESPACES}><c:cm id="1">'
    f"<c:replyLst><c:reply><c:txBody><a:p>{run('It is 56')}</a:p></c:txBody></c:reply></c:replyLst>"
    f"<c:txBody><a:p>{run('Check 55')}</a:p></c:txBody></c:cm></c:cmLst>"
)


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        (f"{OFFICE}/officeDocument/2006/relationships/comments", OLD_COMMENTS, ["Comment: Check 55"]),
        (
            "http://schemas.microsoft.com/office/2018/10/relationships/comments",
            NEW_COMMENTS,
            ["Comment: It is 56", "Comment: Check 55"],
        ),
    ],
)
def test_comments_are_read_and_marked(kind: str, content: str, expected: list[str], tmp_path: Path) -> None:
    def build(slide: Any, made: Any) -> None:
        add_box(slide, "Text", 10, 10)
        part = Part(PackURI("/ppt/comments/c1.xml"), "application/xml", made.part.package, content.encode())
        slide.part.relate_to(part, kind)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Text", *expected]
    assert complete(output)


def test_a_box_on_a_notes_page_is_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_box(slide, "Text", 10, 10)
        slide.notes_slide.notes_text_frame.text = "Say 90."
        add_shape(slide.notes_slide.shapes, run("Source: port log"))

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output)[0] == "Text"
    assert set(lines(output)[1].removeprefix("Notes: ").splitlines()) == {"Say 90.", "Source: port log"}
    assert complete(output)


def test_values_of_a_chart_are_percents_and_days_where_it_says_so(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        data: Any = CategoryChartData(number_format="0%")  # type: ignore[no-untyped-call]
        data.categories = [dt.date(2026, 3, 1), dt.date(2026, 4, 1)]
        data.add_series("Share", (0.175, 0.2))
        slide.shapes.add_chart(XL_CHART_TYPE.LINE, Pt(50), Pt(50), Pt(300), Pt(200), data)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output)[0].splitlines()[2:] == ["| 2026-03-01 | 17.5% |", "| 2026-04-01 | 20% |"]
    assert complete(output)


def test_an_embedded_object_is_told(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_box(slide, "Text", 10, 10)
        slide.shapes._spTree.append(
            parse_xml(
                f'<p:graphicFrame {NAMESPACES}><p:nvGraphicFramePr><p:cNvPr id="70" name="o"/><p:cNvGraphicFramePr/>'
                '<p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="1" cy="1"/></p:xfrm><a:graphic>'
                f'<a:graphicData uri="{OFFICE}/presentationml/2006/ole"><p:oleObj progId="Excel.Sheet.12"/>'
                "</a:graphicData></a:graphic></p:graphicFrame>"
            )
        )

    output = read(presentation(build), "pptx", tmp_path)
    assert output.uncertainties == ("slide 1: an embedded object was not read (Excel.Sheet.12)",)


def test_a_head_over_several_columns_is_in_each(tmp_path: Path) -> None:
    texts = [["Item", "2025", "", "Note"], ["", "Q1", "Q2", ""], ["Sum", "30", "", "x"]]

    def build(slide: Any, _: Any) -> None:
        table = slide.shapes.add_table(3, 4, Pt(50), Pt(50), Pt(300), Pt(100)).table
        for row, line in enumerate(texts):
            for column, text in enumerate(line):
                table.cell(row, column).text = text
        for first, last in (((0, 1), (0, 2)), ((0, 0), (1, 0)), ((2, 1), (2, 2))):
            table.cell(*first).merge(table.cell(*last))

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output)[0].splitlines() == [
        "| Item | 2025 | 2025 | Note |", "| --- | --- | --- | --- |", "| Item | Q1 | Q2 |  |", "| Sum | 30 |  | x |",
    ]  # fmt: skip
    assert complete(output)
