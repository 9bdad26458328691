"""What a sheet shows without a word: a sign by its colour, and what is struck out."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter  # type: ignore[import-untyped]

from agent.workbooks import number_formats
from agent.workbooks.number_formats import format_number
from tests.unit.ingest.test_sheet_coverage import complete, read, table


def write_book(build: Callable[[Any, Any], None]) -> bytes:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    build(book, book.add_worksheet("S"))
    book.close()
    return buffer.getvalue()


def write_amount(code: str, value: float) -> bytes:
    def build(book: Any, sheet: Any) -> None:
        sheet.write_row(0, 0, ["Quarter", "Profit"])
        sheet.write(1, 0, "Spring")
        sheet.write(1, 1, value, book.add_format({"num_format": code}))

    return write_book(build)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("#,##0.00;[Red]#,##0.00", "-800.00"),
        ("0;[Red]0", "-800"),
        ("[Blue]0;[Color 3]0", "-800"),
        ('#,##0 "EUR"_);[Red]#,##0 "EUR"_)', "-800 EUR"),
        ("+0;[Red]0", "-800"),
        ("0;[Red](0)", "(800)"),
        ("0;[Red]-0", "-800"),
        ('"up "0;[Red]"down "0', "down 800"),
        ("[Red]0;[Red]0", "800"),
        ("0;0", "800"),
        ("[Green][>0]+0;[Red][<0]-0;0", "-800"),
        ("[<0](0);0", "(800)"),
        ('[<-500]0.0,"k";0', "-0.8k"),
        ('[<0]0" (est.)";0', "-800 (est.)"),
        ('[<0]-"kr "0;0', "-kr 800"),
        ('[<100]"Pre-tax "0;0', "-Pre-tax 800"),
        ('[<100]"(net) "0;0', "-(net) 800"),
    ],
)
def test_a_number_whose_colour_shows_its_sign_has_it(code: str, shown: str, tmp_path: Path) -> None:
    output = read(write_amount(code, -800), tmp_path)
    assert table(output).splitlines()[2] == f"| Spring | {shown} |"
    assert complete(output)


def test_a_span_of_time_has_one_sign() -> None:
    assert format_number(-0.5, "[h]:mm;-[h]:mm") == "-12:00"
    assert format_number(-0.5, "[h]:mm;[Red][h]:mm") == "-12:00"


@pytest.mark.parametrize("code", ["0;[Red]0", "0;-0", "0"])
def test_coverage_falls_when_a_number_loses_its_sign(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = number_formats._choose_section
    monkeypatch.setattr(number_formats, "_choose_section", lambda sections, value: (choose(sections, -value)[0], False))
    output = read(write_amount(code, -800), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"cells": 1}


def test_struck_cells_and_runs_are_marked(tmp_path: Path) -> None:
    def build(book: Any, sheet: Any) -> None:
        struck, bold = book.add_format({"font_strikeout": True}), book.add_format({"bold": True})
        sheet.write_row(0, 0, ["Plan", "Price"])
        sheet.write(1, 0, "Basic")
        sheet.write(1, 1, 100, struck)
        sheet.write(2, 0, "Old plan", struck)
        sheet.write(2, 1, 50)
        sheet.write(3, 0, "Pro")
        sheet.write_rich_string(3, 1, struck, "100", " 80")
        sheet.write(4, 0, "Team")
        sheet.write_rich_string(4, 1, "100", bold, " 80", struck)
        sheet.write(5, 0, "Flag")
        sheet.write_boolean(5, 1, True, struck)
        sheet.write(6, 0, "Sum")
        sheet.write_formula(6, 1, '="a"&"b"', struck, "ab")

    output = read(write_book(build), tmp_path)
    assert table(output).splitlines()[2:] == [
        "| Basic | ~~100~~ |", "| ~~Old plan~~ | 50 |", "| Pro | ~~100~~ 80 |", "| Team | ~~100~~ 80 |",
        "| Flag | ~~TRUE~~ |", "| Sum | ~~ab~~ |",
    ]  # fmt: skip
    assert complete(output)
