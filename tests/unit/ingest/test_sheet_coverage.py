"""A workbook is read as its sheets show it; what is hidden or has no value is told."""

import datetime as dt
import io
import zipfile
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]

from agent.workbooks import Sheet, Workbook, tables
from agent.workbooks.tables import SheetTable, show_cell
from gateway.features.documents.engine.ingest.coverage import measure_coverage
from gateway.features.documents.engine.ingest.parsers import sheets
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support.workbooks import workbook


def read(data: bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "book.xlsx"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="xlsx"), max_bytes=2**22)


def complete(output: ParserOutput) -> bool:
    return output.coverage is not None and output.coverage.share == 1.0


def table(output: ParserOutput) -> str:
    return next(chunk.content for chunk in output.chunks if chunk.layout_type == "table")


def test_cells_are_shown_in_their_formats(tmp_path: Path) -> None:
    rows = [
        ["Code", "Day", "Share", "Price", "Span", "Flag", "Error"],
        [7, dt.date(2026, 3, 1), 0.175, 1234.5, 1.128472222222222, True, "#N/A"],
    ]
    formats = {"A2": "00000", "B2": "dd.mm.yyyy", "C2": "0.0%", "D2": '#,##0.00 "SEK"', "E2": "[h]:mm"}
    output = read(workbook({"Ledger": rows}, formats=formats), tmp_path)
    assert table(output).splitlines()[2] == "| 00007 | 01.03.2026 | 17.5% | 1,234.50 SEK | 27:05 | TRUE | #N/A |"
    assert output.metadata["parser"] == "workbook"
    assert complete(output)


def test_merged_cells_and_headers_over_two_rows(tmp_path: Path) -> None:
    rows = [
        ["Costs of March", None, None, None],
        ["Region", "City", "2025", None],
        [None, None, "Q1", "Q2"],
        ["North", "Oslo", 5, 6],
        [None, "Bergen", 7, 8],
    ]
    output = read(workbook({"S": rows}, merged=["A2:A3", "B2:B3", "C2:D2", "A4:A5"]), tmp_path)
    assert [chunk.content for chunk in output.chunks] == [
        "S",
        "Costs of March",
        "| Region | City | 2025 Q1 | 2025 Q2 |\n| --- | --- | --- | --- |\n| North | Oslo | 5 | 6 |\n"
        "| North | Bergen | 7 | 8 |",
    ]
    assert complete(output)


def test_a_merge_over_whole_columns_ends_with_the_cells(tmp_path: Path) -> None:
    output = read(workbook({"S": [["a", "b"], [1, 2]]}, merged=["D1:XFD1048576"]), tmp_path)
    assert table(output) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_formulas_without_a_value_are_computed_or_told(tmp_path: Path) -> None:
    rows = [["Item", "Sum"], ["a", "=1+1"], ["b", '=VLOOKUP("x",A1:B2,2)']]
    output = read(workbook({"S": rows}), tmp_path)
    assert '| b | [formula without value B3: =VLOOKUP("x",A1:B2,2)] |' in table(output)
    assert "| a | 2 |" in table(output)
    assert output.uncertainties == (
        "sheet S: computed, because the file stores no value: B2",
        "sheet S: formula without value: B3",
    )


def test_zeros_of_a_program_that_does_not_compute_are_no_values(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:  # it stores 0, and lets Excel compute
        sheet = book.add_worksheet("S")
        sheet.write_column(0, 0, ["Item", "North", "South", "Total", "Found", "None"])
        sheet.write_column(0, 1, ["Sales", 410, 530])
        sheet.write_formula("B4", "=SUM(B2:B3)")
        sheet.write_formula("B5", '=VLOOKUP("x",A1:B2,2)')
        sheet.write("B6", 0)
    output = read(buffer.getvalue(), tmp_path)
    assert "| Total | 940 |" in table(output)
    assert "[formula without value B5" in table(output)
    assert "| None | 0 |" in table(output)
    assert complete(output)


def test_comments_are_read_and_hidden_cells_are_told(tmp_path: Path) -> None:
    rows = [["Item", "Key", "Qty"], ["Rope", 99, 4], ["Secret", 98, 5]]
    data = workbook(
        {"S": rows, "Lists": [["hidden", 1]]}, comments={"A2": "At most 90 litres"}, hidden=["Lists", "3", "B"]
    )
    output = read(data, tmp_path)
    text = "\n".join(chunk.content for chunk in output.chunks)
    assert text == "S\n| Item | Qty |\n| --- | --- |\n| Rope | 4 |\nComment on A2 (Item): At most 90 litres"
    assert output.coverage is not None
    assert output.coverage.omitted == {"cells of hidden rows and columns": 5, "cells of hidden sheets": 2}
    assert len(output.uncertainties) == 2


def test_coverage_falls_when_cells_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = workbook({"S": [["Item", "Qty"], ["Rope", 4], ["Anchor", 77.5]]}, comments={"A2": "At most 90 litres"})

    def show(book: Workbook, sheet: Sheet, found: SheetTable, row: int, column: int) -> str:
        return "" if (row, column) == (3, 2) else show_cell(book, sheet, found, row, column)

    monkeypatch.setattr(sheets, "show_cell", show)
    output = read(data, tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"cells": 1}


def test_the_1904_system_is_followed(tmp_path: Path) -> None:
    rows = [["Day"], [dt.date(2026, 3, 1)]]
    output = read(workbook({"S": rows}, date1904=True, formats={"A2": "yyyy-mm-dd"}), tmp_path)
    assert "2026-03-01" in table(output)


def with_remarks(data: bytes) -> bytes:
    """The workbook with comments of the newer kind on its first sheet."""
    office = "http://schemas.microsoft.com/office"
    threads = (
        f'<ThreadedComments xmlns="{office}/spreadsheetml/2018/threadedcomments">'
        '<threadedComment ref="B2" id="a"><text>Is it net?</text></threadedComment>'
        '<threadedComment ref="B2" id="b" parentId="a"><text>Gross, 77.</text></threadedComment></ThreadedComments>'
    )
    relation = f'<Relationship Id="t9" Type="{office}/2017/10/relationships/threadedComment" Target="../threads.xml"/>'
    place = "xl/worksheets/_rels/sheet1.xml.rels"
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if name == place:
                text = text.replace(b"</Relationships>", relation.encode() + b"</Relationships>")
            target.writestr(name, text)
        target.writestr("xl/threads.xml", threads)
    return buffer.getvalue()


def test_comments_of_the_newer_kind_take_the_place_of_their_copies(tmp_path: Path) -> None:
    made = workbook({"Ledger": [["Item", "Price"], ["Bolt", 77]]}, comments={"B2": "[Threaded comment] open in Excel"})
    output = read(with_remarks(made), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == ["Comment on B2 (Bolt, Price): Is it net? / Gross, 77."]
    assert complete(output)


def test_headers_and_footers_of_pages_are_read_without_their_codes(tmp_path: Path) -> None:
    heads = '<headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"&amp;12Harbour &amp;&amp; Sons&amp;RPage &amp;P of &amp;N'
    heads += "</oddHeader>"
    heads += "<oddFooter>&amp;CExcludes VAT of 25 %</oddFooter></headerFooter>"
    made = workbook({"Ledger": [["Item", "Price"], ["Bolt", 77]]})
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = text.replace(b"</worksheet>", heads.encode() + b"</worksheet>")
            target.writestr(name, text)
    output = read(buffer.getvalue(), tmp_path)
    assert [chunk.content for chunk in output.chunks[2:]] == [
        "Page header or footer: Harbour & Sons",
        "Page header or footer: Excludes VAT of 25 %",
    ]
    assert complete(output)


def test_a_number_of_sixteen_digits_and_a_fraction_of_seconds_are_shown_whole(tmp_path: Path) -> None:
    rows = [["Card", "Sum", "Lap"], [4111111111111111, 0.1 + 0.2, 0.0012]]
    output = read(workbook({"S": rows}, formats={"C2": "mm:ss.0"}), tmp_path)
    assert table(output).splitlines()[2] == "| 4111111111111111 | 0.3 | 01:43.7 |"
    assert complete(output)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [(0, '0;-0;"none"', "none"), (1, '[=1]"Yes";[=0]"No";0', "Yes"), (45000, "mmm-yy", "Mar-23"),
     (45000, "dddd", "Wednesday"), (45000, "mmmmm", "M"), (0.01, "[mm]:ss", "14:24"), (0.001, "[ss]", "86")],
)  # fmt: skip
def test_a_number_that_a_format_shows_in_words_is_read(value: float, code: str, shown: str, tmp_path: Path) -> None:
    output = read(workbook({"S": [["Item", "Value"], ["Bolt", value]]}, formats={"B2": code}), tmp_path)
    assert table(output).splitlines()[-1] == f"| Bolt | {shown} |"
    assert complete(output)


def test_a_number_is_lost_where_its_words_are_not_in_the_document() -> None:
    data = workbook({"S": [["Item", "Value"], ["Bolt", 12]]}, formats={"B2": '0;-0;"none"'})
    for text, share in (("Item Value Bolt 12", 1.0), ("Item Value Bolt", 0.75), ("Item Value Bolt none", 1.0)):
        coverage = measure_coverage(data, "xlsx", [text])
        assert coverage is not None
        assert coverage.share == share


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ('_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)', "-"),
        ("#,##0;-#,##0;\N{EN DASH}", "\N{EN DASH}"),
        ('0\\ "€";-0\\ "€";[Red]"-"??\\ "€"', "- €"),
    ],
)
def test_a_zero_that_is_shown_as_a_sign_is_read(code: str, shown: str, tmp_path: Path) -> None:
    data = workbook({"S": [["Item", "Value"], ["Bolt", 0], ["Nut", 0]]}, formats={"B2": code, "B3": code})
    output = read(data, tmp_path)
    assert table(output).splitlines()[-1] == f"| Nut | {shown} |"
    assert complete(output)
    coverage = measure_coverage(data, "xlsx", [f"Item Value Bolt | {shown} | Nut"])
    assert coverage is not None
    assert coverage.missing == {"cells": 1}


def test_a_title_merged_from_a_hidden_column_on_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["Berths of 2026"], ["Id", "Tenant", "Rent"], [7, "Birch", 512], [8, "Oak", 480]]
    data = workbook({"S": rows}, merged=["A1:C1"], hidden=["A"])
    output = read(data, tmp_path)
    text = "\n".join(chunk.content for chunk in output.chunks)
    assert text == "S\nBerths of 2026\n| Tenant | Rent |\n| --- | --- |\n| Birch | 512 |\n| Oak | 480 |"
    assert output.uncertainties == ("sheet S: 3 cells of hidden rows and columns were left out",)
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.omitted) == (1.0, {"cells of hidden rows and columns": 3})
    monkeypatch.setattr(tables, "find_moved_cells", lambda _: {})
    assert not complete(read(data, tmp_path))
