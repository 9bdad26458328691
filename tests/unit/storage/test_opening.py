"""Opening a data folder: new, used, newer, older, foreign, unusable, and by several processes at once."""

import inspect
import sqlite3
import sys
from pathlib import Path

import pytest

from agent.core.errors import StoreError, StoreNewerError
from agent.storage import sqlite
from agent.storage.migrations import HEAD
from agent.storage.sqlite import open_database, to_store_error
from tests.support.processes import start

OPEN = """
import asyncio, pathlib, sys
from agent.storage.sqlite import open_database
database = open_database(pathlib.Path(sys.argv[1]))
asyncio.run(database.close())
print("loaded:", sorted({"alembic", "sqlalchemy"} & set(sys.modules)))
"""

FULL = """
import pathlib, resource, signal, sys
from agent.core.errors import StoreError
from agent.storage.sqlite import open_database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    open_database(pathlib.Path(sys.argv[1]))
except StoreError as error:
    print(error.message)
"""


def revision(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
    finally:
        connection.close()


def execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()


async def test_a_fresh_folder_is_made_and_migrated(tmp_path: Path) -> None:
    path = tmp_path / "100% new #1?" / "inner" / "stepgate.db"
    await open_database(path).close()
    assert revision(path) == HEAD
    assert [file.name for file in path.parent.iterdir()] == [".stepgate.db.created", "stepgate.db"]


@pytest.mark.row("S004-12")
async def test_a_file_without_a_byte_is_made_a_database(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    path.touch()
    await open_database(path).close()
    assert revision(path) == HEAD


async def test_an_open_database_is_in_wal_mode_with_foreign_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_configure", inspect.unwrap(sqlite._configure))  # as outside of tests
    database = open_database(tmp_path / "stepgate.db")
    found = await database.read(
        lambda db: [
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    )
    await database.close()
    assert found == ["wal", 1, 1]


def test_processes_that_open_a_fresh_folder_at_once_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "data" / "stepgate.db"
    processes = [start([sys.executable, "-c", OPEN, str(path)]) for _ in range(3)]
    assert [(process.wait(), process.output[-1][:7]) for process in processes] == [(0, "loaded:")] * 3
    assert revision(path) == HEAD


async def test_a_start_on_an_up_to_date_folder_loads_no_migration_tool(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    await open_database(path).close()
    process = start([sys.executable, "-c", OPEN, str(path)])
    assert process.wait() == 0
    assert process.output == ["loaded: []"]


async def test_a_folder_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    await open_database(path).close()
    execute(path, "UPDATE alembic_version SET version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(StoreNewerError) as caught:
        open_database(path)
    assert str(tmp_path) in caught.value.message
    assert "9999" in caught.value.message
    assert "AGENT_DATA_DIR" in caught.value.message
    assert "\n" not in caught.value.message
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreError, match=r"not a SQLite database.*AGENT_DATA_DIR"):
        open_database(path)
    assert path.read_bytes().startswith(b"this is no database")


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    execute(path, "CREATE TABLE turns (anything TEXT)")
    with pytest.raises(StoreError, match="another program"):
        open_database(path)
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    connection.close()
    assert tables == [("turns",)]  # half a schema would be refused for ever


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"data folder .*file.* cannot be created: .*AGENT_DATA_DIR"):
        open_database(tmp_path / "file" / "data" / "stepgate.db")


def test_a_folder_on_a_full_disk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    process = start([sys.executable, "-c", FULL, str(path)])
    assert process.wait() == 0
    assert f"the disk of {tmp_path}" in process.output[-1]


def test_a_path_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "stepgate.db").mkdir()
    with pytest.raises(StoreError, match=r"cannot be written.*owner and mode"):
        open_database(tmp_path / "stepgate.db")


async def test_a_database_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stepgate.db"
    await open_database(path).close()
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("DELETE FROM blobs")
    connection.close()
    assert "cannot be written" in to_store_error(caught.value, path).message


def test_the_folder_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    open_database(tmp_path / "data" / "stepgate.db")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
