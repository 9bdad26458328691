"""Files that no parser reads are refused with what makes them readable. Saved pages and Apple's mails are read."""

import io
import zipfile
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type
from gateway.features.documents.engine.ingest.errors import ParserUnsupportedError
from gateway.features.documents.engine.ingest.local_files import LocalFile, list_files
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.ingest.uploads import guess_type
from gateway.features.documents.engine.search.models import FileType, ParserInput, ParserOutput
from tests.unit.ingest.test_mail_coverage import complete

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
OUTLOOK = OLE + "__properties_version1.0".encode("utf-16-le")
PICTURE = "--page\nContent-Type: image/png\nContent-Location: https://example.org/{}.png\n\nPNG\n"
PAGE = (
    "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/\nSubject: =?utf-8?Q?Liegepl=C3=A4tze?=\n"
    'MIME-Version: 1.0\nContent-Type: multipart/related;\n\ttype="text/html";\n\tboundary="page"\n\n\n--page\n'
    "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\nContent-Location: https://example.org/\n\n"
    "<html><body><h1>Ber=\nths</h1><p>Berth 7 costs =E2=82=AC 512.</p></body></html>\n--page\nContent-Type: text/css\n"
    f"Content-Location: cid:css@x\n\nh1 {{ color: red; }}\n{PICTURE.format('a')}{PICTURE.format('b')}--page--\n"
)
WORD_PAGE = (
    'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="----=_NextPart_01D"\n\n------=_NextPart_01D\n'
    "Content-Location: file:///C:/1/a.htm\nContent-Type: text/html; charset=us-ascii\n\n<p>Berth 7 costs 512.</p>\n"
    "------=_NextPart_01D--\n"
)
POSTED = (
    'Host: example.org\nContent-Type: multipart/form-data; boundary=x\n\n--x\nContent-Disposition: form-data; name="a"'
)
APPLE_MAIL = "From: a@example.org\nSubject: Berth 7\n\nRent is 512.\n"
APPLE_FLAGS = '<?xml version="1.0"?>\n<plist version="1.0"><dict><key>flags</key></dict></plist>\n'


def archive(*names: str, media_type: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in (*(["mimetype"] if media_type else []), *names):
            file.writestr(name, media_type if name == "mimetype" else "<a/>")
    return buffer.getvalue()


def read(data: bytes, name: str, tmp_path: Path, file_type: FileType | None = None) -> ParserOutput:
    path = tmp_path / name
    path.write_bytes(data)
    wanted = ParserInput(file_path=str(path), file_type=file_type or guess_type(path, name))
    return read_file(wanted, max_bytes=2**20)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.odt", archive("content.xml", media_type="application/vnd.oasis.opendocument.text"),
         "an OpenDocument file, which is not read; save it as Word, Excel, PowerPoint or PDF"),
        ("a.epub", archive("a.xhtml", media_type="application/epub+zip"), "an e-book, .*; save it as PDF or HTML"),
        ("a.pages", archive("Index/Document.iwa"), "an iWork document, .*; export it as Word"),
        ("a.zip", archive("a.txt"), "a zip archive, which is not read; unpack it and send its files"),
        ("a.rtf", b"{\\rtf1 Notice}", "an RTF document, .*; save it as Word or PDF"),
        ("a.doc", OLE, "an old or encrypted Office document, .*; save it as .docx, .xlsx or .pptx without a password"),
        ("a.msg", OUTLOOK, "an Outlook message, which is not read; save it as .eml"),
        ("winmail.dat", b"\x78\x9f\x3e\x22" + bytes(range(256)), ".*; ask its sender for the mail"),
        ("a.tif", b"II*\x00" + bytes(range(256)), "a TIFF image, .*; pictures are read as pages of a PDF"),
        ("a.eps", b"%!PS-Adobe-3.0 EPSF", "a PostScript file, which is not read; save it as PDF"),
        ("a.mp3", b"ID3\x03" + bytes(range(256)), "binary data, which is not read; send text, PDF, HTML, Office files"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(ParserUnsupportedError, match=f"^{name} is {why}"):
        read(data, name, tmp_path)


def test_a_file_under_a_wrong_name_is_to_be_renamed(tmp_path: Path) -> None:
    with pytest.raises(
        ParserUnsupportedError, match=r"^a.docx was given as docx and looks like text; rename .* \.txt$"
    ):
        read(b"Notice", "a.docx", tmp_path, "docx")


def test_a_file_given_as_another_type_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(ParserUnsupportedError, match=r"^a.txt is text; give txt as its type$"):
        read(b"Notice", "a.txt", tmp_path, "pdf")


@pytest.mark.parametrize("name", ["page.mht", "page.mhtml", "page.doc", "page"])
def test_a_page_saved_with_its_pictures_is_read(name: str, tmp_path: Path) -> None:
    output = read(PAGE.encode(), name, tmp_path)
    assert [chunk.content for chunk in output.chunks] == [
        "Liegeplätze", 'From: "Saved by Blink"', "Berths", "Berth 7 costs € 512.",
    ]  # fmt: skip
    assert output.uncertainties == ("attachments were not read: image/png (2 times)",)
    assert complete(output)
    assert output.coverage is not None
    assert output.coverage.omitted == {"code of a page": 3, "attachment": 2}
    (listed,) = list_files(tmp_path)
    assert isinstance(listed, LocalFile)
    assert listed.file_type == "eml"
    assert detect_file_type("multipart/related", "") == "eml"


@pytest.mark.parametrize("page", [WORD_PAGE, WORD_PAGE.partition("\n")[2], f"\ufeff\n{WORD_PAGE}"])
@pytest.mark.parametrize("name", ["page.mht", "page.doc"])
def test_a_page_that_word_has_saved_is_read(name: str, page: str, tmp_path: Path) -> None:
    output = read(page.encode(), name, tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Berth 7 costs 512."]
    assert complete(output)


def test_a_recorded_request_is_read_as_text(tmp_path: Path) -> None:
    output = read(POSTED.encode(), "request.txt", tmp_path)
    assert "\n\n".join(chunk.content for chunk in output.chunks) == POSTED


def test_a_number_of_many_digits_is_no_size_of_a_mail(tmp_path: Path) -> None:
    assert complete(read(f"{'1' * 5_000}\n{APPLE_MAIL}".encode(), "1.eml", tmp_path))


def test_a_mail_of_apple_mail_is_read_without_its_flags(tmp_path: Path) -> None:
    output = read(f"{len(APPLE_MAIL):<10}\n{APPLE_MAIL}{APPLE_FLAGS}".encode(), "1.emlx", tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Berth 7", "From: a@example.org", "Rent is 512."]
    assert complete(output)
