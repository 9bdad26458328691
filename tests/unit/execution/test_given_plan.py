"""What a run with a given plan takes over of the run that the plan is from."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core import events as ev
from agent.core.models import Plan
from agent.execution import given_plan

CONFIRMED = (ev.ConfirmedValue(tool="pay", argument="to", value="SE11"),)
GIVEN = ev.GivenPlan(plan=Plan(goal="g", steps=(), origin="rules"), from_run="run_1")


@pytest.mark.parametrize(("key", "kept"), [("anna", CONFIRMED), ("bo", ()), (None, ())])
async def test_a_value_stays_confirmed_for_the_caller_who_confirmed_it(
    monkeypatch: pytest.MonkeyPatch, key: str | None, kept: tuple[ev.ConfirmedValue, ...]
) -> None:
    origin = SimpleNamespace(
        api_key_id="anna",
        input_guard=ev.InputGuarded(prompt="pay"),
        understanding=ev.RequestUnderstood(route="plan", reason="it is long", question="pay"),
        retrieval=ev.MemoryRetrieved(source="conversation", confirmed=CONFIRMED),
    )
    noted: list[ev.EventBody] = []

    async def load(*_: object) -> Any:
        return origin

    async def note(*bodies: ev.EventBody) -> None:
        noted.extend(bodies)

    monkeypatch.setattr(given_plan, "load_origin", load)
    fork = SimpleNamespace(state=SimpleNamespace(api_key_id=key), note=note)
    await given_plan.take_over_request(cast("Any", fork), GIVEN)
    (recalled,) = (body for body in noted if isinstance(body, ev.MemoryRetrieved))
    assert recalled.confirmed == kept
