"""A PostgreSQL server for tests, where there is one: an empty database for each test, dropped after it, or one with our
tables that the tests of a process share one after another, emptied between them."""

import atexit
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from agent.storage.migrate import create_postgres_engine, create_tables

ADMIN = os.environ.get("STEPGATE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
"""Who may make databases; set STEPGATE_TEST_POSTGRES to use another server."""


def absent() -> str | None:
    """Why PostgreSQL cannot be tested here, or None."""
    try:
        psycopg.connect(ADMIN, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return f"no PostgreSQL at {ADMIN}: {' '.join(str(error).split())[:120]}"
    return None


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of an empty database. Skips the test, with the reason, where there is no server."""
    reason = absent()
    if reason is not None:
        pytest.skip(reason)
    name = f"stepgate_test_{secrets.token_hex(6)}"
    with psycopg.connect(ADMIN, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{ADMIN.rsplit('/', 1)[0]}/{name}"
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


_SHAPE = """
    SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
        SELECT concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull, pg_get_indexdef(i.indexrelid))
        FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indexrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace
        UNION ALL SELECT concat_ws(' ', proname, prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        UNION ALL SELECT t.tgname FROM pg_trigger t
        UNION ALL SELECT e.extname FROM pg_extension e
        UNION ALL SELECT s.setconfig::text FROM pg_db_role_setting s
        UNION ALL SELECT version_num FROM alembic_version
    ) AS shape (line)
"""
"""One text for all that a test may have changed but rows."""
_EMPTY = """
    DO $$
    DECLARE one record; has_rows boolean; filled text[] := '{}';
    BEGIN
        FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
            EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', one.tablename) INTO has_rows;
            IF has_rows THEN filled := filled || quote_ident(one.tablename); END IF;
        END LOOP;
        SET LOCAL session_replication_role = replica;  -- no order of foreign keys
        FOR n IN 1 .. cardinality(filled) LOOP EXECUTE 'DELETE FROM ' || filled[n]; END LOOP;
        PERFORM setval(format('%I', sequencename), 1, false) FROM pg_sequences WHERE schemaname = 'public';
    END $$
"""


class _KeptDatabase:
    """A database with our tables."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.url = self._stack.enter_context(fresh_database())
        atexit.register(self.drop)
        create_tables(create_postgres_engine(self.url))
        self._shape = self._read_shape()

    def drop(self) -> None:
        """Drops it."""
        self._stack.close()
        atexit.unregister(self.drop)

    def empty(self) -> bool:
        """Ends its connections and deletes its rows. False where more than rows was changed: then it is of no use."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if self._read_shape() != self._shape:
                return False
            connection.execute(_EMPTY)
        return True

    def _read_shape(self) -> object:
        with psycopg.connect(self.url) as connection:
            return connection.execute(_SHAPE).fetchone()


_kept: list[_KeptDatabase] = []


@contextmanager
def database_with_tables() -> Iterator[str]:
    """The URL of a database with our tables, without rows. To make one takes half a second of waiting for the disk, and
    to drop it as much: the next test of this process gets the same."""
    kept = _kept.pop() if _kept else _KeptDatabase()
    try:
        yield kept.url
    finally:
        try:
            is_empty = kept.empty()
        except psycopg.Error:
            is_empty = False
        if is_empty:
            _kept.append(kept)
        else:
            kept.drop()
