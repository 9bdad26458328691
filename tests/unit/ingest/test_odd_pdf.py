"""A PDF that does not say which letters it shows is reported: what is read of it is a guess."""

from pathlib import Path

import pytest

from tests.support.documents import Words, pdf
from tests.support.odd_pdf import coded_pdf
from tests.unit.ingest.test_pdf_parts import lines, read

GUESSED = (
    "page 1 was partly read by guess: fonts do not say which letters 60 characters are; words may be wrong or missing"
)


@pytest.mark.parametrize("first_letter", ["", "\ue000"], ids=["no map", "private letters"])
def test_letters_that_no_font_names_are_reported(first_letter: str, tmp_path: Path) -> None:
    output = read(coded_pdf(60, first_letter=first_letter), tmp_path)
    assert "Rent is due." in lines(output)
    assert output.uncertainties == (GUESSED,)


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
