"""Mails whose parts are wrapped or declared wrongly: encoded forwards, signatures around the text, false charsets."""

import base64
import quopri
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers.mail_signed import find_signed_content
from tests.unit.ingest.test_mail_coverage import body, complete
from tests.unit.ingest.test_mail_encoding import read_bytes

HEAD = b"From: a@example.org\nSubject: Lease\nMIME-Version: 1.0\n"
FORWARD = "From: eve@example.org\nSubject: =?utf-8?q?Caf=C3=A9?=\n{}\n\nThe café pays 1,234 euros = too much.\n"
SEALED = b"Content-Type: text/plain\n\nThe notice period is 30 days."


def forward(kind: str, encoding: str, message: bytes) -> bytes:
    fields = f"Content-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n"
    return HEAD + fields.encode() + message


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [("message/rfc822", "quoted-printable"), ("message/rfc822", "base64"), ("message/rfc822", "8bit"),
     ("message/global", "8bit"), ("message/global", "quoted-printable")],
)  # fmt: skip
def test_a_forwarded_mail_is_read_in_any_encoding(kind: str, encoding: str, tmp_path: Path) -> None:
    message = FORWARD.format("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit").encode()
    coded = {"quoted-printable": quopri.encodestring, "base64": base64.encodebytes}.get(encoding, bytes)(message)
    output = read_bytes(forward(kind, encoding, coded), tmp_path)
    assert body(output) == [
        "Forwarded message\nCafé\nFrom: eve@example.org",
        "The café pays 1,234 euros = too much.",
    ]
    assert complete(output)


def test_the_parts_of_an_encoded_forward_are_parts(tmp_path: Path) -> None:
    inner = 'Content-Type: multipart/mixed; boundary="I"\n\n--I\nContent-Type: text/plain\n\nRent 42{}000.\n--I--\n'
    coded = quopri.encodestring(FORWARD.format(inner.format(" ")).encode())
    output = read_bytes(forward("message/rfc822", "quoted-printable", coded), tmp_path)
    assert body(output)[1] == "Rent 42 000."
    assert output.uncertainties == ("text behind the last part was left out, which no mail program shows (8 words)",)


def test_a_forward_that_only_claims_to_be_encoded_is_read_once(tmp_path: Path) -> None:
    fields = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable"
    message = f"From: eve@example.org\nSubject: S\n{fields}\n\nx =3D41 caf=C3=A9\n".encode()
    output = read_bytes(forward("message/rfc822", "quoted-printable", message), tmp_path)
    assert body(output)[1] == "x =41 café"


@pytest.mark.parametrize(
    ("declared", "text"),
    [("iso-8859-1", "Café für 12 €".encode()), ("windows-1252", "Größe 5".encode()), ("iso-8859-15", "é".encode())],
)
def test_utf8_that_is_declared_as_latin_is_utf8(declared: str, text: bytes, tmp_path: Path) -> None:
    data = HEAD + f"Content-Type: text/plain; charset={declared}\nContent-Transfer-Encoding: 8bit\n\n".encode() + text
    output = read_bytes(data, tmp_path)
    assert body(output) == [text.decode()]
    assert output.uncertainties == (f"the mail's text is not {declared}; read as utf-8",)
    assert complete(output)


def test_latin_that_is_declared_stays_latin(tmp_path: Path) -> None:
    data = HEAD + b"Content-Type: text/plain; charset=iso-8859-1\n\nGr\xfc\xdfe"
    assert body(read_bytes(data, tmp_path)) == ["Grüße"]


def test_a_text_that_only_claims_to_be_quoted_printable_is_taken_as_it_is(tmp_path: Path) -> None:
    fields = b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n"
    output = read_bytes(HEAD + fields + b"Set x=1234 and y=AB.", tmp_path)
    assert body(output) == ["Set x=1234 and y=AB."]
    assert complete(output)


def value(tag: int, content: bytes, *, is_open: bool = False) -> bytes:
    """A value in BER, with its length or with an open end."""
    if is_open:
        return bytes([tag, 0x80]) + content + b"\0\0"
    length = bytes([len(content)]) if len(content) < 128 else b"\x82" + len(content).to_bytes(2)
    return bytes([tag]) + length + content


def envelope(content: bytes, *, is_open: bool = False, kind: str = "02") -> bytes:
    """A `ContentInfo` of signed data (RFC 5652, 5.1) without certificates."""
    octets = value(0x04, content)
    if is_open:  # as Outlook writes it, in pieces
        octets = value(0x24, value(0x04, content[:10]) + value(0x04, content[10:]), is_open=True)
    data = bytes.fromhex("06092a864886f70d010701") + value(0xA0, octets, is_open=is_open)
    fields = b"\x02\x01\x01" + value(0x31, b"") + value(0x30, data, is_open=is_open) + value(0x31, b"")
    signed = bytes.fromhex(f"06092a864886f70d0107{kind}") + value(0xA0, value(0x30, fields), is_open=is_open)
    return value(0x30, signed, is_open=is_open)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_text_within_its_signature_is_read(is_open: bool, tmp_path: Path) -> None:
    fields = "Content-Type: application/pkcs7-mime; smime-type=signed-data\nContent-Transfer-Encoding: base64\n\n"
    coded = base64.encodebytes(envelope(SEALED, is_open=is_open))
    output = read_bytes(HEAD + fields.encode() + coded, tmp_path)
    assert body(output) == ["The notice period is 30 days."]
    assert not output.uncertainties


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x80" * 500, envelope(SEALED)[:-40], envelope(SEALED, kind="03"), b"\x30\x84\xff\xff"]
)
def test_what_is_not_signed_has_no_content(data: bytes) -> None:
    assert find_signed_content(data) is None


def test_an_encrypted_part_is_reported(tmp_path: Path) -> None:
    fields = "Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n"
    output = read_bytes(HEAD + fields.encode() + base64.encodebytes(envelope(SEALED, kind="03")), tmp_path)
    assert output.uncertainties == ("an encrypted or signed part was not read: smime.p7m",)
