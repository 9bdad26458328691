"""The names of a chart's values: of several levels, and of cells that the chart only refers to."""

import io
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from openpyxl import Workbook  # type: ignore[import-untyped]
from openpyxl.chart import BarChart, Reference  # type: ignore[import-untyped]
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from gateway.features.documents.engine.ingest.parsers import graphics
from gateway.features.documents.engine.ingest.parsers.graphics import parse_xml, read_chart
from tests.unit.ingest import test_sheet_coverage as sheets
from tests.unit.ingest.test_pdf_slides_coverage import complete, lines, presentation, read


def build_years(slide: Any, _: Any) -> None:
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    for year in ("2024", "2025"):
        names = data.add_category(year)  # type: ignore[no-untyped-call]
        for quarter in ("Q1", "Q2"):
            names.add_sub_category(quarter)
    data.add_series("Sales", (1, 2, 3, 4))  # type: ignore[no-untyped-call]
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(10), Pt(10), Pt(200), Pt(200), data)


def test_an_outer_name_is_beside_all_that_it_holds_for(tmp_path: Path) -> None:
    output = read(presentation(build_years), "pptx", tmp_path)
    assert lines(output)[-1].splitlines()[2:] == [
        "| 2024 / Q1 | 1 |", "| 2024 / Q2 | 2 |", "| 2025 / Q1 | 3 |", "| 2025 / Q2 | 4 |",
    ]  # fmt: skip
    assert complete(output)


def test_coverage_falls_when_a_value_lacks_its_outer_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphics, "_join_levels", lambda levels: ["2024 Q1", "Q2", "2025 Q1", "Q2"])
    output = read(presentation(build_years), "pptx", tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"chart": 2}


def test_names_of_a_middle_level_end_with_the_outer_one() -> None:
    levels = [["2024", "", "", "2025"], ["Spring", "", "Autumn"], ["a", "b", "", "c", "d"]]
    assert graphics._join_levels(levels) == [
        "2024 / Spring / a", "2024 / Spring / b", "2024 / Autumn", "2025 / c", "2025 / d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "names", "values"),
    [
        (
            [["Year", "Quarter", "Sales"], ["2024", "Q1", 1], ["", "Q2", 2], ["2025", "Q1", 3], ["", "Q2", 4]],
            "='Dé 1'!$A$2:$B$5",
            "='Dé 1'!$C$2:$C$5",
        ),
        (
            [["Year", "2024", "", "2025", ""], ["Quarter", "Q1", "Q2", "Q1", "Q2"], ["Sales", 1, 2, 3, 4]],
            "='Dé 1'!$B$1:$E$2",
            "='Dé 1'!$B$3:$E$3",
        ),
    ],
)
def test_names_are_looked_up_in_the_cells(rows: list[list[Any]], names: str, values: str, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    sheet = book.add_worksheet("Dé 1")
    for number, row in enumerate(rows):
        sheet.write_row(number, 0, row)
    chart = book.add_chart({"type": "column"})
    chart.add_series({"categories": names, "values": values, "name": "Sales"})
    sheet.insert_chart("H1", chart)
    book.close()
    output = sheets.read(buffer.getvalue(), tmp_path)
    assert lines(output)[-1].splitlines()[2:] == [
        "| 2024 / Q1 | 1 |", "| 2024 / Q2 | 2 |", "| 2025 / Q1 | 3 |", "| 2025 / Q2 | 4 |",
    ]  # fmt: skip
    assert not output.uncertainties


def test_a_chart_that_stores_no_values_shows_those_of_its_cells(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    for row in (["Month", "Rent"], ["May", 5], ["June", 7]):
        sheet.append(row)
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=3))
    sheet.add_chart(chart, "E1")
    buffer = io.BytesIO()
    book.save(buffer)
    output = sheets.read(buffer.getvalue(), tmp_path)
    assert lines(output)[-1] == "|  | Rent |\n| --- | --- |\n| May | 5 |\n| June | 7 |"
    assert not output.uncertainties


def test_values_whose_names_are_not_stored_are_told(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    sheet = book.add_worksheet("D")
    sheet.write_row(0, 0, ["Month", "Rent"])
    sheet.write_row(1, 0, ["May", 512])
    chart = book.add_chart({"type": "column"})
    chart.add_series({"categories": "=(D!$A$2:$B$2,D!$A$2:$B$2)", "values": "=D!$B$2:$B$2"})
    sheet.insert_chart("H1", chart)
    book.close()
    output = sheets.read(buffer.getvalue(), tmp_path)
    assert lines(output)[-1] == "| 512 |\n| --- |"
    assert output.uncertainties == ("a chart stores no names of some values: rows without a name: 1",)


def test_a_chart_without_names_numbers_its_values_itself() -> None:
    chart = parse_xml(
        b'<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:ser><c:val><c:numCache>'
        b"<c:pt><c:v>512</c:v></c:pt></c:numCache></c:val></c:ser></c:chartSpace>"
    )
    assert read_chart(chart).tables == ([["", ""], ["1", "512"]],)


def test_values_are_in_the_format_of_the_cells_that_a_chart_refers_to(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    sheet = book.add_worksheet("D")
    sheet.write_row(0, 0, ["Month", "Share"])
    day, share = (book.add_format({"num_format": code}) for code in ("mmm yyyy", "0%"))
    for row, (month, part) in enumerate([(46023, 0.1), (46054, 0.25)], 1):
        sheet.write(row, 0, month, day)
        sheet.write(row, 1, part, share)
    chart = book.add_chart({"type": "line"})
    chart.add_series({"name": "=D!$B$1", "categories": "=D!$A$2:$A$3", "values": "=D!$B$2:$B$3"})
    sheet.insert_chart("H1", chart)
    book.close()
    output = sheets.read(buffer.getvalue(), tmp_path)
    assert lines(output)[-1].splitlines()[2:] == ["| Jan 2026 | 10% |", "| Feb 2026 | 25% |"]
    assert complete(output)


def test_days_of_a_chart_are_counted_from_1904_where_it_says_so() -> None:
    chart = parse_xml(
        b'<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:date1904 val="1"/><c:ser>'
        b"<c:cat><c:numRef><c:numCache><c:formatCode>d.m.yyyy</c:formatCode><c:pt><c:v>44561</c:v></c:pt></c:numCache>"
        b"</c:numRef></c:cat><c:val><c:numCache><c:pt><c:v>512</c:v></c:pt></c:numCache></c:val></c:ser></c:chartSpace>"
    )
    assert read_chart(chart).tables == ([["", ""], ["1.1.2026", "512"]],)
