"""A website on this machine, and a client that may go there."""

from collections.abc import AsyncIterator

import pytest

from agent.net import SafeClient
from tests.support.website import Website


@pytest.fixture
async def site() -> AsyncIterator[Website]:
    async with Website() as site:
        yield site


@pytest.fixture
async def client(site: Website) -> AsyncIterator[SafeClient]:
    client = site.client()
    yield client
    await client.aclose()
