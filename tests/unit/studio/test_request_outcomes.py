"""The outcomes of a message's requests at moments that a client can only meet by chance."""

import pytest

from agent.core import events as ev
from agent.core.models import PlanStep, TaskPlan, TaskStep, UserIntent
from agent.core.run_reducer import fold
from gateway.features.studio.engine.request_outcomes import build_outcomes
from tests.support.builders import RUN_ID, completion_step, created, log, planned


def classified(step_id: str) -> ev.IntentClassified:
    intent = UserIntent(category="room_management", action="create", confidence=1)
    tasks = TaskPlan(goal="a room", steps=(TaskStep(action="create", target="room_agent"),))
    return ev.IntentClassified(intents=(intent,), task_plan=tasks, step_ids=(step_id,))


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ((), ("waiting", "it is not planned yet")),
        ((ev.CancelRequested(reason="too late"), ev.RunCancelled(reason="too late")), ("not_run", "too late")),
    ],
    ids=["goes on", "cancelled"],
)
def test_a_message_that_was_read_anew_and_is_not_planned_yet_has_outcomes(
    ends: tuple[ev.EventBody, ...], outcome: tuple[str, str]
) -> None:
    """A reply to the question about a plan is read by the router before the next plan is made."""
    step = PlanStep(id="s1", executor="agent", action="tool", tool="spawn_room_agent", intent="make a room")
    bodies = (created("make a room"), classified("s1"), planned(step, completion_step("s2", "s1")), classified("p2_s1"))
    outcomes = build_outcomes(fold(RUN_ID, log(*bodies, *ends)))
    assert [(one.action, one.request, (one.status, one.reason)) for one in outcomes] == [
        ("create", "make a room", outcome)
    ]
