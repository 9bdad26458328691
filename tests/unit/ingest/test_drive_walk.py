"""What the Drive connector finds: files and folders, exports, shortcuts, circles, shared drives, and what it skips."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.drive_case import DriveCase, drive_case

TOP = "folder-top-0"
OFFICE = "application/vnd.openxmlformats-officedocument."


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[DriveCase]:
    async with drive_case(tmp_path) as made:
        yield made


def _request(identifier: str, *, recursive: bool = True) -> ConnectorInput:
    return ConnectorInput(
        source_type="gdrive", source_identifier=identifier, credentials_id="account", recursive=recursive
    )


@pytest.mark.row("S003-08", "S003-09", "S003-14")
async def test_a_file_is_there_whole_with_what_drive_says_of_it(case: DriveCase) -> None:
    case.server.file("file-report", "Report.pdf", b"%PDF-1.7 report")
    walk = aiter(case.connector.fetch(_request("file-report"), case.workspace, {}))
    found = await anext(walk)
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    path = Path(found.output.file_path)
    assert path.is_absolute()
    assert await asyncio.to_thread(path.read_bytes) == b"%PDF-1.7 report"
    assert found.source == "gdrive:file-report"
    assert (found.name, found.file_type, found.total) == ("Report.pdf", "pdf", 1)
    assert found.url == "https://drive.google.com/file/d/file-report/view?usp=drivesdk"
    assert found.version == hashlib.md5(b"%PDF-1.7 report").hexdigest()
    assert found.output.checksum == hashlib.sha256(b"%PDF-1.7 report").hexdigest()
    assert found.output.file_size_bytes == 15
    assert found.output.source_metadata["owners"] == [{"displayName": "Ann Example", "emailAddress": "ann@example.org"}]
    assert found.output.source_metadata["modifiedTime"] == "2026-03-01T10:00:00.000Z"
    assert [one async for one in walk] == []
    assert list(case.workspace.iterdir()) == [], "what has been taken makes room for the next"


@pytest.mark.row("S003-12")
async def test_folders_are_walked_to_the_bottom_page_by_page(case: DriveCase) -> None:
    server = case.server
    server.page_size = 2
    server.folder(TOP)
    server.folder("folder-below", parent=TOP)
    server.folder("folder-deep-", parent="folder-below")
    for number in range(5):
        server.file(f"file-top-0{number}", f"{number}.txt", b"%d" % number, parent=TOP, mime="text/plain")
    server.file("file-middle", "m.txt", b"middle", parent="folder-below", mime="text/plain")
    server.file("file-bottom", "b.txt", b"bottom", parent="folder-deep-", mime="text/plain")
    found = await case.fetch(TOP)
    assert [(one.source, one.name) for one in found] == [
        *((f"gdrive:{TOP}/file-top-0{n}", f"{n}.txt") for n in range(5)),
        (f"gdrive:{TOP}/folder-below/file-middle", "folder-below/m.txt"),
        (f"gdrive:{TOP}/folder-deep-/file-bottom", "folder-below/folder-deep-/b.txt"),
    ]
    assert [one.total for one in found if isinstance(one, FetchedDocument)] == [None] * 6 + [7]
    assert len(server.calls("list")) == 3 + 1 + 1
    connector = case.connector
    assert all(connector.covers(_request(TOP), one.source) for one in found)


async def test_without_recursion_a_folder_is_its_own_files(case: DriveCase) -> None:
    case.server.folder(TOP)
    case.server.folder("folder-below", parent=TOP)
    case.server.file("file-middle", "m.pdf", b"middle", parent="folder-below")
    case.server.file("file-upper-", "u.pdf", b"upper", parent=TOP)
    case.server.shortcut("short-below", "folder-below", parent=TOP)
    found = await case.fetch(TOP, recursive=False)
    assert [one.source for one in found] == [f"gdrive:{TOP}/file-upper-"]


@pytest.mark.parametrize(
    ("kind", "file_type", "mime"),
    [
        ("document", "docx", f"{OFFICE}wordprocessingml.document"),
        ("spreadsheet", "xlsx", f"{OFFICE}spreadsheetml.sheet"),
        ("presentation", "pptx", f"{OFFICE}presentationml.presentation"),
    ],
)
async def test_googles_own_documents_are_exported(case: DriveCase, kind: str, file_type: str, mime: str) -> None:
    case.server.document("native-file", "Plan / 2026", b"PK office", kind=kind)
    [found] = await case.fetch("native-file")
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    assert (found.file_type, found.name, found.version) == (file_type, "Plan / 2026", "7")
    assert found.output.file_path.endswith(f"-native-file.{file_type}")
    assert case.server.calls("export")[0].query["mimeType"] == mime


async def test_what_nobody_reads_is_named_and_not_downloaded(case: DriveCase) -> None:
    case.server.folder(TOP)
    case.server.document("native-form", "Survey", b"", parent=TOP, kind="form")
    case.server.file("file-video-", "clip.mp4", b"video", parent=TOP, mime="video/mp4")
    found = await case.fetch(TOP)
    assert [(one.name, one.file_type, one.output) for one in found if isinstance(one, FetchedDocument)] == [
        ("Survey", None, None),
        ("clip.mp4", None, None),
    ]
    assert not case.server.calls("media")


async def test_what_has_not_changed_is_not_downloaded_and_what_has_is(case: DriveCase) -> None:
    case.server.folder(TOP)
    changing = case.server.file("file-change", "a.pdf", b"first", parent=TOP)
    case.server.document("native-file", "Plan", b"PK", parent=TOP)
    first = [one for one in await case.fetch(TOP) if isinstance(one, FetchedDocument)]
    known = {one.source: one.version for one in first}
    again = [one for one in await case.fetch(TOP, known=known) if isinstance(one, FetchedDocument)]
    assert [(one.source, one.version, one.output) for one in again] == [(s, v, None) for s, v in known.items()]
    assert (len(case.server.calls("media")), len(case.server.calls("export"))) == (1, 1)
    changing.content = b"second"
    case.server.items["native-file"].more["version"] = "8"
    third = [one for one in await case.fetch(TOP, known=known) if isinstance(one, FetchedDocument)]
    assert all(one.output is not None for one in third)


async def test_shortcuts_are_followed_once_and_circles_end(case: DriveCase) -> None:
    server = case.server
    server.folder(TOP)
    server.folder("folder-circle", parent=TOP)
    server.file("file-single", "single.pdf", b"one", parent="folder-circle")
    server.file("file-afar-0", "afar.pdf", b"two")
    server.folder("folder-away", parent="")
    server.file("file-away-0", "away.pdf", b"three", parent="folder-away")
    server.shortcut("short-to-top", TOP, parent="folder-circle")
    server.shortcut("short-to-self", "folder-circle", parent="folder-circle")
    server.shortcut("short-to-single", "file-single", parent=TOP)
    server.shortcut("short-to-afar", "file-afar-0", parent=TOP)
    server.shortcut("short-to-afar-2", "file-afar-0", parent="folder-circle")
    server.shortcut("short-to-away", "folder-away", parent="folder-circle")
    server.shortcut("short-from-away", TOP, parent="folder-away")
    found = await case.fetch(TOP)
    assert sorted(one.source for one in found) == [
        f"gdrive:{TOP}/file-afar-0",
        f"gdrive:{TOP}/file-single",
        f"gdrive:{TOP}/folder-away/file-away-0",
    ]
    assert all(isinstance(one, FetchedDocument) and one.output for one in found)
    assert len(server.calls("media")) == 3


async def test_a_shortcut_to_a_shortcut_is_not_followed_further(case: DriveCase) -> None:
    case.server.folder(TOP)
    case.server.file("file-single", "single.pdf", b"one")
    case.server.shortcut("short-second", "file-single")
    case.server.shortcut("short-first-", "short-second", parent=TOP)
    [found] = await case.fetch(TOP)
    assert isinstance(found, FetchedDocument)
    assert found.output is None
    assert found.file_type is None


async def test_a_shortcut_may_be_what_is_asked_for(case: DriveCase) -> None:
    case.server.file("file-single", "single.pdf", b"one")
    case.server.shortcut("short-single", "file-single")
    [found] = await case.fetch("short-single")
    assert found.source == "gdrive:short-single"
    assert case.connector.covers(_request("short-single"), found.source)


async def test_what_is_in_the_trash_or_behind_a_dead_shortcut_is_gone(case: DriveCase) -> None:
    case.server.file("file-trash-", "t.pdf", b"t", trashed=True)
    case.server.folder("folder-trash", trashed=True)
    case.server.folder(TOP)
    case.server.shortcut("short-trash", "file-trash-", parent=TOP)
    case.server.shortcut("short-trash-2", "folder-trash", parent=TOP)
    case.server.shortcut("short-dead-0", "file-deleted", parent=TOP)
    for identifier, sources in {
        "file-trash-": ["gdrive:file-trash-"],
        "folder-trash": ["gdrive:folder-trash"],
        TOP: [f"gdrive:{TOP}/{one}" for one in ("file-deleted", "file-trash-", "folder-trash")],
    }.items():
        found = await case.fetch(identifier)
        assert sorted(one.source for one in found) == sources
        for one in found:
            assert isinstance(one, MissedDocument)
            assert one.gone
            assert isinstance(one.error, ConnectorNotFoundError)


async def test_shared_drives_and_links_with_a_key_are_read(case: DriveCase) -> None:
    case.server.folder(TOP, driveId="drive-shared-0")
    case.server.file("file-shared", "s.pdf", b"shared", parent=TOP, driveId="drive-shared-0")
    case.server.file("file-linked", "l.pdf", b"linked", resourceKey="0-key_1")
    assert await case.contents(TOP) == {"s.pdf": b"shared"}
    assert case.server.calls("list")[0].query["driveId"] == "drive-shared-0"
    link = "https://drive.google.com/file/d/file-linked/view?resourcekey=0-key_1"
    assert await case.contents(link) == {"l.pdf": b"linked"}
    [found] = await case.fetch(link)
    assert isinstance(found, FetchedDocument)
    assert found.output is not None
    assert "0-key_1" not in str(found.output.source_metadata)


async def test_an_empty_folder_an_empty_file_and_odd_names(case: DriveCase) -> None:
    case.server.folder("folder-empty")
    assert await case.fetch("folder-empty") == []
    case.server.folder(TOP)
    case.server.file("file-empty-", "../../etc/passwd\n\x1b[31m.pdf", b"", parent=TOP)
    assert await case.contents(TOP) == {"../../etc/passwd [31m.pdf": b""}


async def test_covers_tells_whose_a_source_is(case: DriveCase) -> None:
    covers = case.connector.covers
    folder = "https://drive.google.com/drive/folders/folder-top-0?usp=sharing"
    assert covers(_request(folder), f"gdrive:{TOP}/file-a")
    assert covers(_request(folder), f"gdrive:{TOP}/folder/file-a")
    assert covers(_request(TOP, recursive=False), f"gdrive:{TOP}/file-a")
    assert not covers(_request(TOP, recursive=False), f"gdrive:{TOP}/folder/file-a")
    assert not covers(_request(TOP), "gdrive:folder-other/file-a")
    assert not covers(_request(TOP), f"gdrive:{TOP}1/file-a")
    assert not covers(_request(TOP), f"/home/{TOP}/file-a")
    assert not covers(_request("nowhere"), "gdrive:nowhere")
