"""What a slide shows beside its own shapes: texts of its layout and master, numbers of lists, text drawn on a chart."""

from pathlib import Path
from typing import Any

import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.util import Pt

from gateway.features.documents.engine.ingest.parsers import slides
from tests.unit.ingest.test_pdf_slides_coverage import add_box, complete, lines, presentation, read
from tests.unit.ingest.test_slides_coverage import NAMESPACES, OFFICE, add_shape, run


def build_layouts(slide: Any, _: Any) -> None:
    add_box(slide, "Berth 7", 10, 10)
    add_shape(slide.slide_layout.shapes, run("Confidential"))
    add_shape(slide.slide_layout.slide_master.shapes, run("Harbour Office"))
    add_shape(slide.slide_layout.slide_master.shapes, run("Hidden"), 'hidden="1"', 91)


def test_texts_of_the_layout_and_of_the_master_are_read_once(tmp_path: Path) -> None:
    def build(slide: Any, deck: Any) -> None:
        build_layouts(slide, deck)
        add_box(deck.slides.add_slide(slide.slide_layout), "Berth 8", 10, 10)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == [
        "Berth 7", "Slide layout: Confidential", "Slide layout: Harbour Office", "Slide 2", "Berth 8",
    ]  # fmt: skip
    assert complete(output)


def test_a_slide_that_hides_them_shows_none(tmp_path: Path) -> None:
    def build(slide: Any, deck: Any) -> None:
        build_layouts(slide, deck)
        slide._element.set("showMasterSp", "0")

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Berth 7"]
    assert complete(output)


def test_coverage_falls_when_layouts_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slides, "_iter_layout_texts", lambda _: iter(()))
    output = read(presentation(build_layouts), "pptx", tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"slide layout": 3}


def add_items(slide: Any, *items: tuple[str, int, str]) -> None:
    """A text box of items: their text, level, and the attributes of their automatic number."""
    frame = add_box(slide, "", 10, 10).text_frame
    for text, level, attributes in items:
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
        if attributes:
            paragraph._p.get_or_add_pPr().append(parse_xml(f"<a:buAutoNum {NAMESPACES} {attributes}/>"))


def test_automatic_numbers_are_those_that_are_shown(tmp_path: Path) -> None:
    arabic, letter = 'type="arabicPeriod" startAt="3"', 'type="alphaLcParenBoth"'
    items = [
        ("Moor", 0, arabic), ("Bow line", 1, letter), ("Stern line", 1, letter), ("Report", 0, arabic),
        ("Log", 1, letter), ("By the pilot", 0, ""), ("Leave", 0, arabic), ("Annex", 0, 'type="romanUcPeriod"'),
    ]  # fmt: skip
    output = read(presentation(lambda slide, _: add_items(slide, *items)), "pptx", tmp_path)
    assert lines(output) == [
        "3. Moor", "(a) Bow line", "(b) Stern line", "4. Report", "(a) Log", "By the pilot", "3. Leave", "I. Annex",
    ]  # fmt: skip


def test_a_bullet_that_is_a_tick_or_a_cross_is_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        frame = add_box(slide, "", 10, 10).text_frame
        for text, font, sign in (("Wifi", "Wingdings", "\uf0fc"), ("Sauna", "", "\u2717"), ("Pool", "", "\u2022")):
            paragraph = frame.add_paragraph()
            paragraph.text = text
            properties = paragraph._p.get_or_add_pPr()
            properties.append(parse_xml(f'<a:buFont {NAMESPACES} typeface="{font}"/>'))
            properties.append(parse_xml(f'<a:buChar {NAMESPACES} char="{sign}"/>'))

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["\u2713 Wifi", "\u2717 Sauna", "Pool"]
    assert complete(output)


def test_a_table_on_the_notes_page_is_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        frame = slide.shapes.add_table(1, 2, Pt(10), Pt(10), Pt(200), Pt(20))
        frame.table.cell(0, 0).text, frame.table.cell(0, 1).text = "Fee", "950"
        slide.notes_slide.notes_text_frame.text = "Say this."
        slide.notes_slide.shapes._spTree.append(frame._element)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Notes: Say this.", "| Fee | 950 |\n| --- | --- |"]
    assert complete(output)


def test_a_line_break_that_xml_cannot_hold_is_one(tmp_path: Path) -> None:
    output = read(presentation(lambda slide, _: add_shape(slide.shapes, run("North_x000B_quay"))), "pptx", tmp_path)
    assert lines(output) == ["North\nquay"]
    assert complete(output)


def test_text_on_a_chart_and_the_name_of_its_trend_are_read(tmp_path: Path) -> None:
    chart_name = f"{OFFICE}/drawingml/2006/chart"

    def build(slide: Any, _: Any) -> None:
        data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
        data.categories = ["2025"]
        data.add_series("Fees", (950,))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(10), Pt(10), Pt(200), Pt(200), data).chart
        box = f"<c:txBody><a:p {NAMESPACES}>{run('Limit 80')}</a:p></c:txBody>"
        shapes = Part(
            PackURI("/ppt/drawings/drawing1.xml"),
            "application/vnd.openxmlformats-officedocument.drawingml.chartshapes+xml",
            chart.part.package,
            f'<c:userShapes xmlns:c="{chart_name}">{box}</c:userShapes>'.encode(),
        )
        relation = chart.part.relate_to(shapes, f"{OFFICE}/officeDocument/2006/relationships/chartUserShapes")
        names = f'xmlns:c="{chart_name}" xmlns:r="{OFFICE}/officeDocument/2006/relationships"'
        chart._chartSpace.append(parse_xml(f'<c:userShapes {names} r:id="{relation}"/>'))
        trend = f"<c:trendline {names}><c:name>Expected</c:name></c:trendline>"
        next(chart._chartSpace.iter(f"{{{chart_name}}}ser")).append(parse_xml(trend))

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Expected", "|  | Fees |\n| --- | --- |\n| 2025 | 950 |", "Limit 80"]
    assert complete(output)


def test_the_numbers_of_a_shape_are_those_of_its_paragraphs(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_items(slide, ("Moor", 0, ""), ("Report", 0, ""), ("Note", 0, ""))
        frame = slide.shapes[-1].text_frame
        level = '<a:lvl1pPr><a:buAutoNum type="circleNumDbPlain"/></a:lvl1pPr>'
        frame._txBody.insert(1, parse_xml(f"<a:lstStyle {NAMESPACES}>{level}</a:lstStyle>"))
        frame.paragraphs[-1]._p.get_or_add_pPr().append(parse_xml(f"<a:buNone {NAMESPACES}/>"))

    assert lines(read(presentation(build), "pptx", tmp_path)) == ["① Moor", "② Report", "Note"]


def test_a_telephone_number_of_the_layout_is_read_and_the_number_of_the_slide_is_not(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_box(slide, "Berth 7", 10, 10)
        add_shape(slide.slide_layout.shapes, run("0800 112 233"))
        add_shape(slide.slide_layout.shapes, "<a:fld id='{0}' type='slidenum'><a:t>12</a:t></a:fld>", "", 91)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Berth 7", "Slide layout: 0800 112 233"]
    assert complete(output)


def test_a_box_with_the_number_of_the_title_is_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        slide.shapes.title.text = "Terms"
        box = add_box(slide, "Notice is 90 days", 10, 300)
        box._element.nvSpPr.cNvPr.set("id", str(slide.shapes.title.shape_id))

    output = read(presentation(build, layout=5), "pptx", tmp_path)
    assert lines(output) == ["Terms", "Notice is 90 days"]
    assert complete(output)
