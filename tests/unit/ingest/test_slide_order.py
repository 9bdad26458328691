"""The order in which the boxes of a slide are read: by rows, or by columns that were drawn as columns."""

import io
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
