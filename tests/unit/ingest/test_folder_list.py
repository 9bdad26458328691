"""The folders that a person may pick: never outside the file roots, never hidden, and bounded."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest import folder_list
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorNotFoundError
from gateway.features.documents.engine.ingest.folder_list import list_folders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("files/Zoo", "files/apple/inner", "files/.git", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "files" / "one.txt").write_text("1")
    (tmp_path / "files" / ".env").write_text("secret")
    (tmp_path / "files" / "link").symlink_to(tmp_path / "outside")
    return tmp_path / "files"


def test_folders_are_listed_level_by_level(root: Path) -> None:
    top = list_folders(None, [root, root, root.parent / "missing"])
    assert [(one.name, one.path) for one in top.folders] == [("files", str(root))]
    inside = list_folders(str(root), [root])
    assert [one.name for one in inside.folders] == ["apple", "Zoo"], "no hidden folder, no link"
    assert (inside.parent, inside.files, inside.is_cut) == (None, 1, False)
    assert list_folders(str(root / "apple"), [root]).parent == str(root)
    assert list_folders("apple", [root]).path == str(root / "apple"), "relative to a root"


@pytest.mark.parametrize("path", ["/", "/etc", "{root}/..", "{root}/../outside"])
def test_nothing_outside_the_roots_is_listed(root: Path, path: str) -> None:
    with pytest.raises(ConnectorAuthError):
        list_folders(path.format(root=root), [root])


@pytest.mark.parametrize("path", ["{root}/link", "{root}/none", "{root}/one.txt", "a\0b", "x" * 5000, "../outside"])
def test_what_is_not_a_folder_there_is_refused(root: Path, path: str) -> None:
    with pytest.raises(ConnectorNotFoundError):
        list_folders(path.format(root=root), [root])


def test_a_huge_folder_is_cut_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_list, "MAX_FOLDERS", 1)
    found = list_folders(str(root), [root])
    assert ([one.name for one in found.folders], found.is_cut) == (["apple"], True)
    monkeypatch.setattr(folder_list, "MAX_ENTRIES", 2)
    assert list_folders(str(root), [root]).is_cut
