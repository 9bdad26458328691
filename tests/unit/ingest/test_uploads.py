"""Uploads and roots: what may become a path, what a file is, and what is kept."""

import errno
import io
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.core.errors import BadRequestError, NotFoundError, StoreError, StoreFullError, TooLargeError
from agent.storage.objects.folder import FolderObjectStore
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorNotFoundError
from gateway.features.documents.engine.ingest.parsers.sniff import detect_kind
from gateway.features.documents.engine.ingest.source_specs import parse_source_address
from gateway.features.documents.engine.ingest.uploads import Uploads, display_name, guess_type
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.documents import pdf, word


def workspace(tmp_path: Path) -> Path:
    """A new folder in which uploads are received."""
    return Path(tempfile.mkdtemp(dir=tmp_path))


def test_the_same_bytes_are_one_file_named_by_their_checksum(tmp_path: Path) -> None:
    uploads = Uploads(FolderObjectStore(tmp_path), 100)
    one, two = (uploads.store("ann", io.BytesIO(b"hello"), workspace(tmp_path)) for _ in range(2))
    assert (one.checksum, one.size, one.path.read_bytes()) == (two.checksum, 5, b"hello")
    kept = tmp_path / "uploads" / "ann"
    assert (kept / one.checksum).read_bytes() == b"hello"
    assert [path.name for path in kept.iterdir()] == [one.checksum], "no half file is left"
    uploads.store("bob", io.BytesIO(b"hello"), workspace(tmp_path))
    uploads.remove("ann", one.checksum)
    uploads.remove("ann", one.checksum)
    with pytest.raises(NotFoundError):
        uploads.open("ann", one.checksum)
    with uploads.open("bob", one.checksum) as file:
        assert file.read() == b"hello"
    uploads.remove_owner("bob")
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["ann"]


@pytest.mark.parametrize("owner", ["../../etc", "a/b", "", ".", "A" * 300, "x\x00y", "ünï\udcff"])
def test_no_owner_leads_out_of_the_folder(tmp_path: Path, owner: str) -> None:
    folder = workspace(tmp_path)
    stored = Uploads(FolderObjectStore(tmp_path / "data"), 100).store(owner, io.BytesIO(b"x"), folder)
    assert [path.parent.parent for path in tmp_path.rglob(stored.checksum) if path.parent != folder] == [
        tmp_path / "data" / "uploads"
    ]


def test_a_checksum_is_a_checksum(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        Uploads(FolderObjectStore(tmp_path), 100).open("ann", "../../../etc/passwd")


def test_what_is_too_large_or_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    class Breaks(io.BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    uploads, folder = Uploads(FolderObjectStore(tmp_path), 4), workspace(tmp_path)
    with pytest.raises(TooLargeError, match="AGENT_MAX_UPLOAD_BYTES"):
        uploads.store("ann", io.BytesIO(b"12345"), folder)
    with pytest.raises(StoreFullError):
        uploads.store("ann", Breaks(), folder)
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "uploads").exists()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError):
        Uploads(FolderObjectStore(tmp_path / "file"), 4).store("ann", io.BytesIO(b"1"), folder)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\report.docx", "report.docx"),
        ("a\r\nb\x00.txt", "ab.txt"),
        ("", "upload"),
        (None, "upload"),
        ("..", "upload"),
        ("x" * 500, "x" * 200),
        ("\u202egnp.exe", "gnp.exe"),
        ("ünï ☃.md", "ünï ☃.md"),
    ],
)
def test_a_name_is_shown_and_nothing_more(sent: str | None, shown: str) -> None:
    assert display_name(sent) == shown


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (pdf(), "report.txt", "pdf"),
        (word(), "report.docx", "docx"),
        (word(), "report", "docx"),
        (b"PK\x03\x04", "table.xlsx", "xlsx"),
        (b"<!doctype html><p>x", "page", "html"),
        (b"<html>", "mail.eml", "eml"),
        (b"a,b\n1,2", "t.csv", "csv"),
        (b"# Title", "t.markdown", "md"),
        (b"words", "no ending", "txt"),
        (b"words", "report.pdf", "pdf"),
        (b"", "t.md", "md"),
    ],
)
def test_a_file_is_what_its_bytes_say_and_else_what_its_name_says(
    tmp_path: Path, data: bytes, name: str, kind: str
) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(data)
    assert guess_type(path, name) == kind


def local(path: str) -> ConnectorInput:
    return ConnectorInput(source_type="local", source_identifier=path, recursive=True)


def test_paths_are_found_beneath_the_roots_and_nowhere_else(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two", tmp_path / "not made yet"]
    for root in roots[:2]:
        (root / "docs").mkdir(parents=True)
    (roots[1] / "docs" / "b.md").write_text("b")
    (tmp_path / "secret.md").write_text("secret")
    (roots[0] / "link.md").symlink_to(tmp_path / "secret.md")
    (roots[0] / "round").symlink_to(roots[0] / "round")
    assert resolve_allowed(local("docs/b.md"), roots).source_identifier == str(roots[1] / "docs" / "b.md")
    assert resolve_allowed(local("."), roots).source_identifier == str(roots[0])
    assert resolve_allowed(local(str(roots[1] / "docs")), roots).source_identifier == str(roots[1] / "docs")
    for outside in (str(tmp_path / "secret.md"), "/etc/passwd", "/nowhere at all"):
        with pytest.raises(ConnectorAuthError, match="AGENT_FILE_ROOTS"):
            resolve_allowed(local(outside), roots)
    for missing in ("../secret.md", "link.md", "nothing.md", str(roots[0] / "gone.md"), "x\x00y", "round/x"):
        with pytest.raises(ConnectorNotFoundError):
            resolve_allowed(local(missing), roots)
    web = ConnectorInput(source_type="web", source_identifier="https://a.example/")
    assert resolve_allowed(web, roots) == web


@pytest.mark.parametrize(
    ("words", "kind", "identifier", "recursive"),
    [
        ("docs", "local", "docs", True),
        ("~/docs", "local", str(Path("~/docs").expanduser()), True),
        ("https://a.example/x", "web", "https://a.example/x", False),
        ("HTTP://a.example", "web", "HTTP://a.example", False),
        ("gdrive:1abcDEF", "gdrive", "1abcDEF", True),
        ("https://drive.google.com/drive/folders/1abc", "gdrive", "https://drive.google.com/drive/folders/1abc", True),
    ],
)
def test_sources_are_told_apart_by_what_people_call_them(
    words: str, kind: str, identifier: str, recursive: bool
) -> None:
    found = parse_source_address(words)
    assert (found.source_type, found.source_identifier, found.recursive) == (kind, identifier, recursive)
    assert parse_source_address(words, not recursive, "team").recursive is not recursive


@pytest.mark.parametrize("words", ["ftp://host.example/docs", "s3://bucket/key", "file:///home"])
def test_an_address_that_nobody_reads_is_no_path(words: str) -> None:
    with pytest.raises(BadRequestError, match="give a path, a web address"):
        parse_source_address(words)


@pytest.mark.parametrize("mark", [b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"])
def test_random_bytes_are_no_text(mark: bytes) -> None:
    for seed in range(50):
        noise = Random(seed).randbytes(1_000)
        assert detect_kind(mark + noise) != "text"
        assert detect_kind(mark + noise.replace(b"\0", b"\1")) != "text"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "shift_jis"])
@pytest.mark.parametrize("text", ["日本語 and English\n" * 1_000, "Page 1\fPage 2\x1b[31m in red\x1b[0m\n" * 1_000])
def test_text_in_any_width_is_text(encoding: str, text: str) -> None:
    assert detect_kind(text.encode(encoding)) == "text"
