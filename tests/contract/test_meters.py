"""Meters, held to the contract in this process and in a real Redis; and what holds while Redis is down."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from agent.core.errors import ConfigError, StoreError
from gateway.meters import ALONE_SECONDS, LocalMeters, SharedMeters
from gateway.meters_redis import RedisMeters
from tests.contract.ephemeral_contract import Pass
from tests.contract.journal_stores import Clock
from tests.contract.meters_contract import MetersContract
from tests.support.redis_server import URL, keys, own_prefix

NOWHERE = "redis://:geheim@127.0.0.1:1/0"


class TestLocal(MetersContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def meters(self, clock: Clock) -> AsyncIterator[LocalMeters]:
        meters = LocalMeters(clock)
        yield meters
        await meters.aclose()

    @pytest.fixture
    def pass_time(self, clock: Clock) -> Pass:
        async def move(seconds: float) -> None:
            clock.now += seconds

        return move

    async def test_a_place_that_is_kept_for_days_takes_no_room(self, meters: LocalMeters, clock: Clock) -> None:
        await meters.take("m", "a", 1, limit=1, seconds=15)
        for _ in range(1_000):
            clock.now += 5
            await meters.replace("m", "a", 1, 1, seconds=15)
        assert len(meters._meters["m"].ends) < 10
        await meters.replace("m", "a", 1, 0)
        assert not meters._meters


class TestRedis(MetersContract):
    @pytest.fixture
    def prefix(self) -> Iterator[str]:
        with own_prefix() as prefix:
            yield prefix

    @pytest.fixture
    async def meters(self, prefix: str) -> AsyncIterator[RedisMeters]:
        meters = RedisMeters(URL, prefix)
        yield meters
        await meters.aclose()

    @pytest.fixture
    def pass_time(self) -> Pass:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)  # the server's clock cannot be moved

        return wait

    async def test_what_one_process_takes_another_finds_taken(self, meters: RedisMeters, prefix: str) -> None:
        other = RedisMeters(URL, prefix)
        await meters.take("m", "a", 2, limit=3, seconds=60)
        assert not (await other.take("m", "b", 2, limit=3, seconds=60)).taken
        assert keys(prefix) == [f"{prefix}:meter:m"]
        await other.aclose()

    async def test_a_meter_goes_with_its_last_entry(self, meters: RedisMeters, prefix: str) -> None:
        await meters.take("m", "a", 1, limit=3, seconds=0.1)
        await meters.take("n", "a", 1, limit=3, seconds=60)
        await meters.replace("n", "a", 1, 0)
        async with asyncio.timeout(10):
            while keys(prefix):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.05)


async def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    meters = RedisMeters(NOWHERE)
    for action in (meters.take("m", "a", 1, limit=1, seconds=1), meters.look("m", 1), meters.replace("m", "a", 1, 0)):
        with pytest.raises(StoreError, match="AGENT_REDIS_URL") as told:
            await action
        assert "geheim" not in told.value.message
    await meters.aclose()
    with pytest.raises(ConfigError, match="AGENT_REDIS_URL"):
        RedisMeters("http://127.0.0.1")


async def test_without_its_server_each_process_counts_alone(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    meters = SharedMeters(RedisMeters(NOWHERE), LocalMeters(clock), clock)
    with caplog.at_level(logging.WARNING):
        taken = [(await meters.take("m", str(i), 1, limit=2, seconds=60)).taken for i in range(3)]
        assert (await meters.look("m", 2)).left == 0
        await meters.replace("m", "0", 1, 0)
        assert (await meters.look("m", 2)).left == 1
    assert taken == [True, True, False]
    assert len(caplog.records) == 1, "told once, and not asked again for a while"
    await meters.aclose()


async def test_a_server_that_is_back_counts_again() -> None:
    clock = Clock()
    with own_prefix() as prefix:
        shared = RedisMeters(URL, prefix)
        meters = SharedMeters(shared, LocalMeters(clock), clock)
        meters._left_alone(StoreError("gone"))
        assert (await meters.take("m", "call", 2, limit=2, seconds=60)).taken
        clock.now += ALONE_SECONDS
        assert (await meters.look("m", 2)).left == 2, "the server has not heard of it"
        await meters.replace("m", "call", 2, 1, seconds=60)
        assert (await shared.look("m", 2)).left == 1
        meters._left_alone(StoreError("gone again"))
        assert (await meters.look("m", 2)).left == 2, "what was taken alone was given back"
        await meters.aclose()
