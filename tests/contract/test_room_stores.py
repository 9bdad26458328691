"""The store of rooms tested against its contract: files, and PostgreSQL."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agent.core.errors import StoreError
from agent.storage.journal_postgres import open_postgres
from gateway.features.studio.engine.room_database import MAX_REVISIONS, PostgresRoomStore
from gateway.features.studio.engine.room_files import FileRoomStore
from gateway.features.studio.engine.room_store import RoomStore
from tests.contract.rooms_contract import OLD, RoomStoreContract, accept
from tests.support.processes import ROOT

KILLED_IN_ITS_CHECK = """
import os, signal, sys
from gateway.features.studio.engine.room_database import PostgresRoomStore

calls = []

def check(text):
    calls.append(text)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

PostgresRoomStore(sys.argv[1]).edit("old", lambda _: "name: New\\n", check, version=None, managed=False)
"""


class TestFiles(RoomStoreContract):
    @pytest.fixture
    def stores(self, tmp_path: Path) -> tuple[RoomStore, RoomStore]:
        one, other = (FileRoomStore(tmp_path / "rooms", tmp_path / "data" / "managed_rooms.json") for _ in range(2))
        (tmp_path / "rooms").mkdir()
        return one, other


async def _create_tables(url: str) -> None:
    await (await open_postgres(url)).close()


class TestPostgres(RoomStoreContract):
    @pytest.fixture
    def stores(self, url: str) -> Iterator[tuple[RoomStore, RoomStore]]:
        asyncio.run(_create_tables(url))
        one, other = PostgresRoomStore(url), PostgresRoomStore(url)
        yield one, other
        one.close()
        other.close()

    @pytest.mark.parametrize("number", [1, 2])
    def test_a_process_that_is_killed_in_a_change_leaves_the_old_room(
        self, stores: tuple[RoomStore, RoomStore], url: str, number: int
    ) -> None:
        created = stores[0].create("old", OLD, accept)
        ended = subprocess.run(
            [sys.executable, "-c", KILLED_IN_ITS_CHECK, url, str(number)],
            check=False,
            cwd=ROOT,
            env=dict(os.environ),
            timeout=60,
        )
        assert ended.returncode == -signal.SIGKILL
        assert stores[0].read("old") == created
        assert stores[1].edit("old", lambda text: text, accept, version=created.version) == created, "no lock is left"

    def test_a_lost_connection_is_made_again(self, stores: tuple[RoomStore, RoomStore], url: str) -> None:
        created = stores[0].create("old", OLD, accept)
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert stores[0].read("old") == created

    def test_the_oldest_revisions_are_dropped(self, stores: tuple[RoomStore, RoomStore], url: str) -> None:
        stores[0].create("old", b"name: x\n", accept)
        for _ in range(MAX_REVISIONS + 2):
            stores[0].edit("old", lambda text: f"{text}#\n", accept, version=None)
        with psycopg.connect(url) as admin:
            row = admin.execute("SELECT count(*), max(revision) FROM room_versions").fetchone()
        assert row == (MAX_REVISIONS, MAX_REVISIONS + 3)

    def test_a_database_that_is_gone_is_an_error_that_changes_nothing(self) -> None:
        store = PostgresRoomStore("postgresql://postgres@127.0.0.1:1/none")
        assert store.list_stamps() is None
        with pytest.raises(StoreError, match="cannot be read or written"):
            store.read("old")
