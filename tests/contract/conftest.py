"""Fixtures of the contract tests: a clock that stands still, and a PostgreSQL database."""

from collections.abc import Iterator

import pytest

from tests.contract.journal_stores import Clock
from tests.support.postgres import database_with_tables, fresh_database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def url() -> Iterator[str]:
    """A database with our tables."""
    with database_with_tables() as address:
        yield address


@pytest.fixture
def empty_url() -> Iterator[str]:
    """A database without any."""
    with fresh_database() as address:
        yield address
