"""`LocalConnector`: which files of a folder are found, which are read again, and what happens to the odd ones."""

import asyncio
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest import local_files
from gateway.features.documents.engine.ingest.connectors import local
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput

LATER_NS = 10_000_000_000
"""Long enough after now for a file's time to count."""


def later() -> int:
    return time.time_ns() + LATER_NS


def write(path: Path, text: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def ask(path: Path | str, *, recursive: bool = True) -> ConnectorInput:
    return ConnectorInput(source_type="local", source_identifier=str(path), recursive=recursive)


async def fetch(
    request: ConnectorInput,
    workspace: Path,
    known: Mapping[str, str] | None = None,
    connector: Connector | None = None,
) -> list[FetchedDocument | MissedDocument]:
    connector = connector or LocalConnector(now_ns=later)
    return [one async for one in connector.fetch(request, workspace, known or {})]


def fetched(found: list[FetchedDocument | MissedDocument]) -> list[FetchedDocument]:
    assert all(isinstance(one, FetchedDocument) for one in found), found
    return [one for one in found if isinstance(one, FetchedDocument)]


def missed(found: list[FetchedDocument | MissedDocument]) -> list[MissedDocument]:
    return [one for one in found if isinstance(one, MissedDocument)]


def content(one: FetchedDocument | MissedDocument) -> bytes:
    return Path(output(one).file_path.encode().decode()).read_bytes()


def write_raw(folder: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)


def output(one: FetchedDocument | MissedDocument) -> ConnectorOutput:
    assert isinstance(one, FetchedDocument)
    assert one.output is not None
    return one.output


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "docs"
    path.mkdir()
    return path


@pytest.mark.row("S003-08", "S003-09", "S003-12", "S003-14")
async def test_a_folder_of_three_nested_files_gives_three(folder: Path, workspace: Path) -> None:
    for name in ("a.txt", "b/c.md", "b/d/e.html"):
        write(folder / name, f"this is {name}")
    found = fetched(await fetch(ask(folder), workspace))
    assert [one.name for one in found] == ["a.txt", "b/c.md", "b/d/e.html"]
    assert [one.file_type for one in found] == ["txt", "md", "html"]
    assert [one.total for one in found] == [3, 3, 3]
    for one in found:
        path = Path(output(one).file_path)
        assert path.is_absolute()
        assert output(one).checksum == hashlib.sha256(content(one)).hexdigest()
        assert output(one).file_size_bytes == len(content(one))
        assert output(one).source_metadata["path"] == one.source == path.as_posix()
    assert os.listdir(workspace) == []  # noqa: PTH208


async def test_without_recursive_only_the_top_is_read(folder: Path, workspace: Path) -> None:
    write(folder / "a.txt")
    write(folder / "b/c.txt")
    request = ask(folder, recursive=False)
    assert [one.name for one in fetched(await fetch(request, workspace))] == ["a.txt"]
    connector = LocalConnector()
    assert connector.covers(request, (folder / "gone.txt").as_posix())
    assert not connector.covers(request, (folder / "b/c.txt").as_posix())
    assert connector.covers(ask(folder), (folder / "b/c.txt").as_posix())
    assert not connector.covers(ask(folder), f"{folder.as_posix()}-other/c.txt")


async def test_one_file(folder: Path, workspace: Path) -> None:
    path = write(folder / "a.txt")
    [one] = fetched(await fetch(ask(path), workspace))
    assert (one.name, one.source) == ("a.txt", path.as_posix())
    assert LocalConnector().covers(ask(path), one.source)
    assert not LocalConnector().covers(ask(path), (folder / "b.txt").as_posix())


async def test_what_has_not_changed_is_not_even_opened(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        write(folder / name)
    first = fetched(await fetch(ask(folder), workspace))
    known = {one.source: one.version for one in first}
    assert all(known.values())
    write(folder / "b.txt", "other")
    opened: list[str] = []
    genuine = local._read_stable

    def read_still(path: Path, copy: Path | None) -> object:
        opened.append(path.name)
        return genuine(path, copy)

    monkeypatch.setattr(local, "_read_stable", read_still)
    same, changed = fetched(await fetch(ask(folder), workspace, known))
    assert (same.output, same.version) == (None, known[same.source])
    assert output(changed).checksum == hashlib.sha256(b"other").hexdigest()
    assert opened == ["b.txt"]


async def test_a_file_changed_with_its_old_size_and_time_is_noticed(folder: Path, workspace: Path) -> None:
    path = write(folder / "a.txt", "one")
    [first] = fetched(await fetch(ask(folder), workspace))
    times = path.stat()
    write(path, "two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    [second] = fetched(await fetch(ask(folder), workspace, {first.source: first.version}))
    assert output(second).checksum == hashlib.sha256(b"two").hexdigest()


async def test_the_time_of_a_file_written_just_now_is_not_relied_on(folder: Path, workspace: Path) -> None:
    write(folder / "a.txt")
    [one] = fetched(await fetch(ask(folder), workspace, connector=LocalConnector()))
    assert one.version == ""


async def test_ignored_hidden_and_unread_types(folder: Path, workspace: Path) -> None:
    for name in ("keep.txt", ".hidden.txt", "node_modules/a.txt", "drafts/a.txt", "b.log", "main.rs", "Makefile"):
        write(folder / name)
    (folder / "picture.jpg").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00")
    (folder / "empty.cfg").write_bytes(b"")
    write(folder / "icon.svg", "<svg></svg>")
    write(folder / ".stepgateignore", "# not these\ndrafts/\n*.log\n")
    found = fetched(await fetch(ask(folder), workspace))
    assert {one.name: one.file_type for one in found} == {
        "keep.txt": "txt", "main.rs": "txt", "Makefile": "txt", "picture.jpg": None, "empty.cfg": None,
        "icon.svg": None,
    }  # fmt: skip


async def test_links_pipes_and_sockets_are_not_opened_and_said_to_be_left_out(tmp_path: Path, workspace: Path) -> None:
    # Unix sockets have short paths.
    folder = tmp_path / "d"
    secret = write(tmp_path / "secret/secret.txt")
    write(folder / "real.txt")
    (folder / "link.txt").symlink_to(secret)
    (folder / "linked").symlink_to(secret.parent)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    os.mkfifo(folder / ".stepgateignore")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)
        try:
            server.bind("socket.txt")
        finally:
            os.chdir(here)
        found = await fetch(ask(folder), workspace)
    assert [one.name for one in found if isinstance(one, FetchedDocument)] == ["real.txt"]
    left_out = {one.name: (one.error.message, one.gone) for one in found if isinstance(one, MissedDocument)}
    link, pipe = "it is a symbolic link, which is not followed", "it is a pipe"
    assert left_out == {
        "link.txt": (link, True),
        "linked": (link, True),
        "loop": (link, True),
        "pipe.txt": (pipe, True),
        "socket.txt": ("it is a socket", True),
    }


async def test_a_file_that_became_a_link_or_a_pipe_is_not_read(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = write(folder.parent / "secret.txt")
    link, pipe = write(folder / "link.txt"), write(folder / "pipe.txt")
    genuine = local_files.list_files

    def walk(root: Path, *, recursive: bool) -> list[object]:
        found: list[object] = list(genuine(root, recursive=recursive))
        for path in (link, pipe):
            path.unlink()
        link.symlink_to(secret)
        os.mkfifo(pipe)
        return found

    monkeypatch.setattr(local, "list_files", walk)
    found = await fetch(ask(folder), workspace)
    assert [type(one.error) for one in missed(found)] == [ConnectorError, ConnectorError]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_a_folder_without_permission_is_reported_by_the_system(folder: Path, workspace: Path) -> None:
    write(folder / "a.txt")
    write(folder / "locked/b.txt")
    (folder / "locked").chmod(0)
    try:
        found = await fetch(ask(folder), workspace)
    finally:
        (folder / "locked").chmod(0o700)
    assert [one.name for one in missed(found)] == ["locked"]


async def test_a_folder_that_cannot_be_opened_is_missed_with_all_that_is_known_in_it(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for others than root, to whom every folder opens."""
    inner = write(folder / "locked/b.txt")
    write(folder / "a.txt")
    genuine = os.scandir

    def scandir(path: Path) -> object:
        if Path(path) == inner.parent:
            raise PermissionError(13, "Permission denied", str(path))
        return genuine(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = await fetch(ask(folder), workspace, {inner.as_posix(): "1-1-1", "/elsewhere/x.txt": "2-2-2"})
    assert [one.name for one in found if isinstance(one, FetchedDocument)] == ["a.txt"]
    assert [one.source for one in missed(found)] == [inner.parent.as_posix(), inner.as_posix()]
    assert all(isinstance(one.error, ConnectorAuthError) and not one.gone for one in missed(found))


async def test_names_in_any_encoding(folder: Path, workspace: Path) -> None:
    for name in (b"gr\xfc\xdfe.txt", "grüße.txt".encode(), b"gr\\xfc\\xdfe.txt"):
        write_raw(folder, name)
    found = fetched(await fetch(ask(folder), workspace))
    assert sorted(one.name for one in found) == ["gr\\xfc\\xdfe.txt", "gr\\xfc\\xdfe.txt", "grüße.txt"]
    assert len({one.source for one in found}) == 3
    for one in found:
        one.source.encode()
        assert LocalConnector().covers(ask(folder), one.source)
    # Each can be opened by a name that is text; the last one's copy may be overwritten by the next.
    again = LocalConnector(now_ns=later).fetch(ask(folder), workspace, {})
    read = [content(one) async for one in again]
    assert sorted(read) == sorted([b"gr\xfc\xdfe.txt", "grüße.txt".encode(), b"gr\\xfc\\xdfe.txt"])


async def test_a_file_that_is_written_to_all_the_time_is_reported(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder / "log.txt")
    genuine = local._hash

    def digest(file: BufferedReader, copy: Path | None) -> tuple[str, int]:
        with path.open("a") as more:
            more.write("another line\n")
        return genuine(file, copy)

    monkeypatch.setattr(local, "_hash", digest)
    [one] = missed(await fetch(ask(folder), workspace))
    assert "being written to" in one.error.message
    assert not one.gone


async def test_a_file_that_changes_once_while_it_is_read_is_read_again(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder / "a.txt", "old")
    genuine = local._hash
    turns: list[int] = []

    def digest(file: BufferedReader, copy: Path | None) -> tuple[str, int]:
        result = genuine(file, copy)
        if not turns:
            new = write(folder.parent / "new.txt", "new")
            new.replace(path)
        turns.append(1)
        return result

    monkeypatch.setattr(local, "_hash", digest)
    [one] = fetched(await fetch(ask(folder), workspace))
    assert output(one).checksum == hashlib.sha256(b"new").hexdigest()
    assert len(turns) == 2


async def test_a_file_removed_after_the_listing_is_gone(folder: Path, workspace: Path) -> None:
    write(folder / "a.txt")
    doomed = write(folder / "b.txt")
    found = []
    async for one in LocalConnector().fetch(ask(folder), workspace, {}):
        doomed.unlink(missing_ok=True)
        found.append(one)
    [gone] = missed(found)
    assert (gone.name, gone.gone) == ("b.txt", True)


async def test_folders_deeper_than_the_stack(folder: Path, workspace: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    depth = 1100
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    try:
        [one] = fetched(await fetch(ask(folder), workspace))
    finally:
        # pytest itself cannot remove folders this deep.
        await asyncio.to_thread(subprocess.run, ["/bin/rm", "-rf", str(folder)], check=True)
    assert one.name.count("/") == depth


@pytest.mark.row("S003-44")
@pytest.mark.parametrize("name", ["nothing", "nothing/here.txt"])
async def test_a_source_that_is_not_there(folder: Path, workspace: Path, name: str) -> None:
    with pytest.raises(ConnectorNotFoundError, match="there is no file or folder"):
        await fetch(ask(folder / name), workspace)


async def test_a_loop_of_links_and_a_name_with_a_nul_are_clear_errors(folder: Path, workspace: Path) -> None:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    for source in (folder / "a", "docs\0.txt"):
        with pytest.raises(ConnectorError, match="cannot be read"):
            await fetch(ask(source), workspace)


@pytest.mark.row("S003-43")
async def test_with_roots_nothing_else_is_read(folder: Path, workspace: Path) -> None:
    outside = write(folder.parent / "outside.txt")
    write(folder / "a.txt")
    (folder / "link.txt").symlink_to(outside)
    connector = LocalConnector([folder])
    assert len(fetched(await fetch(ask(folder / "a.txt"), workspace, connector=connector))) == 1
    for source in (outside, folder / "link.txt", folder / "../outside.txt", folder.parent):
        with pytest.raises(ConnectorAuthError, match="outside the folders"):
            await fetch(ask(source), workspace, connector=connector)


async def test_many_small_files(folder: Path, workspace: Path) -> None:
    for number in range(2_000):
        (folder / f"{number}.txt").write_text(str(number))
    assert len(fetched(await fetch(ask(folder), workspace))) == 2_000
