"""The filled fields of PDF forms are read with their labels."""

from pathlib import Path

from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support.documents import Words, form_pdf

APPEARANCES = "/AP<</N<</Yes 3 0 R/Off 3 0 R>>>>"


def read(data: bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "form.pdf"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="pdf"), max_bytes=2**20)


def lines(output: ParserOutput) -> list[str]:
    return [line for chunk in output.chunks for line in chunk.content.splitlines()]


def test_values_are_read_with_the_label_that_a_person_sees(tmp_path: Path) -> None:
    data = form_pdf(
        "/FT/Tx/T(f1)/TU(Name of the tenant)/V(Anna Lindqvist)",
        "/FT/Tx/T(form1.Monthly_rent)/V(1240)",
        f"/FT/Btn/T(f3)/TU(Pets allowed)/V/Yes/AS/Yes{APPEARANCES}",
        "/FT/Ch/Ff 131072/T(f4)/Opt[(12 months)(24 months)]/V(24 months)",
        "/FT/Tx/T(f5)/TU(Remarks)",
        words=[Words("Rental agreement", 72, 40), Words("Term:", 200, 188)],
    )
    output = read(data, tmp_path)
    assert lines(output)[-4:] == [
        "Name of the tenant: Anna Lindqvist", "Monthly rent: 1240", "Pets allowed: yes", "Term: 24 months",
    ]  # fmt: skip
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert not output.uncertainties


def test_a_form_whose_page_prints_nothing_is_read(tmp_path: Path) -> None:
    output = read(form_pdf("/FT/Tx/T(Reference)/V(RE-20431)"), tmp_path)
    assert lines(output) == ["Reference: RE-20431"]
