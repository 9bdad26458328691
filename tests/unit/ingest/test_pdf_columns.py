"""Tables of a PDF that have no lines keep their rows; columns of prose stay prose."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.documents import Words, pdf
from tests.unit.ingest.test_pdf_slides_coverage import complete, lines, read

BEFORE = "The office is open to all guests of the harbour on these days of the week."
AFTER = "Please call us before you come outside of these hours."


def place(rows: Sequence[Sequence[str]], lefts: Sequence[float], step: float = 14) -> list[Words]:
    """The cells of rows from 120 points below the top of the page."""
    cells = [
        (text, left, 120 + at * step) for at, row in enumerate(rows) for text, left in zip(row, lefts, strict=True)
    ]
    return [Words(text, left, top) for text, left, top in cells if text]


@pytest.mark.parametrize(
    ("rows", "lefts"),
    [
        ([["Monday", "9:00 - 17:00"], ["Tuesday", "9:00 - 17:00"], ["Friday", "closed"]], [72, 200]),
        (
            [["Monday", "9:00 - 12:00", "13:00 - 17:00"], ["Tuesday", "9:00 - 12:00", ""], ["Friday", "closed", "-"]],
            [72, 200, 320],
        ),
        ([["Net", "4,112.40"], ["VAT 19 %", "781.36"], ["Total", "4,893.76"]], [330, 470]),
        ([["Net", "4,112.40"], ["VAT 19 %", "781.36"], ["Total", "4,893.76"]], [72, 470]),
        (
            [["Item", "Qty", "Price", "Note"], ["Bolt", "4", "1.20", "zinc"], ["Nut", "", "0.40", ""],
             ["Washer", "9", "0.05", "steel"]],
            [72, 200, 300, 400],
        ),
    ],
)  # fmt: skip
def test_rows_without_lines_are_read_as_rows(
    rows: Sequence[Sequence[str]], lefts: Sequence[float], tmp_path: Path
) -> None:
    page = [Words(BEFORE, y=95), *place(rows, lefts), Words(AFTER, y=300)]
    output = read(pdf(page), "pdf", tmp_path)
    table = [f"| {' | '.join(row)} |" for row in rows]
    table.insert(1, "|" + " --- |" * len(lefts))
    assert lines(output) == [BEFORE, "\n".join(table), AFTER]
    assert complete(output)


def test_two_columns_of_prose_stay_two_columns(tmp_path: Path) -> None:
    rows = [
        ["The harbour was built in the year", "Guests pay at the office near the"],
        ["of the great storm and has since", "gate when they arrive, or by card"],
        ["been widened twice, in 1950 and", "at the machine on the eastern"],
        ["in 1987, when the pier was added.", "pier, which is open at all times."],
    ]
    text = "\n".join(lines(read(pdf(place(rows, [72, 320])), "pdf", tmp_path)))
    assert "year of the great storm and has since been widened" in text
    assert "near the gate when they arrive" in text


def test_cells_of_several_lines_stay_whole(tmp_path: Path) -> None:
    cells = [
        ("Item", 72, 120), ("Qty", 220, 120), ("Price", 320, 120),
        ("Bolt of steel", 72, 146), ("4", 220, 146), ("1.20", 320, 146), ("with zinc", 72, 158),
        ("Nut of brass", 72, 184), ("7", 220, 184), ("0.40", 320, 184), ("in bags", 72, 196),
    ]  # fmt: skip
    before = read(pdf([Words(*cell) for cell in cells]), "pdf", tmp_path)
    assert any("Bolt of steel with zinc" in line for line in lines(before))


def test_a_page_of_many_short_texts_is_read_at_once(tmp_path: Path) -> None:
    words = [Words(f"a{at}", 20 + 24 * (at % 24), 20 + 0.5 * (at // 24), 4) for at in range(24 * 600)]
    start = time.monotonic()
    read(pdf(words), "pdf", tmp_path)
    assert time.monotonic() - start < 30
