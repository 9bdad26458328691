"""A PostgreSQL server for tests, where there is one: an empty database for each test, dropped after it, or one with our
tables that the tests of a process share one after another, emptied between them."""

import asyncio
import atexit
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
        UNION ALL SELECT concat_ws(' ', t.tgname, t.tgenabled) FROM pg_trigger t
        UNION ALL SELECT d.description FROM pg_description d JOIN pg_class k ON k.oid = d.objoid
            WHERE k.relnamespace = 'public'::regnamespace
        UNION ALL SELECT e.extname FROM pg_extension e
        UNION ALL SELECT s.setconfig::text FROM pg_db_role_setting s
    ) AS shape (line)
"""
"""One text for all that a test may have changed but rows."""
_EMPTY = """
    DO $$
    DECLARE one record; has_rows boolean; filled text[] := '{}';
    BEGIN
        FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN (KEPT) LOOP
            EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', one.tablename) INTO has_rows;
            IF has_rows THEN filled := filled || quote_ident(one.tablename); END IF;
        END LOOP;
        SET LOCAL session_replication_role = replica;  -- no order of foreign keys
        FOR n IN 1 .. cardinality(filled) LOOP EXECUTE 'DELETE FROM ' || filled[n]; END LOOP;
        PERFORM setval(format('%I', sequencename), 1, false) FROM pg_sequences WHERE schemaname = 'public';
    END $$
"""


Preparation = Callable[[str], Awaitable[None]]
"""Makes further tables in the database of a URL. A function of a module: what it has made is shared."""


class _KeptDatabase:
    """A database with our tables and those of a preparation, whose own rows stay."""

    def __init__(self, prepare: Preparation | None) -> None:
        self._stack = ExitStack()
        self.url = self._stack.enter_context(fresh_database())
        atexit.register(self.drop)
        create_tables(create_postgres_engine(self.url))
        if prepare is not None:
            with ThreadPoolExecutor(1) as thread:  # the loop of the tests is this thread's
                thread.submit(lambda: asyncio.run(prepare(self.url))).result()  # type: ignore[arg-type]
        with psycopg.connect(self.url) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            self._filled = [str(name) for (name,) in tables if self._read_rows(connection, str(name))]
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
            connection.execute(_EMPTY.replace("KEPT", ", ".join(f"'{name}'" for name in self._filled)).encode())
        return True

    def _read_shape(self) -> object:
        with psycopg.connect(self.url) as connection:
            shape = connection.execute(_SHAPE).fetchone()
            return shape, [self._read_rows(connection, name) for name in self._filled]

    @staticmethod
    def _read_rows(connection: psycopg.Connection, table: str) -> list[str]:
        return sorted(map(str, connection.execute(f'SELECT * FROM "{table}"'.encode()).fetchall()))


_kept: dict[Preparation | None, list[_KeptDatabase]] = {}


@contextmanager
def database_with_tables(prepare: Preparation | None = None) -> Iterator[str]:
    """The URL of a database with our tables and those that `prepare` makes, without rows. To make one takes half a
    second of waiting for the disk, and to drop it as much: the next test of this process gets the same."""
    unused = _kept.setdefault(prepare, [])
    kept = unused.pop() if unused else _KeptDatabase(prepare)
    try:
        yield kept.url
    finally:
        try:
            is_empty = kept.empty()
        except psycopg.Error:
            is_empty = False
        if is_empty:
            unused.append(kept)
        else:
            kept.drop()
