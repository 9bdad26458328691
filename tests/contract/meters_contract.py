"""What every implementation of `Meters` does."""

import asyncio

from gateway.meters import Meters
from tests.contract.ephemeral_contract import Pass


class MetersContract:
    """Subclasses give the fixtures `meters` and `pass_time`."""

    async def test_as_much_is_taken_as_the_limit_allows(self, meters: Meters) -> None:
        first = await meters.take("m", "a", 3, limit=5, seconds=60)
        second = await meters.take("m", "b", 2, limit=5, seconds=60)
        third = await meters.take("m", "c", 1, limit=5, seconds=60)
        assert [reading.taken for reading in (first, second, third)] == [True, True, False]
        assert [reading.left for reading in (first, second, third)] == [2, 0, 0]
        assert all(50 < reading.seconds <= 60 for reading in (first, second, third))
        assert (await meters.take("other", "c", 5, limit=5, seconds=60)).taken

    async def test_what_has_ended_counts_no_more(self, meters: Meters, pass_time: Pass) -> None:
        await meters.take("m", "a", 2, limit=3, seconds=2)
        await meters.take("m", "b", 1, limit=3, seconds=60)
        full = await meters.take("m", "c", 2, limit=3, seconds=60)
        assert not full.taken
        assert 0 < full.seconds < 2.1, "then `a` ends, and there is room for `c`"
        assert (await meters.take("m", "c", 3, limit=3, seconds=60)).seconds > 50, "and for this once `b` has too"
        await pass_time(2.1)
        assert (await meters.take("m", "c", 2, limit=3, seconds=60)).taken

    async def test_an_amount_is_replaced_whatever_the_limit(self, meters: Meters) -> None:
        await meters.take("m", "a", 4, limit=5, seconds=60)
        await meters.replace("m", "a", 4, 9, seconds=30)
        assert (await meters.look("m", 20)).left == 11
        assert (await meters.look("m", 5)).left == 0
        await meters.replace("m", "a", 9, 0)
        assert (await meters.look("m", 5)).left == 5
        await meters.replace("m", "new", 7, 2, seconds=30)
        assert (await meters.look("m", 5)).left == 3
        await meters.replace("m", "new", 2, 2, seconds=60)
        reading = await meters.look("m", 5)
        assert reading.left == 3
        assert reading.seconds > 50

    async def test_an_empty_meter_leaves_all_of_it_at_once(self, meters: Meters) -> None:
        reading = await meters.look("m", 5)
        assert (reading.left, reading.seconds) == (5, 0)
        assert not (await meters.take("m", "a", 6, limit=5, seconds=60)).taken

    async def test_of_many_at_once_no_more_are_taken_than_fit(self, meters: Meters) -> None:
        readings = await asyncio.gather(*(meters.take("m", f"n{i}", 1, limit=7, seconds=60) for i in range(30)))
        assert sum(reading.taken for reading in readings) == 7
