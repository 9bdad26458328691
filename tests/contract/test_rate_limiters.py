"""Meters, held to the contract in this process and in a real Redis; and what holds while Redis is down."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from agent.core.errors import ConfigError, StoreError
from gateway.access.rate_limiter import LOCAL_FALLBACK_SECONDS, FallbackRateLimiter, LocalRateLimiter
from gateway.access.rate_limiter_redis import RedisRateLimiter
from tests.contract.ephemeral_contract import Pass
from tests.contract.journal_stores import Clock
from tests.contract.rate_limiter_contract import MetersContract
from tests.support.redis_server import URL, keys, own_prefix

NOWHERE = "redis://:geheim@127.0.0.1:1/0"


class TestLocal(MetersContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def rate_limiter(self, clock: Clock) -> AsyncIterator[LocalRateLimiter]:
        rate_limiter = LocalRateLimiter(clock)
        yield rate_limiter
        await rate_limiter.aclose()

    @pytest.fixture
    def pass_time(self, clock: Clock) -> Pass:
        async def move(seconds: float) -> None:
            clock.now += seconds

        return move

    async def test_a_place_that_is_kept_for_days_takes_no_room(
        self, rate_limiter: LocalRateLimiter, clock: Clock
    ) -> None:
        await rate_limiter.acquire("m", "a", 1, limit=1, seconds=15)
        for _ in range(1_000):
            clock.now += 5
            await rate_limiter.replace("m", "a", 1, 1, seconds=15)
        assert len(rate_limiter._windows["m"].ends) < 10
        await rate_limiter.replace("m", "a", 1, 0)
        assert not rate_limiter._windows


class TestRedis(MetersContract):
    @pytest.fixture
    def prefix(self) -> Iterator[str]:
        with own_prefix() as prefix:
            yield prefix

    @pytest.fixture
    async def rate_limiter(self, prefix: str) -> AsyncIterator[RedisRateLimiter]:
        rate_limiter = RedisRateLimiter(URL, prefix)
        yield rate_limiter
        await rate_limiter.aclose()

    @pytest.fixture
    def pass_time(self) -> Pass:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)  # the server's clock cannot be moved

        return wait

    async def test_what_one_process_takes_another_finds_taken(
        self, rate_limiter: RedisRateLimiter, prefix: str
    ) -> None:
        other = RedisRateLimiter(URL, prefix)
        await rate_limiter.acquire("m", "a", 2, limit=3, seconds=60)
        assert not (await other.acquire("m", "b", 2, limit=3, seconds=60)).is_allowed
        assert keys(prefix) == [f"{prefix}:meter:m"]
        await other.aclose()

    async def test_a_meter_goes_with_its_last_entry(self, rate_limiter: RedisRateLimiter, prefix: str) -> None:
        await rate_limiter.acquire("m", "a", 1, limit=3, seconds=0.1)
        await rate_limiter.acquire("n", "a", 1, limit=3, seconds=60)
        await rate_limiter.replace("n", "a", 1, 0)
        async with asyncio.timeout(10):
            while keys(prefix):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.05)


async def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    rate_limiter = RedisRateLimiter(NOWHERE)
    for action in (
        rate_limiter.acquire("m", "a", 1, limit=1, seconds=1),
        rate_limiter.read("m", 1),
        rate_limiter.replace("m", "a", 1, 0),
    ):
        with pytest.raises(StoreError, match="AGENT_REDIS_URL") as told:
            await action
        assert "geheim" not in told.value.message
    await rate_limiter.aclose()
    with pytest.raises(ConfigError, match="AGENT_REDIS_URL"):
        RedisRateLimiter("http://127.0.0.1")


async def test_without_its_server_each_process_counts_alone(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    rate_limiter = FallbackRateLimiter(RedisRateLimiter(NOWHERE), LocalRateLimiter(clock), clock)
    with caplog.at_level(logging.WARNING):
        taken = [(await rate_limiter.acquire("m", str(i), 1, limit=2, seconds=60)).is_allowed for i in range(3)]
        assert (await rate_limiter.read("m", 2)).remaining == 0
        await rate_limiter.replace("m", "0", 1, 0)
        assert (await rate_limiter.read("m", 2)).remaining == 1
    assert taken == [True, True, False]
    assert len(caplog.records) == 1, "told once, and not asked again for a while"
    await rate_limiter.aclose()


async def test_a_server_that_is_back_counts_again() -> None:
    clock = Clock()
    with own_prefix() as prefix:
        shared = RedisRateLimiter(URL, prefix)
        rate_limiter = FallbackRateLimiter(shared, LocalRateLimiter(clock), clock)
        rate_limiter._fall_back(StoreError("gone"))
        assert (await rate_limiter.acquire("m", "call", 2, limit=2, seconds=60)).is_allowed
        clock.now += LOCAL_FALLBACK_SECONDS
        assert (await rate_limiter.read("m", 2)).remaining == 2, "the server has not heard of it"
        await rate_limiter.replace("m", "call", 2, 1, seconds=60)
        assert (await shared.read("m", 2)).remaining == 1
        rate_limiter._fall_back(StoreError("gone again"))
        assert (await rate_limiter.read("m", 2)).remaining == 2, "what was taken alone was given back"
        await rate_limiter.aclose()
