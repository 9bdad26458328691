"""Files of a source: counted without being read, and opened beneath it and nowhere else."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.core.errors import ToolInputError
from gateway.features.documents.engine.ingest.connectors.local import LocalConnector
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorError, ConnectorNotFoundError, ParserError
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, SourceType
from gateway.features.pipeline_builder.engine.subagents import source_files
from gateway.features.pipeline_builder.engine.subagents.reading_tools import PreviewInput
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles, open_file


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


def files(root: Path, stack: AsyncExitStack) -> SourceFiles:
    request = ConnectorInput(source_type="local", source_identifier=str(root), recursive=True)
    return SourceFiles(request, LocalConnector(), root.parent / "work", stack)


def tree(folder: Path) -> Path:
    root = folder / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.TXT").write_bytes(b"12345")
    (root / "sub" / "b.pdf").write_bytes(b"x" * 2_000)
    (root / "README").write_bytes(b"")
    (folder / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(folder / "secret.txt")
    os.mkfifo(root / "pipe.txt")
    return root


async def test_everything_is_counted_but_links_and_pipes(tmp_path: Path, stack: AsyncExitStack) -> None:
    listing = await files(tree(tmp_path), stack).list_files()
    assert sorted(listing.files) == ["README", "a.TXT", "sub/b.pdf"]
    assert {ending: (one.count, one.size) for ending, one in listing.by_extension.items()} == {
        "(none)": (1, 0),
        ".txt": (1, 5),
        ".pdf": (1, 2_000),
    }
    assert (listing.total.count, listing.total.size, listing.total.smallest, listing.total.largest) == (
        3,
        2_005,
        0,
        2_000,
    )
    assert dict(listing.by_size) == {"below 1 kB": 2, "1 to 100 kB": 1}


@pytest.mark.parametrize(
    "name", ["link.txt", "pipe.txt", "../secret.txt", "/etc/passwd", "sub/../../secret.txt", "sub", "", "a.txt", "\x00"]
)
async def test_only_what_was_listed_can_be_opened(tmp_path: Path, stack: AsyncExitStack, name: str) -> None:
    there = files(tree(tmp_path), stack)
    with pytest.raises(ToolInputError, match="there is no file"):
        await there.read_bytes(name, 0, 10)
    with pytest.raises(ToolInputError, match="there is no file"):
        await there.copy_file(name)


async def test_a_link_that_takes_a_folders_place_leads_nowhere(tmp_path: Path, stack: AsyncExitStack) -> None:
    root = tree(tmp_path)
    there = files(root, stack)
    assert await there.read_bytes("sub/b.pdf", 0, 3) == b"xxx"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.pdf").write_text("secret")
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to(outside)
    for opened in (there.read_bytes("sub/b.pdf", 0, 3), there.copy_file("sub/b.pdf")):
        with pytest.raises(ToolInputError, match="cannot be opened"):
            await opened


async def test_a_pipe_that_takes_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    root = tree(tmp_path)
    with pytest.raises(OSError, match="no longer a file"):
        open_file(root, Path("pipe.txt"))


async def test_a_copy_keeps_the_bytes_and_the_ending_and_goes_with_the_stack(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        there = files(tree(tmp_path), stack)
        copy = await there.copy_file("sub/b.pdf")
        assert (copy.suffix, copy.read_bytes()) == (".pdf", b"x" * 2_000)
        assert not copy.is_relative_to(tmp_path / "root")
    assert not copy.exists()


async def test_what_is_said_of_a_copy_is_said_of_the_file(tmp_path: Path, stack: AsyncExitStack) -> None:
    there = files(tree(tmp_path), stack)
    with pytest.raises(ParserError) as raised:
        async with there.open_copy("sub/b.pdf") as copy:
            raise ParserError(f"{copy.path.name} is bad, 3{copy.path.name} and {copy.path.name}x are others")
    assert raised.value.message == "sub/b.pdf is bad, 31.pdf and 1.pdfx are others"
    assert not copy.path.exists()


async def test_too_large_a_file_is_not_copied(
    tmp_path: Path, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MAX_COPY_BYTES", 1_999)
    with pytest.raises(ToolInputError, match="more than 1,999 bytes"):
        await files(tree(tmp_path), stack).copy_file("sub/b.pdf")


async def test_all_are_counted_though_not_all_are_named(
    tmp_path: Path, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MAX_NAMED", 2)
    listing = await files(tree(tmp_path), stack).list_files()
    assert (listing.total.count, len(listing.files)) == (3, 2)


async def test_a_folder_that_is_not_there_is_an_error_of_the_source(tmp_path: Path, stack: AsyncExitStack) -> None:
    with pytest.raises(ConnectorNotFoundError):
        await files(tmp_path / "nowhere", stack).list_files()


class Shelf:
    """A connector that has so many documents of 100 bytes, one of them missed, and then breaks if `broken`."""

    source_type: SourceType = "web"

    def __init__(self, count: int, *, broken: bool = False) -> None:
        self.count = count
        self.broken = broken
        self.asked = 0

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """The same file is written over for each document, as connectors may."""
        yield MissedDocument("http://x.test/gone", "gone", ConnectorNotFoundError("gone"))
        for number in range(self.count):
            self.asked += 1
            path = workspace / "page"
            path.write_bytes(f"{number:>100}".encode())
            output = ConnectorOutput(file_path=str(path), file_size_bytes=100, source_metadata={}, checksum="c")
            yield FetchedDocument(f"http://x.test/{number}", "index", "html", output)
        if self.broken:
            raise ConnectorError("the site is down")

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Not asked here."""
        return True


def fetched(shelf: Shelf, folder: Path, stack: AsyncExitStack) -> SourceFiles:
    request = ConnectorInput(source_type="web", source_identifier="http://x.test/", recursive=True)
    return SourceFiles(request, shelf, folder / "work", stack)


async def test_a_source_of_the_net_is_fetched_once_and_kept(tmp_path: Path, stack: AsyncExitStack) -> None:
    shelf = Shelf(3)
    there = fetched(shelf, tmp_path, stack)
    listing = await there.list_files()
    assert sorted(listing.files) == ["http://x.test/1", "http://x.test/2", "index"], "one name, one file"
    assert (listing.unreadable, listing.note) == (["gone"], "")
    assert (await there.read_bytes("http://x.test/2", 0, 200)).decode().strip() == "2"
    await there.list_files()
    assert shelf.asked == 3


async def test_of_a_large_source_of_the_net_the_beginning_is_fetched_and_said(
    tmp_path: Path, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "REMOTE_FILES", 5)
    shelf = Shelf(1_000)
    listing = await fetched(shelf, tmp_path, stack).list_files()
    assert (shelf.asked, listing.total.count) == (5, 5)
    assert listing.note == "only the first 5 files were fetched; there may be more"


async def test_a_source_that_breaks_off_is_an_error(tmp_path: Path, stack: AsyncExitStack) -> None:
    with pytest.raises(ConnectorError, match="the site is down"):
        await fetched(Shelf(1, broken=True), tmp_path, stack).list_files()


def test_a_place_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(ValidationError, match="start"):
        PreviewInput(file="a.txt", start=2**70)
    assert PreviewInput(file="a.txt", start=2**40).start == 2**40
