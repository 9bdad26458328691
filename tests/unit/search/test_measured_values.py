"""Values that are measured once an hour: no reader waits for another key."""

import asyncio

from gateway.features.documents.engine.search.measured_values import VALID_SECONDS, MeasuredValues


async def test_concurrent_first_readers_measure_once_and_again_after_an_hour() -> None:
    now, measured = [0.0], 0
    values = MeasuredValues[str, int](lambda: now[0])

    async def measure() -> int:
        nonlocal measured
        measured += 1
        await asyncio.sleep(0)
        return measured

    assert await asyncio.gather(*(values.get("a", measure) for _ in range(3))) == [1, 1, 1]
    now[0] = VALID_SECONDS
    assert await values.get("a", measure) == 2


async def test_nobody_waits_for_the_measurement_of_another_key() -> None:
    values, endless = MeasuredValues[str, int](lambda: 0.0), asyncio.Event()

    async def hang() -> int:
        await endless.wait()
        return 1

    async def measure() -> int:
        return 2

    await values.get("kept", measure)
    waiting = asyncio.create_task(values.get("slow", hang))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await values.get("kept", hang) == 2
        assert await values.get("other", measure) == 2
    endless.set()
    assert await waiting == 1


async def test_a_measurement_that_fails_is_made_again() -> None:
    values = MeasuredValues[str, int](lambda: 0.0)

    async def measure(result: int | None) -> int:
        if result is None:
            raise ValueError("no embedder")
        return result

    for _ in range(2):
        try:
            await values.get("a", lambda: measure(None))
        except ValueError:
            continue
    assert await values.get("a", lambda: measure(3)) == 3
