"""The contract of every TTL store: lists that expire, exclusive locks, counters in a window."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.storage.ttl_store import TtlStore

Pass = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass."""
TTL_S = 0.4


class TtlStoreContract:
    """Subclasses provide `ephemeral` and `pass_time`."""

    async def test_a_list_keeps_its_order_and_its_newest(self, ephemeral: TtlStore) -> None:
        assert await ephemeral.list_values("a") == []
        await ephemeral.append("a", "1", "2", ttl_s=TTL_S * 100, most=3)
        await ephemeral.append("a", "3 \N{PILE OF POO}", "4", ttl_s=TTL_S * 100, most=3)
        assert await ephemeral.list_values("a") == ["2", "3 \N{PILE OF POO}", "4"]
        await ephemeral.delete("a")
        assert await ephemeral.list_values("a") == []

    async def test_a_list_expires_when_nothing_happens(self, ephemeral: TtlStore, pass_time: Pass) -> None:
        await ephemeral.append("a", "1", ttl_s=TTL_S, most=9)
        await pass_time(TTL_S * 1.5)
        assert await ephemeral.list_values("a") == []
        assert not await ephemeral.touch("a", TTL_S)

    async def test_activity_lets_a_list_live_on(self, ephemeral: TtlStore, pass_time: Pass) -> None:
        await ephemeral.append("a", "1", ttl_s=TTL_S, most=9)
        await ephemeral.append("b", "1", ttl_s=TTL_S, most=9)
        for _ in range(3):
            await pass_time(TTL_S * 0.6)
            assert await ephemeral.touch("a", TTL_S)
            await ephemeral.append("b", "2", ttl_s=TTL_S, most=2)
        assert await ephemeral.list_values("a") == ["1"]
        assert await ephemeral.list_values("b") == ["2", "2"]

    async def test_of_many_who_want_a_lock_one_gets_it(self, ephemeral: TtlStore) -> None:
        got = await asyncio.gather(*(ephemeral.acquire("l", f"t{number}", 60) for number in range(8)))
        assert got.count(True) == 1
        owner = f"t{got.index(True)}"
        assert not await ephemeral.release("l", "another")
        assert await ephemeral.release("l", owner)
        assert not await ephemeral.release("l", owner)
        assert await ephemeral.acquire("l", "next", 60)

    async def test_a_lock_of_somebody_who_died_is_free_in_time(self, ephemeral: TtlStore, pass_time: Pass) -> None:
        assert await ephemeral.acquire("l", "dead", TTL_S)
        await pass_time(TTL_S * 1.5)
        assert await ephemeral.acquire("l", "living", 60)
        assert not await ephemeral.release("l", "dead"), "it is another's by now"
        assert not await ephemeral.acquire("l", "third", 60)

    async def test_a_count_begins_anew_with_each_window(self, ephemeral: TtlStore, pass_time: Pass) -> None:
        assert [await ephemeral.increment("c", TTL_S) for _ in range(3)] == [1, 2, 3]
        assert 0 < await ephemeral.get_ttl("c") < TTL_S + 0.01, "but for rounding"
        await pass_time(TTL_S * 1.5)
        assert await ephemeral.get_ttl("c") == 0
        assert await ephemeral.increment("c", TTL_S) == 1

    async def test_it_says_where_things_are(self, ephemeral: TtlStore) -> None:
        assert await ephemeral.describe_location()
