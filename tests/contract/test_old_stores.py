"""A store of revision 0012, tested against the contract on SQLite and PostgreSQL."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from agent.core.errors import StoreError
from agent.core.settings import Settings
from agent.storage.journal import Journal
from agent.storage.journal_postgres import PostgresStore, open_postgres
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.migrate import create_postgres_engine
from agent.storage.migrations import HEAD
from agent.storage.sql import PostgresClient, SqlClient, SqliteClient
from agent.storage.tables import metadata
from tests.contract.old_store_contract import OldStoreContract
from tests.support.old_store import REVISION, load_postgres, write_sqlite
from tests.support.postgres import fresh_database


class TestSqlite(OldStoreContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return write_sqlite(tmp_path / "data" / "stepgate.db")

    @pytest.fixture
    def settings(self, path: Path) -> Settings:
        return Settings(_env_file=None, data_dir=path.parent, skills_dirs=())

    @pytest.fixture
    async def store(self, path: Path) -> AsyncIterator[SqliteStore]:
        store = await open_sqlite(path)
        yield store
        await store.close()

    @pytest.fixture
    def journal(self, store: SqliteStore) -> Journal:
        return store.journal

    @pytest.fixture
    def client(self, store: SqliteStore) -> SqlClient:
        return SqliteClient(store.database)

    async def test_it_is_stamped_and_its_tables_are_those_of_a_new_store(self, path: Path, tmp_path: Path) -> None:
        await (await open_sqlite(path)).close()
        await (await open_sqlite(tmp_path / "new.db")).close()
        assert read_definitions(path) == read_definitions(tmp_path / "new.db")
        assert read_revision(path) == HEAD
        await (await open_sqlite(path)).close()
        assert read_revision(path) == HEAD, "and once only"

    @pytest.mark.parametrize("revision", ["0001", "0011"])
    async def test_an_older_one_is_refused_and_left_alone(self, path: Path, revision: str) -> None:
        connection = sqlite3.connect(path)
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()
        connection.close()
        before = read_definitions(path)
        with pytest.raises(StoreError, match=f"schema {revision} .* open it once with the previous release") as caught:
            await open_sqlite(path)
        assert str(path.parent) in caught.value.message
        assert (read_revision(path), read_definitions(path)) == (revision, before)


class TestPostgres(OldStoreContract):
    @pytest.fixture
    def url(self, empty_url: str) -> str:
        load_postgres(empty_url)
        return empty_url

    @pytest.fixture
    def settings(self, url: str, tmp_path: Path) -> Settings:
        return Settings(_env_file=None, data_dir=tmp_path, database_url=url, skills_dirs=())

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[PostgresStore]:
        store = await open_postgres(url)
        yield store
        await store.close()

    @pytest.fixture
    def journal(self, store: PostgresStore) -> Journal:
        return store.journal

    @pytest.fixture
    def client(self, store: PostgresStore) -> SqlClient:
        return PostgresClient(store.database)

    async def test_it_is_stamped_and_its_tables_are_those_of_a_new_store(self, url: str) -> None:
        await (await open_postgres(url)).close()
        engine = create_postgres_engine(url)
        with engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        engine.dispose()
        with fresh_database() as new:
            await (await open_postgres(new)).close()
            assert read_postgres(url) == read_postgres(new)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]

    async def test_an_older_one_is_refused(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0011'")
        with pytest.raises(StoreError, match=r"schema 0011 .* open it once with the previous release"):
            await open_postgres(url)


def test_the_stored_files_are_of_the_last_revision_before_the_squash(tmp_path: Path) -> None:
    assert read_revision(write_sqlite(tmp_path / "stepgate.db")) == REVISION


def read_revision(path: Path) -> str:
    connection = sqlite3.connect(path)
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    return str(revision)


def read_definitions(path: Path) -> dict[str, str]:
    """The SQL of every table, index and trigger, but for its white space."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: "".join(sql.split()) for name, sql in rows}


def read_postgres(url: str) -> list[tuple[object, ...]]:
    """Every column with its type, every index, constraint and trigger with its definition."""
    queries = (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = 'public'",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace",
        "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    )
    with psycopg.connect(url) as connection:
        found = [sorted(connection.execute(query).fetchall(), key=str) for query in queries]
    return [tuple(rows) for rows in found]
