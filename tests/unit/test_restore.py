"""`stepgate restore` when a file cannot be moved: the database is back where it was, or the error names where it is.
And the files that `backup` and `restore` copy: links, and files that go meanwhile.
"""

import errno
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from agent.core.errors import ConflictError, StoreError
from agent.core.settings import Settings
from gateway.cli import backup as commands
from gateway.cli import running_gateway
from gateway.cli.backup import _replace_database
from gateway.cli.running_gateway import note_address


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The current database, which is damaged, and a saved one."""
    path, saved = tmp_path / "data" / "stepgate.db", tmp_path / "saved.db"
    path.parent.mkdir()
    path.write_text("current")
    with closing(sqlite3.connect(saved)) as database:
        database.execute("CREATE TABLE runs (id TEXT)")
    return path, saved


def refuse(monkeypatch: pytest.MonkeyPatch, method: str, refused: set[str]) -> None:
    """Lets the file system refuse to move a file to one of these names, within a folder of another name or not."""
    move = getattr(Path, method)

    def moves(self: Path, target: Path) -> Path:
        if f"{target.parent.name.partition('-')[0]}/{target.name}" in refused:
            raise OSError(errno.EIO, "Input/output error")
        return move(self, target)  # type: ignore[no-any-return]  # as the method does

    monkeypatch.setattr(Path, method, moves)


def list_files(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize(("method", "target"), [("replace", "data/stepgate.db"), ("rename", "replaced/stepgate.db")])
def test_a_move_that_fails_changes_nothing(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, method: str, target: str
) -> None:
    path, saved = files
    refuse(monkeypatch, method, {target})
    with pytest.raises(StoreError, match="Input/output error"):
        _replace_database(path, saved)
    assert list_files(path.parent) == {"stepgate.db": "current"}
    assert list(path.parent.glob("replaced-*")) == []


def test_a_database_that_cannot_be_moved_back_is_named(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, saved = files
    refuse(monkeypatch, "replace", {"data/stepgate.db"})
    refuse(monkeypatch, "rename", {"data/stepgate.db"})
    with pytest.raises(StoreError) as refused:
        _replace_database(path, saved)
    (aside,) = path.parent.glob("replaced-*")
    assert str(aside) in refused.value.message
    assert list_files(aside) == {"stepgate.db": "current"}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a database, which the commands use."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / "stepgate.db")) as database:
        database.execute("CREATE TABLE runs (id TEXT)")
    settings = Settings(_env_file=None, data_dir=folder)
    monkeypatch.setattr(commands, "load_command_settings", lambda: settings)
    return folder


def test_a_folder_with_links_is_restored_over_itself(data: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (data / "models").symlink_to(tmp_path / "disk")
    (data / "gone").symlink_to("nowhere")
    commands.backup(tmp_path / "saved")
    commands.restore(tmp_path / "saved")
    assert (data / "models").readlink() == tmp_path / "disk"
    assert (data / "gone").readlink() == Path("nowhere")


@pytest.mark.parametrize("name", ["mon#1", "done?", "50%25"])
def test_a_damaged_backup_is_refused_whatever_its_folder_is_called(data: Path, tmp_path: Path, name: str) -> None:
    commands.backup(tmp_path / name)
    (tmp_path / name / "stepgate.db").write_bytes(b"no database" * 400)
    with pytest.raises(StoreError, match="nothing was changed"):
        commands.restore(tmp_path / name)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(["data", name])


def test_what_is_only_in_the_log_of_a_backup_is_restored_too(data: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    with closing(sqlite3.connect(data / "stepgate.db", isolation_level=None)) as live:
        live.execute("PRAGMA journal_mode = WAL")
        live.execute("INSERT INTO runs VALUES ('last')")
        for part in data.glob("stepgate.db*"):  # copied by hand, as of a gateway that was killed
            shutil.copyfile(part, saved / part.name)
        live.execute("DELETE FROM runs")
    assert (saved / "stepgate.db-wal").stat().st_size > 0
    commands.restore(saved)
    with closing(sqlite3.connect(data / "stepgate.db")) as restored:
        assert restored.execute("SELECT id FROM runs").fetchall() == [("last",)]


def test_nothing_is_restored_under_a_gateway_whose_runs_are_in_postgresql(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.backup(tmp_path / "saved")
    (tmp_path / "saved" / "mcp_state.key").write_text("the earlier one")
    settings = Settings(_env_file=None, data_dir=data, database_url="postgresql://db.example/stepgate")
    monkeypatch.setattr(commands, "load_command_settings", lambda: settings)
    note_address(settings, "http://127.0.0.1:1234")
    monkeypatch.setattr(running_gateway, "is_gateway", lambda url: url == "http://127.0.0.1:1234")
    with pytest.raises(ConflictError, match="stop the gateway first"):
        commands.restore(tmp_path / "saved")
    assert not (data / "mcp_state.key").exists()
    monkeypatch.setattr(running_gateway, "is_gateway", lambda url: False)
    commands.restore(tmp_path / "saved")
    assert (data / "mcp_state.key").exists()


def test_the_data_folder_keeps_its_mode(data: Path, tmp_path: Path) -> None:
    commands.backup(tmp_path / "saved")
    (tmp_path / "saved").chmod(0o755)  # as a copy on another disk has it
    commands.restore(tmp_path / "saved")
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_file_that_goes_meanwhile_does_not_end_a_backup(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("draft.tmp", "key"):
        (data / name).write_text("x")
    copy = shutil.copyfile

    def copies(source: str, target: str, **options: bool) -> str:
        if Path(source).suffix == ".tmp":
            Path(source).unlink()
        return copy(source, target, **options)

    monkeypatch.setattr(shutil, "copyfile", copies)
    commands.backup(tmp_path / "saved")
    assert sorted(one.name for one in (tmp_path / "saved").iterdir()) == ["key", "stepgate.db"]


def test_a_folder_that_goes_meanwhile_does_not_end_a_backup(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "drafts").mkdir()
    (data / "link").symlink_to("nowhere")
    (data / "key").write_text("x")
    make = os.makedirs

    def makes(name: str, mode: int = 0o777, *, exist_ok: bool = False) -> None:  # once the entries are listed
        (data / "drafts").rmdir()
        (data / "link").unlink()
        make(name, mode, exist_ok)

    monkeypatch.setattr(os, "makedirs", makes)
    commands.backup(tmp_path / "saved")
    assert sorted(one.name for one in (tmp_path / "saved").iterdir()) == ["key", "stepgate.db"]


def test_a_file_that_cannot_be_read_ends_a_backup_with_its_name(data: Path, tmp_path: Path) -> None:
    os.mkfifo(data / "pipe")
    with pytest.raises(StoreError, match="pipe"):
        commands.backup(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
