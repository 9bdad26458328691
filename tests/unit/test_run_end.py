"""What happens to the results of runs when a `RunEndWatcher` closes."""

import asyncio
from typing import Any, cast

import pytest

from agent.core.errors import StoreError
from agent.runs.run_end import RunEndWatcher


class _Endings:
    """A service whose runs never tell the watcher that they have ended, as when the gateway stops at that moment."""

    async def wait_until_end(self, run_id: str, *, owner: str) -> None:
        await asyncio.Event().wait()


def _make_watcher() -> RunEndWatcher:
    return RunEndWatcher(cast("Any", _Endings()), "task", lambda: 0.0)


async def test_closing_stores_what_ended_unnoticed() -> None:
    stored: list[str] = []

    async def store() -> None:
        stored.append("r1")

    watcher = _make_watcher()
    watcher.watch("r1", "local", store)
    await watcher.aclose()
    assert stored == ["r1"]


async def test_closing_makes_an_interrupted_attempt_again() -> None:
    attempts: list[str] = []

    class _Ended(_Endings):
        async def wait_until_end(self, run_id: str, *, owner: str) -> None:
            return None

    began = asyncio.Event()

    async def store() -> None:
        attempts.append("begun")
        began.set()
        if len(attempts) == 1:
            await asyncio.Event().wait()

    watcher = RunEndWatcher(cast("Any", _Ended()), "task", lambda: 0.0)
    watcher.watch("r1", "local", store)
    await began.wait()
    await watcher.aclose()
    assert len(attempts) == 2


async def test_a_store_that_fails_does_not_keep_the_other_results(caplog: pytest.LogCaptureFixture) -> None:
    stored: list[str] = []

    async def fail() -> None:
        raise StoreError("the disk is full")

    async def store() -> None:
        stored.append("r2")

    watcher = _make_watcher()
    watcher.watch("r1", "local", fail)
    watcher.watch("r2", "local", store)
    await watcher.aclose()
    assert stored == ["r2"]
    assert "r1" in caplog.text
    assert "the disk is full" in caplog.text


async def test_a_store_that_hangs_does_not_keep_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.runs.run_end.CLOSE_SECONDS", 0.05)

    async def hang() -> None:
        await asyncio.Event().wait()

    watcher = _make_watcher()
    watcher.watch("r1", "local", hang)
    async with asyncio.timeout(5):
        await watcher.aclose()
