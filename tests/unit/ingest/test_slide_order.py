"""The order in which the boxes of a slide are read: by rows, or by columns that were drawn as columns."""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pptx.util import Pt

from tests.unit.ingest.test_pdf_slides_coverage import add_box, complete, lines, presentation, read

Placed = tuple[str, int, int]

CARDS: list[Placed] = [
    ("Basic", 40, 100), ("5 EUR", 40, 140), ("No support", 40, 220),
    ("Pro", 400, 100), ("19 EUR", 400, 142), ("Phone", 400, 220),
]  # fmt: skip
GRID: list[Placed] = [
    ("Basic", 40, 100), ("5 EUR", 40, 140), ("Pro", 400, 100), ("19 EUR", 400, 140),
    ("Team", 40, 300), ("49 EUR", 40, 340), ("Firm", 400, 300), ("99 EUR", 400, 340),
]  # fmt: skip
BY_ROWS: list[Placed] = [("Name", 40, 100), ("Fee", 400, 100), ("Ann", 40, 140), ("5", 400, 140)]


@pytest.mark.parametrize("boxes", [CARDS, GRID, BY_ROWS], ids=["cards", "grid", "rows"])
def test_columns_are_read_as_they_were_drawn(boxes: Sequence[Placed], tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        for box in boxes:
            add_box(slide, *box)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == [text for text, _, _ in boxes]
    assert complete(output)


def test_columns_between_wide_boxes_are_read_one_by_one(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        for text, top in (("All prices net", 400), ("Our plans", 20)):
            add_box(slide, text, 40, top).width = Pt(600)
        for _, left, top in CARDS[::3]:  # what is drawn below the cards has no text
            add_box(slide, "", left - 10, top - 10)
        for box in CARDS:
            add_box(slide, *box)
        picture = io.BytesIO()
        Image.new("RGB", (2, 2)).save(picture, "png")
        slide.shapes.add_picture(picture, Pt(0), Pt(0), Pt(720), Pt(540))

    output = read(presentation(build), "pptx", tmp_path)
    texts = ["Our plans", *(text for text, _, _ in CARDS), "All prices net"]
    assert [line for line in lines(output) if line in texts] == texts


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (["Revenue 2024", "Costs", "Profit"], ["5 M", "3 M", "2 M"]),
        (["Customers", "Churn", "Price"], ["1,200", "-4 %", "EUR 19.50"]),
        (["Rent", "Fee", "Cap"], ["1.2 Mio. EUR", "$ 40", "3 million"]),
        (["2022", "2023"], ["Founded in Malm\u00f6", "First ferry"]),
    ],
)
def test_labels_are_read_with_their_values(labels: list[str], values: list[str], tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        for left, column in ((40, labels), (400, values)):
            for at, text in enumerate(column):
                add_box(slide, text, left, 100 + 40 * at + left // 100)

    rows = [text for row in zip(labels, values, strict=True) for text in row]
    assert lines(read(presentation(build), "pptx", tmp_path)) == rows


def test_a_drawing_of_hundreds_of_boxes_is_read_in_time(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        for at in range(400):
            add_box(slide, f"t{at}", 40 + 300 * (at % 2), 15 * (at // 2))

    data = presentation(build)
    start = time.process_time()
    assert lines(read(data, "pptx", tmp_path)) == [f"t{at}" for at in range(400)]
    assert time.process_time() - start < 4
