"""What every implementation of `RateLimiter` does."""

import asyncio

from gateway.access.rate_limiter import RateLimiter
from tests.contract.ephemeral_contract import Pass


class MetersContract:
    """Subclasses give the fixtures `rate_limiter` and `pass_time`."""

    async def test_as_much_is_taken_as_the_limit_allows(self, rate_limiter: RateLimiter) -> None:
        first = await rate_limiter.acquire("m", "a", 3, limit=5, seconds=60)
        second = await rate_limiter.acquire("m", "b", 2, limit=5, seconds=60)
        third = await rate_limiter.acquire("m", "c", 1, limit=5, seconds=60)
        assert [reading.is_allowed for reading in (first, second, third)] == [True, True, False]
        assert [reading.remaining for reading in (first, second, third)] == [2, 0, 0]
        assert all(50 < reading.reset_seconds <= 60 for reading in (first, second, third))
        assert (await rate_limiter.acquire("other", "c", 5, limit=5, seconds=60)).is_allowed

    async def test_what_has_ended_counts_no_more(self, rate_limiter: RateLimiter, pass_time: Pass) -> None:
        await rate_limiter.acquire("m", "a", 2, limit=3, seconds=2)
        await rate_limiter.acquire("m", "b", 1, limit=3, seconds=60)
        full = await rate_limiter.acquire("m", "c", 2, limit=3, seconds=60)
        assert not full.is_allowed
        assert 0 < full.reset_seconds < 2.1, "then `a` ends, and there is room for `c`"
        assert (await rate_limiter.acquire("m", "c", 3, limit=3, seconds=60)).reset_seconds > 50, (
            "and for this once `b` has too"
        )
        await pass_time(2.1)
        assert (await rate_limiter.acquire("m", "c", 2, limit=3, seconds=60)).is_allowed

    async def test_an_amount_is_replaced_whatever_the_limit(self, rate_limiter: RateLimiter) -> None:
        await rate_limiter.acquire("m", "a", 4, limit=5, seconds=60)
        await rate_limiter.replace("m", "a", 4, 9, seconds=30)
        assert (await rate_limiter.read("m", 20)).remaining == 11
        assert (await rate_limiter.read("m", 5)).remaining == 0
        await rate_limiter.replace("m", "a", 9, 0)
        assert (await rate_limiter.read("m", 5)).remaining == 5
        await rate_limiter.replace("m", "new", 7, 2, seconds=30)
        assert (await rate_limiter.read("m", 5)).remaining == 3
        await rate_limiter.replace("m", "new", 2, 2, seconds=60)
        reading = await rate_limiter.read("m", 5)
        assert reading.remaining == 3
        assert reading.reset_seconds > 50

    async def test_an_entry_that_is_acquired_again_counts_once(self, rate_limiter: RateLimiter) -> None:
        """A run that is started twice, of which the second start is refused, holds one slot."""
        await rate_limiter.acquire("m", "other", 1, limit=2, seconds=60)
        again = [await rate_limiter.acquire("m", "run", 1, limit=2, seconds=60) for _ in range(2)]
        assert [reading.is_allowed for reading in again] == [True, True]
        assert again[-1].remaining == 0
        await rate_limiter.replace("m", "run", 1, 0)
        assert (await rate_limiter.read("m", 2)).remaining == 1

    async def test_an_empty_meter_leaves_all_of_it_at_once(self, rate_limiter: RateLimiter) -> None:
        reading = await rate_limiter.read("m", 5)
        assert (reading.remaining, reading.reset_seconds) == (5, 0)
        assert not (await rate_limiter.acquire("m", "a", 6, limit=5, seconds=60)).is_allowed

    async def test_of_many_at_once_no_more_are_taken_than_fit(self, rate_limiter: RateLimiter) -> None:
        readings = await asyncio.gather(
            *(rate_limiter.acquire("m", f"n{i}", 1, limit=7, seconds=60) for i in range(30))
        )
        assert sum(reading.is_allowed for reading in readings) == 7
