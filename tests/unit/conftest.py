"""A website on this machine, and a client that may go there; files are read by workers that begin warm."""

from collections.abc import AsyncIterator

import pytest

from agent.net import SafeClient
from tests.integration.conftest import warm_parsers
from tests.support.website import Website

__all__ = ["warm_parsers"]


@pytest.fixture
async def site() -> AsyncIterator[Website]:
    async with Website() as site:
        yield site


@pytest.fixture
async def client(site: Website) -> AsyncIterator[SafeClient]:
    client = site.client()
    yield client
    await client.aclose()
