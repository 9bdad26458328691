"""Mails as programs and mailing lists write them: lines that flow, damaged encodings, headers without an encoding."""

import base64
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers import mail
from gateway.features.documents.engine.ingest.parsers.mail_encoding import decode_base64, join_flowed_lines
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.unit.ingest.test_mail_coverage import PLAIN, body, complete, multipart, part, read

CODED = base64.encodebytes(b"The rent is 950 euro a month for the flat in Birch Street, and the deposit is 2,850.")


def read_bytes(data: bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "mail.eml"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="eml"), max_bytes=2**20)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("format=flowed", "The \r\nterm is 90 \r\ndays.\r\n\r\nBest,\r\nAnn", ["The term is 90 days.", "Best,\nAnn"]),
        ("format=flowed; delsp=yes", "Miet \r\nvertrag", ["Mietvertrag"]),
        ("format=flowed", "> Is it \r\n> 90 or \r\n>> 30 \r\n>> days\r\nNo.", ["> Is it 90 or \n>> 30 days\nNo."]),
        ("format=flowed", " >no quote\r\n From here", [">no quote\nFrom here"]),
        ("format=flowed", "Ends \r\n-- \r\nAnn", ["Ends \n-- \nAnn"]),
        ("format=fixed", "Ends \r\nhere", ["Ends \nhere"]),
    ],
)  # fmt: skip
def test_lines_that_flow_are_one_paragraph(kind: str, text: str, expected: list[str], tmp_path: Path) -> None:
    output = read(part(f"{PLAIN}; {kind}", text), tmp_path)
    assert body(output) == expected
    assert complete(output)


def test_a_text_that_only_flows_is_read_to_its_end() -> None:
    assert join_flowed_lines("a \nb ", drops_space=False) == "a b "
    assert join_flowed_lines("", drops_space=True) == ""


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (
            CODED + b"\n_______\nTo leave this list: leave@example.org\n",
            "_______\nTo leave this list: leave@example.org",
        ),
        (CODED[:40] + b"\n!!\n" + CODED[40:], "!!"),
        (b"Rent is 90.", None),
        (b"Thanks\nMarc\nMore tomorrow.", None),
        (b"", None),
    ],
)
def test_base64_with_something_else_is_read_as_both(stored: bytes, expected: str | None) -> None:
    read_text = decode_base64(stored).decode()
    assert read_text == (stored.decode() if expected is None else f"{base64.decodebytes(CODED).decode()}\n{expected}")


@pytest.mark.parametrize("cut", range(4))
def test_base64_that_was_cut_is_read_to_its_end(cut: int, tmp_path: Path) -> None:
    stored = CODED.decode().strip().rstrip("=")
    field = "Content-Transfer-Encoding: base64"
    output = read(part(PLAIN, stored[: len(stored) - cut], field), tmp_path)
    assert body(output)[0].startswith(
        "The rent is 950 euro a month for the flat in Birch Street, and the deposit is 2,8"
    )
    assert complete(output)


def test_space_behind_a_soft_line_break_is_no_text(tmp_path: Path) -> None:
    output = read(part(PLAIN, "It is 1= \r\n250 =E2=82=AC.", "Content-Transfer-Encoding: quoted-printable"), tmp_path)
    assert body(output) == ["It is 1250 €."]
    assert complete(output)


def test_a_forwarded_mail_that_is_encoded_is_read(tmp_path: Path) -> None:
    inner = b"From: bo@example.org\r\nSubject: Quay\r\n\r\nPump 6 leaks = 3 l a day."
    stored = base64.encodebytes(inner).decode()
    forwarded = part("message/rfc822", stored, "Content-Transfer-Encoding: base64")
    output = read(multipart("mixed", part(PLAIN, "See below."), forwarded), tmp_path)
    assert body(output) == ["See below.", "Forwarded message\nQuay\nFrom: bo@example.org", "Pump 6 leaks = 3 l a day."]
    assert complete(output)


@pytest.mark.parametrize(
    "subject", [b"\xdcberf\xe4llige Miete", "Überfällige Miete".encode(), b"=?utf-8?q?=C3=9Cberf=C3=A4llige?= Miete"]
)
def test_a_subject_without_an_encoding_is_read(subject: bytes, tmp_path: Path) -> None:
    output = read_bytes(b"From: a@example.org\r\nSubject: " + subject + b"\r\n\r\nText.", tmp_path)
    assert output.metadata["title"] == "Überfällige Miete"


def test_a_byte_order_mark_before_the_header_is_ignored(tmp_path: Path) -> None:
    output = read_bytes(b"\xef\xbb\xbfSubject: Quay\r\nFrom: a@example.org\r\n\r\nText.", tmp_path)
    assert output.metadata["title"] == "Quay"
    assert body(output) == ["Text."]


def test_mails_of_a_digest_are_complete(tmp_path: Path) -> None:
    mails = [f"\r\nFrom: a@example.org\r\nSubject: Mail {n}\r\n\r\nText {n}." for n in (1, 2)]
    output = read(multipart("digest", *mails), tmp_path)
    assert [one for one in body(output) if one.startswith("Text")] == ["Text 1.", "Text 2."]
    assert complete(output)


def test_coverage_falls_when_the_coded_part_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "decode_transfer", lambda _: b"Nothing.")
    output = read(part(PLAIN, CODED.decode() + "\r\n--\r\na list", "Content-Transfer-Encoding: base64"), tmp_path)
    assert output.coverage is not None
    assert output.coverage.share < 0.5


@pytest.mark.parametrize("boundary", ["----=_NextPart_1", '"----=_NextPart_1"', "a:b/c"])
def test_a_boundary_need_not_be_in_quotes(boundary: str, tmp_path: Path) -> None:
    line = f"--{boundary.strip(chr(34))}"
    text = f"Content-Type: multipart/mixed; boundary={boundary}; charset=utf-8\r\n\r\n{line}\r\n\r\nPump 6.\r\n{line}--"
    output = read(text, tmp_path)
    assert body(output) == ["Pump 6."]
    assert output.uncertainties == ()
    assert complete(output)


@pytest.mark.parametrize(
    "junk", [b"", b"\r\n\r\n", b"delivered by the gate\r\n", b"From ann@example.org Fri Nov 27\r\n"]
)
def test_lines_before_the_header_are_no_mail(junk: bytes, tmp_path: Path) -> None:
    output = read_bytes(junk + b"From: a@example.org\r\nSubject: Quay\r\n\r\nText.", tmp_path)
    assert output.metadata["title"] == "Quay"
    assert body(output) == ["Text."]
    assert complete(output)


def test_a_gap_in_the_header_does_not_make_its_parts_text(tmp_path: Path) -> None:
    kind = "text/plain; charset=iso-8859-1"
    parts = f"--b\r\n{part(kind, 'Gr=F6=DFe', 'Content-Transfer-Encoding: quoted-printable')}\r\n--b--"
    output = read(f'\r\n\r\n\r\nContent-type: multipart/mixed; \r\n\tboundary="b"\r\n\r\n{parts}', tmp_path)
    assert body(output) == ["Größe"]
    assert complete(output)
    about = read("\r\nContent-Type: is a field of a header.", tmp_path)
    assert body(about) == ["Content-Type: is a field of a header."]


def test_a_page_in_xml_is_a_page(tmp_path: Path) -> None:
    output = read(part("application/xhtml+xml", "<html><body><p>Berth 7</p></body></html>"), tmp_path)
    assert body(output) == ["Berth 7"]
    assert complete(output)
