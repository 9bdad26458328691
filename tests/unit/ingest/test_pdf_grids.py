"""Tables of PDF files with lines around their cells, of which some are merged."""

import time
from pathlib import Path
from typing import get_args

import pytest

from tests.support.documents import drawn_pdf
from tests.support.ruled_pdf import Cell, Pen, plain_cells, ruled_pdf
from tests.unit.ingest.test_pdf_slides_coverage import read

HEAD = [
    Cell("Region", 0, 0, rows=2),
    Cell("2023", 0, 1, columns=2),
    Cell("2024", 0, 3, columns=2),
    *(Cell(text, 1, column) for column, text in enumerate(("Sales", "Cost", "Sales", "Cost"), 1)),
]
NORTH = ("North", "120", "80", "140", "90")
SOUTH = ("South", "60", "44", "70", "51")


def read_texts(data: bytes, tmp_path: Path) -> list[str]:
    """The texts of a file that was read in whole."""
    output = read(data, "pdf", tmp_path)
    assert output.coverage is not None
    assert output.coverage.share == 1
    return [chunk.content for chunk in output.chunks]


@pytest.mark.parametrize("pen", get_args(Pen))
def test_a_head_over_several_columns_names_each(pen: Pen, tmp_path: Path) -> None:
    texts = read_texts(ruled_pdf([*HEAD, *plain_cells([NORTH, SOUTH], first=2)], pen=pen), tmp_path)

    assert texts == [
        "| Region | 2023 Sales | 2023 Cost | 2024 Sales | 2024 Cost |\n| --- | --- | --- | --- | --- |\n"
        "| North | 120 | 80 | 140 | 90 |\n| South | 60 | 44 | 70 | 51 |"
    ]


@pytest.mark.parametrize("pen", get_args(Pen))
def test_a_cell_over_several_rows_is_in_each(pen: Pen, tmp_path: Path) -> None:
    days = [("Mon", "9-12"), ("Tue", "10-14"), ("Wed", "8-10"), ("Thu", "13-17"), ("Sat", "10-12")]
    cells = [*plain_cells([("Room", "Day", "Hours")]), Cell("Hall A", 1, 0, rows=2), Cell("Hall B", 3, 0, rows=3)]
    for row, texts_of_row in enumerate(days, 1):
        cells += [Cell(text, row, column) for column, text in enumerate(texts_of_row, 1)]

    texts = read_texts(ruled_pdf(cells, pen=pen), tmp_path)

    assert texts == [
        "| Room | Day | Hours |\n| --- | --- | --- |\n| Hall A | Mon | 9-12 |\n| Hall A | Tue | 10-14 |\n"
        "| Hall B | Wed | 8-10 |\n| Hall B | Thu | 13-17 |\n| Hall B | Sat | 10-12 |"
    ]


def test_a_title_between_the_lines_stands_above_its_table(tmp_path: Path) -> None:
    title = Cell("Price list for all our shops in 2026", 0, 0, columns=3)
    rows = [("Item", "Unit", "Price"), ("Bolt", "box", "4.20")]

    texts = read_texts(ruled_pdf([title, *plain_cells(rows, first=1)]), tmp_path)

    assert texts == [title.text, "| Item | Unit | Price |\n| --- | --- | --- |\n| Bolt | box | 4.20 |"]


def test_a_figure_over_several_columns_counts_once(tmp_path: Path) -> None:
    rows = [("Item", "Unit", "Price"), ("Bolt", "box", "4.20"), ("Nut", "bag", "1.10")]

    texts = read_texts(ruled_pdf([*plain_cells(rows), Cell("Sum: 5.30", 3, 0, columns=3)]), tmp_path)

    assert texts == [
        "| Item | Unit | Price |\n| --- | --- | --- |\n| Bolt | box | 4.20 |\n| Nut | bag | 1.10 |\n| Sum: 5.30 |  |  |"
    ]


def test_names_in_the_first_row_of_lines_name_the_columns(tmp_path: Path) -> None:
    rows = [
        ("Time", "Mon", "Tue", "Wed"),
        ("08:00", "Maths", "English", "Art"),
        ("09:00", "History", "", "Art"),
        ("10:00", "Lunch", "", ""),
    ]

    texts = read_texts(ruled_pdf(plain_cells(rows), height=30), tmp_path)

    assert texts == [
        "| Time | Mon | Tue | Wed |\n| --- | --- | --- | --- |\n| 08:00 | Maths | English | Art |\n"
        "| 09:00 | History |  | Art |\n| 10:00 | Lunch |  |  |"
    ]


def test_labels_with_their_values_name_no_columns(tmp_path: Path) -> None:
    cells = [Cell("Surname: Lee", 0, 0, columns=2), Cell("First name: Ann", 0, 2)]

    (text,) = read_texts(
        ruled_pdf([*cells, *plain_cells([("Born: 1990", "From: Leeds", "Tax: 12")], first=1)]), tmp_path
    )

    assert text.endswith("| Born: 1990 | From: Leeds | Tax: 12 |")


def test_a_line_through_a_word_in_a_merged_cell_strikes_it_out(tmp_path: Path) -> None:
    cells = [*plain_cells([("Room", "Day")]), Cell("Hall", 1, 0, rows=2), Cell("Mon", 1, 1), Cell("Tue", 2, 1)]
    line = b"66 652.5 m 83 652.5 l S"

    texts = read_texts(ruled_pdf(cells, other=[line]), tmp_path)

    assert texts == ["| Room | Day |\n| --- | --- |\n| ~~Hall~~ | Mon |\n| ~~Hall~~ | Tue |"]


def test_a_page_of_many_lines_is_read_at_once(tmp_path: Path) -> None:
    """A dense drawing around a table takes no longer than its lines are many."""
    cells = [*HEAD, *plain_cells([NORTH, SOUTH], first=2)]
    lines = "\n".join(f"{60 + n % 450} {700 - n % 80} m {60 + n % 450} {690 - n % 80} l S" for n in range(20_000))
    plain, dense = ruled_pdf(cells), ruled_pdf(cells, other=[lines.encode()])
    began = time.process_time()

    read_texts(plain, tmp_path)
    read_texts(dense, tmp_path)

    assert time.process_time() - began < 8


def test_frames_that_are_no_table_stay_as_they_are(tmp_path: Path) -> None:
    page = (
        b"60 400 300 200 re S 70 500 100 50 re S BT /F1 9 Tf 75 520 Td (Note) Tj ET BT /F1 9 Tf 200 450 Td (Rest) Tj ET"
    )

    texts = read_texts(drawn_pdf(page), tmp_path)

    assert sorted(" ".join(texts).split()) == ["Note", "Rest"]


def test_cells_whose_lines_are_not_drawn_stay_apart(tmp_path: Path) -> None:
    cells = plain_cells([("No", "Item", "Qty"), ("36", "Bolt", "108")])
    bare = b"60 632 270 20 re S BT /F1 9 Tf 66 639 Td (37) Tj 90 0 Td (Nut) Tj 90 0 Td (111) Tj ET"

    texts = read_texts(ruled_pdf(cells, other=[bare]), tmp_path)

    assert "37 Nut 111" not in " ".join(texts)
