"""The TTL stores tested against their contract: in this process and in a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from agent.core.errors import ConfigError, StoreError
from agent.storage.ttl_store import LocalTtlStore
from agent.storage.ttl_store_redis import RedisTtlStore
from tests.contract.ephemeral_contract import Pass, TtlStoreContract
from tests.contract.journal_stores import Clock
from tests.support.redis_server import URL, keys, own_prefix


class TestLocal(TtlStoreContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def ephemeral(self, clock: Clock) -> AsyncIterator[LocalTtlStore]:
        store = LocalTtlStore(clock)
        yield store
        await store.aclose()

    @pytest.fixture
    def pass_time(self, clock: Clock) -> Pass:
        async def move(seconds: float) -> None:
            clock.now += seconds

        return move

    async def test_what_has_expired_takes_no_room_for_ever(self, ephemeral: LocalTtlStore, clock: Clock) -> None:
        for number in range(2_000):
            clock.now += 1
            await ephemeral.increment(f"c{number}", 1.0)
        assert len(ephemeral._entries) < 600


class TestRedis(TtlStoreContract):
    @pytest.fixture
    def prefix(self) -> Iterator[str]:
        with own_prefix() as prefix:
            yield prefix

    @pytest.fixture
    async def ephemeral(self, prefix: str) -> AsyncIterator[RedisTtlStore]:
        store = RedisTtlStore(URL, prefix)
        yield store
        await store.aclose()

    @pytest.fixture
    def pass_time(self) -> Pass:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)  # the server's clock cannot be moved

        return wait

    async def test_keys_are_of_its_prefix_and_end_by_themselves(self, ephemeral: RedisTtlStore, prefix: str) -> None:
        await ephemeral.append("a", "1", ttl_s=60, most=9)
        await ephemeral.increment("c", 60)
        assert await ephemeral.acquire("l", "t", 60)
        assert keys(prefix) == [f"{prefix}:a", f"{prefix}:c", f"{prefix}:l"]


async def test_a_redis_that_is_not_there_is_told_without_its_password() -> None:
    store = RedisTtlStore("redis://:geheim@127.0.0.1:1/0")
    actions = [
        store.append("a", "1", ttl_s=1, most=1),
        store.list_values("a"),
        store.touch("a", 1),
        store.delete("a"),
        store.acquire("a", "t", 1),
        store.release("a", "t"),
        store.increment("a", 1),
        store.describe_location(),
    ]
    for action in actions:
        with pytest.raises(StoreError, match=r"127\.0\.0\.1:1 cannot be used.*AGENT_REDIS_URL") as told:
            await action
        assert "geheim" not in told.value.message
    await store.aclose()


def test_an_address_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="AGENT_REDIS_URL"):
        RedisTtlStore("http://127.0.0.1")
