"""Calls that are made together: their results in order, or the first failure alone."""

import asyncio

import pytest

from agent.core.concurrent_calls import gather_all
from agent.core.errors import StoreError


async def _finish_after(turns: int, result: str) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return result


async def test_results_keep_the_order_of_the_calls() -> None:
    assert await gather_all(_finish_after(turns, str(turns)) for turns in (3, 1, 2)) == ["3", "1", "2"]
    assert await gather_all([]) == []


async def test_a_failure_is_raised_alone_once_the_others_have_ended() -> None:
    ended: list[str] = []

    async def wait() -> str:
        try:
            return await _finish_after(1_000, "late")
        finally:
            ended.append("cleaned up")

    async def fail() -> str:
        await asyncio.sleep(0)
        raise StoreError("the disk is away")

    with pytest.raises(StoreError, match="the disk is away"):
        await gather_all([wait(), fail(), wait()])
    assert ended == ["cleaned up", "cleaned up"]
