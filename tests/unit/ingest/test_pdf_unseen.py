"""Text of a PDF that nobody sees is left out and counted; what people see, and the text that an OCR put behind a scan,
is read."""

import re
import time
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.coverage.measure import measure_coverage
from gateway.features.documents.engine.ingest.parsers.pdfium import open_pdfium
from tests.support.documents import drawn_pdf, pdf_stream
from tests.unit.ingest.test_pdf_parts import complete, lines, read

RENT = "The rent is 1250 EUR."
SECRET = "Tell nobody of the key 4711."
DUE = "It is due on 3 May."
UNSEEN = "page 1 was read without words that nobody sees there: "
BARS = bytes(0 if column % 2 else 255 for _ in range(200) for column in range(200))
PICTURE = "/Type/XObject/Subtype/Image/Width 200/Height 200/BitsPerComponent 8/ColorSpace/DeviceGray"
FORM = "/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"


def show(text: str, y: float = 650, before: str = "", size: float = 11) -> str:
    return f"q {before} BT /F1 {size} Tf 1 0 0 1 72 {y} Tm ({text}) Tj ET Q\n"


def page(*content: str, picture: bytes = BARS, entries: str = "", form: str = "") -> bytes:
    """A page of this content, with the picture `/Im`, the state `/Clear`, the gradient `/Dark` and the drawing `/X`."""
    gradient = (
        "<</Type/Shading/ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 612 0]/Function 6 0 R/Extend[true true]>>"
    )
    return drawn_pdf(
        "".join(content).encode(),
        resources="/XObject<</Im 4 0 R/X 7 0 R>>/ExtGState<</Clear<</ca 0>>/Half<</ca 0.5>>>>/Shading<</Dark 5 0 R>>",
        objects=[
            pdf_stream(PICTURE, picture),
            gradient,
            "<</FunctionType 2/N 1/Domain[0 1]/C0[0]/C1[0.2]>>",
            pdf_stream(FORM, form.encode()),
        ],
        page_entries=entries,
    )


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ((show(SECRET, before="1 g"),), "6 invisible"),
        ((show(SECRET, before="0.98 g"),), "6 invisible"),
        ((show(SECRET, before="3 Tr"),), "6 invisible"),
        ((show(SECRET, before="/Clear gs"),), "6 invisible"),
        (("0 0 0.5 rg 60 630 300 40 re f ", show(SECRET, before="0 0 0.5 rg")), "6 invisible"),
        ((show(SECRET), "0 g 60 640 300 30 re f "), "6 covered"),
        ((show(SECRET, before="0 0 1 rg"), "q 300 0 0 60 60 630 cm /Im Do Q "), "6 covered"),
        ((show(SECRET, size=0.8),), "6 too small"),
        (("/X Do ",), "6 invisible"),
        (("0 0 1 rg 300 700 9 9 re f ", show(SECRET, before="3 Tr")), "6 invisible"),
    ],
)
def test_text_that_nobody_sees_is_left_out(content: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    data = page(
        show(RENT, y=700),
        *content,
        show("It is due on 3 May.", y=600),
        form=show(SECRET, before="1 g"),
    )
    output = read(data, tmp_path)
    assert [line for line in lines(output) if line != "[image]"] == [RENT, "It is due on 3 May."]
    assert [note for note in output.uncertainties if note.startswith(UNSEEN + kind)] == list(output.uncertainties)
    assert complete(output)
    assert output.coverage is not None
    assert output.coverage.omitted["characters that nobody sees"] >= 18


def test_a_line_through_unseen_text_shows_none_of_it(tmp_path: Path) -> None:
    data = page(show(RENT, y=700), show(SECRET, before="1 g"), "0 g 60 653 300 0.7 re f ", show(DUE, y=600))
    assert lines(read(data, tmp_path)) == [RENT, DUE]


@pytest.mark.parametrize("entries", ["/Rotate 90", "/Rotate 180", "/Rotate 270", "/CropBox[30 40 600 780]"])
def test_unseen_text_of_turned_and_cut_pages_is_left_out(entries: str, tmp_path: Path) -> None:
    data = page(show(RENT, y=700), show(SECRET, before="1 g"), show("It is due on 3 May.", y=600), entries=entries)
    output = read(data, tmp_path)
    assert sorted(" ".join(lines(output)).split()) == sorted(f"{RENT} It is due on 3 May.".split())
    assert complete(output)


@pytest.mark.parametrize(
    "content",
    [
        ("0 0 0.5 rg 60 630 300 40 re f ", show(SECRET, before="1 g")),
        ("q 300 0 0 60 60 630 cm 0 g /Im Do Q ", "0.2 g 60 640 200 30 re f ", show(SECRET, before="1 g")),
        ("q 60 640 300 30 re W n /Dark sh Q ", show(SECRET, before="1 g")),
        (show(SECRET, before="0.85 g"),),
        (show(SECRET, before="0.95 g"),),
        ("0.94 g 60 630 300 40 re f ", show(SECRET, before="1 g")),
        (show(SECRET, before="/Half gs"),),
        (show(SECRET), "60 647 300 1 re f "),
        ("0.9 g 60 640 300 30 re f ", show(SECRET, before="0.5 g")),
        ("1 g 60 640 300 30 re f 0 g ", show(SECRET), "1 g 60 600 300 45 re f "),
        (show(SECRET, size=3),),
    ],
)
def test_text_that_people_see_is_read(content: tuple[str, ...], tmp_path: Path) -> None:
    output = read(page(show(RENT, y=700), *content), tmp_path)
    assert SECRET in "".join(lines(output))
    assert complete(output)
    assert output.uncertainties == ()


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (("q 612 0 0 792 0 0 cm /Im Do Q ", show(SECRET, before="3 Tr")), "the text of scanned pages 1 comes from"),
        ((show(SECRET), "q 612 0 0 792 0 0 cm /Im Do Q "), ""),
        (
            (show(RENT, y=700), "q 300 0 0 60 60 630 cm /Im Do Q ", show(SECRET, before="3 Tr")),
            "page 1 was read with invisible text on pictures",
        ),
    ],
)
def test_text_that_an_ocr_put_behind_a_picture_is_read(content: tuple[str, ...], note: str, tmp_path: Path) -> None:
    output = read(page(*content), tmp_path)
    assert SECRET in lines(output)
    assert complete(output)
    assert any(one.startswith(note) for one in output.uncertainties)


@pytest.mark.parametrize("size", [4, 5, 6])
def test_pale_letters_that_are_drawn_one_by_one_are_read(size: float, tmp_path: Path) -> None:
    words = "Within 171 days of 11 July 2017"
    letters = "".join(
        f"0.95 g BT /F1 {size} Tf 1 0 0 1 {72 + 0.556 * size * at} 650 Tm ({letter}) Tj ET "
        for at, letter in enumerate(words)
    )
    output = read(page(show(RENT, y=700), letters, show(DUE, y=600, before="0 g")), tmp_path)
    assert "".join(words.split()) in "".join("".join(lines(output)).split())
    assert output.uncertainties == ()


@pytest.mark.parametrize(("color", "count"), [("0.88 g", 40), ("1 g", 20)])
def test_pale_text_of_a_long_page_is_read(color: str, count: int, tmp_path: Path) -> None:
    pale = "".join(show(SECRET, y=14300 - 100 * at, before=color, size=7) for at in range(20))
    dark = "".join(show(RENT, y=14350 - 100 * at) for at in range(20))
    data = page(pale, dark).replace(b"[0 0 612 792]", b"[0 0 800 14400]")
    assert len(lines(read(data, tmp_path))) == count


def test_a_scan_is_not_drawn_for_its_invisible_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gateway.features.documents.engine.ingest.parsers.pdfium_unseen.Picture")
    with open_pdfium(page("q 612 0 0 792 0 0 cm /Im Do Q ", show(SECRET, before="3 Tr")), None) as pdfium:
        assert pdfium is not None
        unseen = pdfium.read_text_facts(1)[1]
    assert unseen.has_ocr_layer
    assert not unseen.letters


def test_text_that_cuts_letters_out_of_a_gradient_is_read(tmp_path: Path) -> None:
    cut = f"q BT 7 Tr /F1 40 Tf 1 0 0 1 72 640 Tm ({RENT}) Tj ET /Dark sh Q "
    assert RENT in lines(read(page(show("It is due.", y=720), cut), tmp_path))


def test_invisible_text_on_an_empty_picture_is_no_ocr(tmp_path: Path) -> None:
    content = (show(RENT, y=700), "q 300 0 0 60 60 630 cm /Im Do Q ", show(SECRET, before="3 Tr"))
    assert SECRET not in "".join(lines(read(page(*content, picture=b"\xff" * len(BARS)), tmp_path)))


def test_covered_words_of_a_line_are_marked(tmp_path: Path) -> None:
    data = page(show("The notice period is 30 days for tenant Birch."), "0 g 168 640 16 30 re f ")
    assert lines(read(data, tmp_path)) == ["The notice period is [covered] days for tenant Birch."]


def test_text_below_an_opaque_annotation_is_left_out(tmp_path: Path) -> None:
    note = "<</Type/Annot/Subtype/Square/Rect[60 640 360 670]/AP<</N 7 0 R>>>>"
    data = page(show(RENT, y=700), show(SECRET), entries=f"/Annots[{note}]", form="0 g 0 0 612 792 re f")
    output = read(data, tmp_path)
    assert RENT in lines(output)
    assert SECRET not in "".join(lines(output))


def test_a_page_is_read_if_nearly_all_of_it_would_be_left_out(tmp_path: Path) -> None:
    output = read(
        page(show("7", y=30), *(show(SECRET, y=700 - 20 * line, before="1 g") for line in range(9))), tmp_path
    )
    assert "".join(lines(output)).count(SECRET) == 9
    assert "page 1 was read as written; some words may be seen by nobody" in output.uncertainties


def test_small_letters_of_a_long_page_are_read(tmp_path: Path) -> None:
    data = page(*(show(f"Item {line}", y=2900 - 20 * line, size=5) for line in range(99)))
    output = read(data.replace(b"[0 0 612 792]", b"[0 0 99 9000]"), tmp_path)
    assert {f"Item {line}" for line in (0, 98)} <= set(re.findall(r"Item \d+", " ".join(lines(output))))
    assert output.uncertainties == ()


@pytest.mark.parametrize("before", ["1 g 70 646 250 14 re f ", ""])
@pytest.mark.parametrize("written", ["The rent is 1250 EUR.", "The rent is 1450 EUR."])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (0.5, 0.5), (2, 0), (10, 0)])
def test_visible_letters_in_the_place_of_unseen_ones_are_read(
    before: str, written: str, x: float, y: float, tmp_path: Path
) -> None:
    old = show(written, before="" if before else "1 g")
    new = f"q 1 0 0 1 {x} {y} cm {show('The rent is 1450 EUR.')} Q "
    read_lines = " ".join(lines(read(page(show(DUE, y=600), old, before, "0 g ", new), tmp_path)))
    assert "1450 EUR." in read_lines
    assert "[covered]" not in read_lines


@pytest.mark.parametrize("move", [0, 0.5, 8])
def test_a_page_that_is_drawn_again_on_white_is_read(move: float, tmp_path: Path) -> None:
    text = "".join(show(f"Line {line} is due on {line} May.", y=700 - 16 * line) for line in range(9))
    again = f"1 g 0 0 612 792 re f 0 g q 1 0 0 1 0 {move} cm {text} Q "
    written = " ".join(lines(read(page(text, again), tmp_path)))
    assert "Line 8 is due on 8 May." in written
    assert "[covered]" not in written


@pytest.mark.parametrize("move", [0, 10])
def test_invisible_text_that_repeats_outlines_is_read(move: int, tmp_path: Path) -> None:
    outlines = "".join(f"{72 + 5 * at} {650 + move} 3 8 re f " for at in range(28))
    output = read(page(show(RENT, y=700), outlines, show(SECRET, before="3 Tr")), tmp_path)
    assert SECRET in lines(output)


def test_a_page_of_many_areas_is_read_as_it_is(tmp_path: Path) -> None:
    shapes = "".join(f"0.{at % 9 + 1} g 0 0 m 600 {at % 700} l {at % 600} 780 l f " for at in range(3000))
    labels = "".join(show(f"Town {at}", y=20 + at, size=5) for at in range(700))
    data = page(shapes, labels)
    started = time.process_time()
    with open_pdfium(data, None) as pdfium:
        assert pdfium is not None
        unseen = pdfium.read_text_facts(1)[1]
    assert time.process_time() - started < 5
    assert not unseen.letters
    assert not unseen.is_complete


@pytest.mark.parametrize(("color", "lost"), [("1 g", 22), ("0.1 g", 0)])
def test_visible_text_on_a_picture_counts(color: str, lost: int, tmp_path: Path) -> None:
    slide = page("q 612 0 0 792 0 0 cm /Im Do Q ", show(SECRET, before=color, size=20), picture=b"\x1a" * len(BARS))
    coverage = measure_coverage(slide, "pdf", [])
    assert sum(coverage.missing.values() if coverage is not None else ()) == lost
