"""Files that are replaced as a whole."""

import os
from pathlib import Path

import pytest

from agent.core.atomic_write import write_atomically


def test_a_new_file_is_its_owners_and_a_known_one_keeps_its_permissions(tmp_path: Path) -> None:
    new, shared = tmp_path / "folder" / "new.json", tmp_path / "shared.json"
    shared.write_text("old")
    shared.chmod(0o640)
    write_atomically(new, "å")
    write_atomically(shared, b"other")
    assert (new.read_text("utf-8"), shared.read_bytes()) == ("å", b"other")
    assert (new.stat().st_mode & 0o777, shared.stat().st_mode & 0o777) == (0o600, 0o640)
    write_atomically(shared, "secret", mode=0o600)
    assert shared.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_write_that_fails_leaves_the_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.json"
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["list.json"]
