"""Text that a PDF shows struck out is marked, whatever part of a line or a cell it is and whatever strikes it."""

from pathlib import Path

import pytest

from tests.support.documents import drawn_pdf
from tests.unit.ingest.test_pdf_parts import complete, lines, read

UNMARKED = "page 1 was read without some marks: text that is struck out there may read as valid"


def show(text: str, x: float = 72, y: float = 700) -> str:
    return f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"


def strike(left: float, right: float, y: float = 703) -> str:
    return f"0.6 w {left} {y} m {right} {y} l S\n"


def quads(*boxes: tuple[float, float, float, float], kind: str = "StrikeOut") -> str:
    points = " ".join(f"{x} {top} {right} {top} {x} {y} {right} {y}" for x, y, right, top in boxes)
    return f"/Annots[<</Type/Annot/Subtype/{kind}/Rect[72 600 200 712]/QuadPoints[{points}]>>]"


FEE = show("The fee is 100 EUR 80 EUR")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (FEE + strike(118.7, 159.3), "The fee is ~~100 EUR~~ 80 EUR"),
        (FEE + strike(118, 157), "The fee is ~~100 EUR~~ 80 EUR"),
        (FEE + "118.7 702.7 40.6 0.6 re f\n", "The fee is ~~100 EUR~~ 80 EUR"),
        (FEE + strike(72, 197), "~~The fee is 100 EUR 80 EUR~~"),
        (FEE + strike(118.7, 159.3, 698.5), "The fee is 100 EUR 80 EUR"),
        (FEE + strike(40, 500), "The fee is 100 EUR 80 EUR"),
        (FEE + "1 1 1 RG " + strike(118.7, 159.3), "The fee is 100 EUR 80 EUR"),
        (FEE + strike(118.7, 135.4) + strike(162, 173.2), "The fee is ~~100~~ EUR ~~80~~ EUR"),
        (show("Price 10080 EUR") + strike(98.9, 115.6), "Price ~~100~~80 EUR"),
        (show("Due -5 \\(gone\\), now") + strike(92.5, 134), "Due ~~-5 (gone),~~ now"),
    ],
    ids=["stroke", "short", "box", "line", "underline", "rule", "white", "two", "part of a word", "signs"],
)
def test_a_line_through_words_marks_them(content: str, expected: str, tmp_path: Path) -> None:
    output = read(drawn_pdf(content.encode()), tmp_path)
    assert lines(output) == [expected]
    assert complete(output)
    assert output.uncertainties == ()


def test_the_struck_cell_of_a_table_is_marked(tmp_path: Path) -> None:
    rows = [("Item", "2023", "2024"), ("Rent", "500", "450"), ("Power", "500", "300"), ("Water", "45", "500")]
    table = "".join(
        show(cell, x, 700 - 14 * at) for at, row in enumerate(rows) for x, cell in zip((72, 180, 250), row, strict=True)
    )
    output = read(drawn_pdf((table + strike(180, 196.7, 675)).encode()), tmp_path)
    assert lines(output) == [
        "| Item | 2023 | 2024 |\n| --- | --- | --- |\n| Rent | 500 | 450 |\n| Power | ~~500~~ | 300 |\n"
        "| Water | 45 | 500 |"
    ]


def test_an_annotation_marks_the_words_below_it(tmp_path: Path) -> None:
    content = FEE + show("from 1 May on", y=688)
    notes = quads((162, 698, 198, 710), (72, 686, 93, 698))
    output = read(drawn_pdf(content.encode(), page_entries=notes), tmp_path)
    assert lines(output) == ["The fee is 100 EUR ~~80 EUR from~~ 1 May on"]
    assert output.uncertainties == ()


@pytest.mark.parametrize(
    ("rect", "expected", "notes"),
    [
        ("118 698 160 710", "The fee is ~~100 EUR~~ 80 EUR from 1 May on", ()),
        ("118 680 160 710", "The fee is 100 EUR 80 EUR from 1 May on", (UNMARKED,)),
        ("300 300 400 320", "The fee is 100 EUR 80 EUR from 1 May on", (UNMARKED,)),
    ],
    ids=["a line", "two lines", "no words"],
)
def test_an_annotation_that_gives_no_lines_marks_one_or_is_reported(
    rect: str, expected: str, notes: tuple[str, ...], tmp_path: Path
) -> None:
    content = FEE + show("from 1 May on and until 31 May", y=688)
    annotation = f"/Annots[<</Type/Annot/Subtype/Redact/Rect[{rect}]>>]"
    output = read(drawn_pdf(content.encode(), page_entries=annotation), tmp_path)
    assert lines(output) == [f"{expected} and until 31 May"]
    assert output.uncertainties == notes
