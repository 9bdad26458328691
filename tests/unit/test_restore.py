"""`stepgate restore` when a file cannot be moved: the database is back where it was, or the error names where it is."""

import errno
from pathlib import Path

import pytest

from agent.core.errors import StoreError
from gateway.cli.backup import _replace_database


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The current database, which is damaged, and a saved one."""
    path, saved = tmp_path / "data" / "stepgate.db", tmp_path / "saved.db"
    path.parent.mkdir()
    path.write_text("current")
    saved.write_text("saved")
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
