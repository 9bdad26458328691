"""A PDF that does not say which letters it shows is reported: what is read of it is a guess."""

from pathlib import Path

import pytest

from tests.support.documents import Words, drawn_pdf, form_pdf, pdf, pdf_stream
from tests.support.odd_pdf import coded_pdf
from tests.unit.ingest.test_pdf_parts import complete, lines, read

GUESSED = (
    "page 1 was partly read by guess: fonts do not say which letters 60 characters are; words may be wrong or missing"
)


@pytest.mark.parametrize("first_letter", ["", "\ue000"], ids=["no map", "private letters"])
def test_letters_that_no_font_names_are_reported(first_letter: str, tmp_path: Path) -> None:
    output = read(coded_pdf(60, first_letter=first_letter), tmp_path)
    assert "Rent is due." in lines(output)
    assert output.uncertainties == (GUESSED,)


@pytest.mark.parametrize("first_letter", ["\u05d0", "\u0621"], ids=["Hebrew", "Arabic"])
def test_text_from_right_to_left_is_reported(first_letter: str, tmp_path: Path) -> None:
    output = read(coded_pdf(20, first_letter=first_letter), tmp_path)
    assert output.uncertainties[:1] == (
        "page 1 was read with text from right to left, in which letters, words and brackets may be in the wrong order",
    )


def test_a_file_that_is_pinned_to_a_page_is_named(tmp_path: Path) -> None:
    file: list[str | bytes] = [
        pdf_stream("/Type/EmbeddedFile", b"Rent is 512."),
        "<</Type/Filespec/F(lease.txt)/UF(lease.txt)/EF<</F 4 0 R>>>>",
    ]
    pin = "/Annots[<</Type/Annot/Subtype/FileAttachment/Rect[300 300 320 320]/FS 5 0 R>>]"
    output = read(drawn_pdf(b"BT /F1 11 Tf 72 600 Td (Rent) Tj ET", objects=file, page_entries=pin), tmp_path)
    assert output.uncertainties == ("attachments were not read: lease.txt",)
    assert output.metadata["attachments"] == ["lease.txt"]


def test_a_password_in_a_form_is_not_read(tmp_path: Path) -> None:
    fields = ("/FT/Tx/T(code)/V(512)/Ff 8192", "/FT/Tx/T(rent)/V(480)/Ff 4096")
    output = read(form_pdf(*fields, words=[Words("Form")]), tmp_path)
    assert lines(output) == ["Form", "rent: 480"]
    assert complete(output)


@pytest.mark.parametrize(
    "data",
    [
        coded_pdf(60, first_letter="a"),
        coded_pdf(60, first_letter="\uf020"),  # where symbol fonts have their signs
        coded_pdf(1, text="The rent of berth seven is due on the third day."),
        pdf([Words("Rent is due.")]),
    ],
    ids=["mapped", "symbols", "one of many", "plain"],
)
def test_letters_that_are_known_are_not(data: bytes, tmp_path: Path) -> None:
    assert not any("by guess" in note for note in read(data, tmp_path).uncertainties)
