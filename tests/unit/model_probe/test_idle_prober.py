"""A measurement that fails by a defect is told, and not begun again at once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.llm.tiers import ConfiguredModel
from gateway.model_probe.idle_prober import IdleProber


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
