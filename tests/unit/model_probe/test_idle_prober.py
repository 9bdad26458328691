"""A measurement that fails by a defect is told, and not begun again at once; a new model reads its first prompt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.cancellation import cancel_and_wait
from agent.core.models import JsonObject
from agent.llm.tiers import ConfiguredModel
from gateway.model_probe import idle_prober
from gateway.model_probe.idle_prober import IdleProber
from gateway.model_probe.measuring import BuildPrompt


class Lease:
    released = False

    async def take(self) -> bool:
        return True

    async def release(self) -> None:
        self.released = True


async def test_a_defect_is_told_and_the_model_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lease = Lease()
    prober = IdleProber(cast("Any", SimpleNamespace()), cast("Any", lease))

    async def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prober, "_open", fail)
    await prober._measure(cast("ConfiguredModel", SimpleNamespace(model="small")))
    assert prober._not_before > 0
    assert lease.released
    assert "small was not measured" in caplog.text


class Endpoint:
    """A measurement that notes what was asked of it, and stays busy once it is `held`."""

    def __init__(self, *, held: bool = False) -> None:
        self.warmed = self.dropped = 0
        self.decision: tuple[JsonObject, ...] = ()
        self._held = held

    async def warm(self, build_decision: BuildPrompt) -> None:
        self.decision = await build_decision()
        self.warmed += 1
        try:
            await asyncio.sleep(60 if self._held else 0)
        except asyncio.CancelledError:
            self.dropped += 1
            raise

    async def aclose(self) -> None: ...


DECISION: tuple[JsonObject, ...] = ({"role": "user", "content": "Which tool?"},)


async def build_decision() -> tuple[JsonObject, ...]:
    return DECISION


@asynccontextmanager
async def watching(
    monkeypatch: pytest.MonkeyPatch,
    endpoint: Endpoint,
    *,
    runs: int = 0,
    url: str = "http://127.0.0.1:1/v1",
    **values: str,
) -> AsyncIterator[IdleProber]:
    """A prober at work on a model at this address, with looks a millisecond apart."""
    monkeypatch.setattr(idle_prober, "CHECK_SECONDS", 0.001)
    settings = SimpleNamespace(**{"model_profile": "small", "model_probe": "auto"} | values)
    model = SimpleNamespace(model="small", file=None, base_url=url)
    live = SimpleNamespace(settings=settings, tiers=SimpleNamespace(fast_model=model, measured=None))
    prober = IdleProber(cast("Any", live), cast("Any", Lease()))

    async def get_endpoint(_: object) -> Endpoint:
        return endpoint

    monkeypatch.setattr(prober, "_open", get_endpoint)
    task = asyncio.create_task(prober.watch(lambda: runs, build_decision))
    await asyncio.sleep(0.05)
    yield prober
    await cancel_and_wait(task)


async def test_a_new_local_model_reads_its_first_prompt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(monkeypatch, endpoint := Endpoint()):
        assert (endpoint.warmed, endpoint.decision) == (1, DECISION)


@pytest.mark.parametrize(
    ("url", "runs", "values"),
    [
        ("https://models.example/v1", 0, {}),
        ("http://127.0.0.1:1/v1", 1, {}),
        ("http://127.0.0.1:1/v1", 0, {"model_probe": "off"}),
        ("http://127.0.0.1:1/v1", 0, {"model_profile": "capable"}),
    ],
)
async def test_nothing_is_read_that_costs_delays_or_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, url: str, runs: int, values: dict[str, str]
) -> None:
    async with watching(monkeypatch, endpoint := Endpoint(), runs=runs, url=url, **values):
        assert not endpoint.warmed


async def test_a_run_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(monkeypatch, endpoint := Endpoint(held=True)) as prober:
        prober.interrupt()
        async with asyncio.timeout(5):
            while endpoint.warmed < 2:  # noqa: ASYNC110 - it begins again
                await asyncio.sleep(0.001)
        assert endpoint.dropped == 1


async def test_prompts_are_not_read_between_two_messages_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(monkeypatch, endpoint := Endpoint(held=True)) as prober:
        prober.active_at = monotonic()
        prober.interrupt()
        await asyncio.sleep(0.02)
        assert (endpoint.warmed, endpoint.dropped) == (1, 1)
        monkeypatch.setattr(idle_prober, "REST_SECONDS", 0.01)
        async with asyncio.timeout(5):
            while endpoint.warmed < 2:  # noqa: ASYNC110 - the endpoint has no event
                await asyncio.sleep(0.001)
