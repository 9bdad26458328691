"""An empty file in place of a store is refused; a new folder is private, and it and a deleted file begin anew."""

from pathlib import Path

import pytest

from agent.core.errors import StoreError
from agent.storage.sqlite import open_database


async def test_an_empty_file_where_a_store_was_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    await open_database(path).close()
    for name in ("stepgate.db-wal", "stepgate.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    path.write_bytes(b"")
    with pytest.raises(StoreError, match=r"stepgate\.db is empty, but was not before: restore it"):
        open_database(path)
    assert path.stat().st_size == 0, "nothing is created over it"


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_new_folder_may_hold_an_empty_file(tmp_path: Path, is_there: bool) -> None:
    path = tmp_path / "stepgate.db"
    if is_there:
        path.touch()
    await open_database(path).close()
    assert path.stat().st_size > 0


async def test_a_new_data_folder_is_its_owners_alone_and_an_existing_one_stays(tmp_path: Path) -> None:
    for folder, mode in ((tmp_path / "new", 0o700), (tmp_path / "shared", 0o750)):
        if mode != 0o700:
            folder.mkdir(mode=mode)
        await open_database(folder / "stepgate.db").close()
        assert folder.stat().st_mode & 0o777 == mode


async def test_a_deleted_database_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    await open_database(path).close()
    path.unlink()
    await open_database(path).close()
    assert path.stat().st_size > 0
