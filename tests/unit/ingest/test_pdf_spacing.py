"""Letter-spaced words of a PDF are read as words, and columns of letters stay apart."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.documents import drawn_pdf
from tests.unit.ingest.test_pdf_parts import complete, lines, read

SENTENCE = "The sum of 1250 EUR is due within thirty days."
WORDS = "The sum of it is due within thirty days."
PARTED = "page 1 was read with words that are parted into letters; a search may not find them"


def show(text: str, x: float = 72, y: float = 700, spacing: float = 0) -> str:
    return f"BT {spacing} Tc /F1 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"


@pytest.mark.parametrize("spacing", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("text", [SENTENCE, "INVOICE TOTAL"])
def test_letter_spaced_words_are_words(text: str, spacing: float, tmp_path: Path) -> None:
    output = read(drawn_pdf(show(text, spacing=spacing).encode()), tmp_path)
    assert " ".join(lines(output)) == text
    assert complete(output)
    assert output.uncertainties == ()


def place(text: str, gap: int, y: float = 700, *, space: str = "( ) -{gap} ") -> str:
    """A line in which the file moves each letter, and its spaces, by a gap in thousandths of the letters' size."""
    pieces = "".join(space.format(gap=gap) if sign == " " else f"({sign}) -{gap} " for sign in text)
    return f"BT /F1 10 Tf 1 0 0 1 72 {y} Tm [{pieces}] TJ ET\n"


@pytest.mark.parametrize(
    ("gap", "texts"),
    [
        *((gap, (SENTENCE, "INVOICE TOTAL", "INVOICE", "DUE 1250 EUR")) for gap in (60, 120, 150)),
        *((gap, (WORDS, "INVOICE TOTAL")) for gap in (400, 700)),
    ],
)
def test_letters_that_the_file_moves_are_words(gap: int, texts: Sequence[str], tmp_path: Path) -> None:
    for text in texts:
        twice = place(text, gap) + place(text, gap, 500)
        output = read(drawn_pdf((twice + show("Pay it soon.", y=600)).encode()), tmp_path)
        assert lines(output) == [text, "Pay it soon.", text]
        assert output.uncertainties == ()


@pytest.mark.parametrize("gap", [250, 500, 900])
@pytest.mark.parametrize("row", ["A 1 2 3 4", "x 1 2 5 0", "M T W T F S S", "1 2 3 4 kg"])
def test_columns_of_one_text_stay_apart(row: str, gap: int, tmp_path: Path) -> None:
    cells = place(row.replace(" ", ""), gap) + place("".join(row.split()[:2]), gap, 500)
    output = read(drawn_pdf((cells + show("Pay it soon.", y=600)).encode()), tmp_path)
    assert lines(output)[0].replace("k g", "kg") == row
    assert (PARTED in output.uncertainties) == row.startswith("M")


def test_groups_of_columns_are_no_words(tmp_path: Path) -> None:
    days = place("MTWTF SS", 500, space="-400 ") + show("Pay it soon.", y=600)
    assert lines(read(drawn_pdf(days.encode()), tmp_path))[0] == "M T W T F S S"


@pytest.mark.parametrize("text", ["A12 34", "DUE 1250 EUR"])
def test_figures_of_widely_spaced_lines_make_no_number(text: str, tmp_path: Path) -> None:
    output = read(drawn_pdf((place(text, 500) + show("Pay it soon.", y=600)).encode()), tmp_path)
    assert lines(output)[0] == " ".join(text.replace(" ", ""))


@pytest.mark.parametrize("gap", [250, 400])
def test_wide_gaps_are_spaces_of_a_file_without_any(gap: int, tmp_path: Path) -> None:
    output = read(drawn_pdf(place(WORDS, gap, space=f"-{gap + 200} ").encode()), tmp_path)
    assert lines(output) == [WORDS]


@pytest.mark.parametrize("text", ["abcd", "1250", "xyzw"])
def test_even_gaps_of_a_file_without_spaces_stay(text: str, tmp_path: Path) -> None:
    output = read(drawn_pdf(place(text, 333).encode()), tmp_path)
    assert lines(output) == [" ".join(text)]


def test_figures_of_cells_make_no_number_that_is_elsewhere(tmp_path: Path) -> None:
    cells = "".join(show(figure, 72 + 9 * at, 600) for at, figure in enumerate("1250"))
    output = read(drawn_pdf((show(SENTENCE) + cells).encode()), tmp_path)
    assert "1 2 5 0" in " ".join(lines(output))


def test_words_that_the_file_parts_are_reported(tmp_path: Path) -> None:
    output = read(drawn_pdf(show("T O T A L").encode()), tmp_path)
    assert lines(output) == ["T O T A L"]
    assert output.uncertainties == (PARTED,)


def test_a_page_of_thousands_of_texts_is_read_in_time(tmp_path: Path) -> None:
    cells = "".join(
        f"BT /F1 2 Tf 1 0 0 1 {30 + at % 24 * 23} {780 - at // 24 * 3.8:.1f} Tm ({at % 9} {at % 7} {at % 5}) Tj ET\n"
        for at in range(4800)
    )
    data = drawn_pdf(cells.encode())
    start = time.process_time()
    assert "8 6 4" in " ".join(lines(read(data, tmp_path)))
    assert time.process_time() - start < 6


WIDTHS = {**dict.fromkeys("aeopcunb0123456789", 556), **dict.fromkeys("HNRU", 722), **dict.fromkeys("ESA", 667)}
OTHERS = {"k": 500, "v": 500, "O": 778, "T": 611, "B": 667, "r": 333, ".": 278, " ": 278, "t": 278}
"""Of Helvetica, in thousandths of its size."""


def draw(text: str, x: float = 40, y: float = 700, size: float = 16, spacing: float = 0) -> str:
    """A line in which each letter is a text of its own, as browsers print pages."""
    steps = [(WIDTHS | OTHERS)[letter] * size / 1000 + spacing for letter in text]
    shown = f"({text[0]}) Tj " + "".join(
        f"{step:.4f} 0 Td ({one}) Tj " for step, one in zip(steps, text[1:], strict=False)
    )
    return f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm {shown}ET\n"


def test_a_short_page_of_a_browser_is_read_in_words(tmp_path: Path) -> None:
    cards = draw("Rope") + draw("40.00", y=680) + draw("Hook", x=240) + draw("12.25", x=240, y=680)
    output = read(drawn_pdf((cards + draw("Save 5 EUR", x=240, y=660)).encode()), tmp_path)
    text = " ".join(lines(output))
    assert [word for word in ("Rope", "40.00", "Hook", "12.25", "Save 5 EUR") if word not in text] == []
    assert output.uncertainties == ()


@pytest.mark.parametrize("spacing", [3, 6, 9])
def test_a_letter_spaced_line_of_a_browser_is_read_in_words(spacing: float, tmp_path: Path) -> None:
    shown = draw("HARBOUR NOTES", spacing=spacing) + "".join(
        draw("Rope can be cut at 40 EUR", y=600 - 20 * row) for row in range(12)
    )
    output = read(drawn_pdf(shown.encode()), tmp_path)
    assert lines(output)[0] == "HARBOUR NOTES"
    assert output.uncertainties == ()
