"""Charsets of mails and their subjects mean what mail programs read them as."""

# ruff: noqa: RUF001 - letters of all scripts are meant

from base64 import b64encode
from pathlib import Path

import pytest
from webencodings.labels import LABELS  # type: ignore[import-untyped]

from agent.text.html.encoding import decode_declared, find_codec
from agent.text.iso2022_jp import decode_iso2022_jp
from gateway.features.documents.engine.ingest.coverage.charsets import decode_switched, decode_text
from tests.unit.ingest.test_mail_coverage import body, complete
from tests.unit.ingest.test_mail_encoding import read_bytes
from tests.unit.ingest.test_odd_texts import read_as

OUTLOOK = b"\x1b$B-j2q<R\x1b(B 5 \x1b$B-!NA6b\x1b(B \x1b(I1=4\x1b(B"
OUTLOOK_TEXT = "㈱会社 5 ①料金 ｱｽｴ"
LETTERS = [
    ("ISO-2022-JP", OUTLOOK, OUTLOOK_TEXT),
    ("ISO-2022-KR", "임대료는 950000 원".encode("iso2022_kr"), "임대료는 950000 원"),
    ("HZ-GB-2312", "租金 950 元".encode("hz"), "租金 950 元"),
    ("shift_jis", "①㈱ 料金 髙".encode("cp932"), "①㈱ 料金 髙"),
    ("windows-31j", "①㈱ 料金".encode("cp932"), "①㈱ 料金"),
    ("x-mac-roman", "Preis 5 € Größe".encode("mac_roman"), "Preis 5 € Größe"),
    ("gb2312", "镕基 5 €".encode("gb18030"), "镕基 5 €"),
    ("ks_c_5601-1987", "똠방각하 펲시".encode("cp949"), "똠방각하 펲시"),
    ("iso-8859-1", "“5 €” – é".encode("cp1252"), "“5 €” – é"),
    ("koi8", "Привет".encode("koi8-r"), "Привет"),
]


def encode_word(charset: str, data: bytes) -> bytes:
    return b"=?" + charset.encode() + b"?B?" + b64encode(data) + b"?="


@pytest.mark.parametrize(("charset", "data", "text"), LETTERS, ids=[charset for charset, _, _ in LETTERS])
def test_a_charset_is_what_mail_programs_read(charset: str, data: bytes, text: str, tmp_path: Path) -> None:
    fields = b"From: a@example.org\r\nSubject: " + encode_word(charset, data)
    output = read_bytes(
        fields + b"\r\nContent-Type: text/plain; charset=" + charset.encode() + b"\r\n\r\n" + data, tmp_path
    )
    assert output.metadata["title"] == text
    assert body(output) == [text]
    assert complete(output)
    assert not output.uncertainties


def test_words_of_a_subject_may_share_a_letter_and_have_other_charsets(tmp_path: Path) -> None:
    data = "料金①".encode("cp932")
    words = [encode_word("shift_jis", data[:3]), encode_word("shift_jis", data[3:]), b"=?iso-8859-1?Q?_=93a=94?="]
    output = read_bytes(
        b"From: a@example.org\r\nSubject: " + b"\r\n ".join(words) + b" =?none?Q?b?=\r\n\r\nx", tmp_path
    )
    assert str(output.metadata["title"]).startswith("料金① “a”")


def test_a_text_in_iso_2022_kr_is_read(tmp_path: Path) -> None:
    output = read_as("txt", "임대료는 950000 원".encode("iso2022_kr"), tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["임대료는 950000 원"]
    assert complete(output)


@pytest.mark.parametrize(("file_type", "start"), [("txt", b""), ("html", b"<meta charset=iso-2022-jp><p>")])
def test_files_in_iso_2022_jp_are_read(file_type: str, start: bytes, tmp_path: Path) -> None:
    output = read_as("txt" if file_type == "txt" else "html", start + OUTLOOK, tmp_path)
    assert [chunk.content for chunk in output.chunks] == [OUTLOOK_TEXT]
    assert complete(output)


@pytest.mark.parametrize("decode", [decode_iso2022_jp, decode_switched])
def test_kana_may_be_between_shifts_and_signs_in_any_row(decode: type[str]) -> None:
    assert decode(b"\x0e1=4\x0f 5") == "ｱｽｴ 5"
    assert decode(b"\x1b$By!|~\x1b(B") == "纊＂"


def test_what_is_not_in_the_encoding_is_lost_and_counted() -> None:
    assert decode_iso2022_jp(b"\x1b$B\x22\x2f\x1b(B a\xff") == "\ufffd a\ufffd"
    assert decode_declared(b"\x1b$B\x22\x2f\x1b(B", "iso-2022-jp") is None


def test_the_reader_and_the_measure_know_the_names_of_the_standard() -> None:
    unread = {
        label
        for label, name in LABELS.items()
        if name in {"replacement", "x-user-defined", "utf-8", "utf-16le", "utf-16be"}
    }
    for label in LABELS.keys() - unread:
        assert find_codec(label), label
        assert decode_text(b"a", label) == "a", label
