"""Fixtures of the contract tests: a clock that stands still, and an own PostgreSQL database."""

from collections.abc import Iterator

import pytest

from tests.contract.journal_stores import Clock
from tests.support.postgres import fresh_database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_database() as address:
        yield address
