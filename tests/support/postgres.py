"""A PostgreSQL server for tests, where there is one: an empty database for each test, dropped after it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

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
