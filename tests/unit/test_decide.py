"""Every rule of the scheduler's pure half, as a table of logs; and that any DAG is carried out within its order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core import events as ev
from agent.core.models import AgentRequest, Budgets, Effect, Outcome, Plan, PlanStep, Room, StepOutcome
from agent.core.plan_outcome import is_complete, list_abandoned_steps
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.execution.decide import (
    Discard,
    Judge,
    Start,
    decide,
    find_replan_reason,
    have_dependencies_succeeded,
    needs_replan,
)
from agent.execution.workflow import choose_next_stage

Body = tuple[ev.EventBody, str | None, int | None]


def step(step_id: str, *depends_on: str, effect: Effect = "read") -> PlanStep:
    return PlanStep(
        id=step_id, executor="agent", action="tool", tool="calculator", depends_on=depends_on, effect=effect
    )


def log(steps: tuple[PlanStep, ...], *bodies: Body, parallel: int = 8, replans: int = 3) -> RunState:
    room = Room(id="r", budgets=Budgets(max_parallel=parallel, max_replans=replans))
    start: list[Body] = [
        (ev.RunCreated(request=AgentRequest(prompt="p"), room=room, owner="local"), None, None),
        (ev.RunClaimed(worker="w"), None, None),
        (ev.InputGuarded(prompt="p"), None, None),
        (ev.RequestUnderstood(route="plan", reason="r", question="p"), None, None),
        (ev.MemoryRetrieved(), None, None),
        (ev.PlanProposed(plan=Plan(goal="g", steps=steps), requested="rules", effective="rules"), None, None),
    ]
    numbered = enumerate([*start, *bodies], start=1)
    return fold("run_1", [ev.Event("run_1", n, 1, float(n), b, s, a) for n, (b, s, a) in numbered])


def started(step_id: str, attempt: int = 1) -> Body:
    return (ev.StepStarted(), step_id, attempt)


def speculative(step_id: str, *waiting_for: str, **grounds: int) -> Body:
    return (ev.StepSpeculative(waiting_for=waiting_for, grounds=grounds), step_id, 1)


def finished(step_id: str, attempt: int = 1, error: str | None = None) -> Body:
    return (ev.StepFinished(output=ev.StepOutput(text="out", value="out", error_code=error)), step_id, attempt)


def judged(step_id: str, outcome: Outcome, attempt: int = 1) -> Body:
    verdict = StepOutcome(outcome=outcome, reason="because", suggested_fix="do better")
    return (ev.StepJudged(verdict=verdict), step_id, attempt)


def test_steps_without_dependencies_start_at_once() -> None:
    commands = decide(log((step("s1"), step("s2"), step("s3", "s1"))))
    assert commands == (Start(step("s1"), 1), Start(step("s2"), 1))


def test_the_room_bounds_how_many_run_at_once() -> None:
    state = log((step("s1"), step("s2"), step("s3")), parallel=2)
    assert [c.step.id for c in decide(state) if isinstance(c, Start)] == ["s1", "s2"]
    assert [c.step.id for c in decide(state, {("s1", 1)}) if isinstance(c, Start)] == ["s2"]


@pytest.mark.row("S001-27")
def test_a_dependent_starts_only_after_success() -> None:
    steps = (step("s1", effect="effect"), step("s2", "s1", effect="effect"))
    assert decide(log(steps, started("s1"), finished("s1")), {("s1", 1)}) == ()
    done = log(steps, started("s1"), finished("s1"), judged("s1", Outcome.SUCCESS))
    assert decide(done) == (Start(steps[1], 1, depends_on_attempts={"s1": 1}),)


def test_a_read_only_dependent_runs_ahead_of_the_judge() -> None:
    steps = (step("s1"), step("s2", "s1"), step("s3", "s2"))
    state = log(steps, started("s1"), finished("s1"))
    assert decide(state, {("s1", 1)}) == (Start(steps[1], 1, None, ("s1",), {"s1": 1}),)
    ahead = log(steps, started("s1"), finished("s1"), started("s2"), speculative("s2", "s1"), finished("s2"))
    assert decide(ahead, {("s1", 1)}) == (), "its result is not judged, and nothing runs ahead of it, before s1 is"


def test_nothing_runs_ahead_of_a_failed_attempt() -> None:
    steps = (step("s1"), step("s2", "s1"))
    assert decide(log(steps, started("s1"), finished("s1", error="ERR_TOOL_FAILED")), {("s1", 1)}) == ()


@pytest.mark.parametrize("outcome", [Outcome.RETRY, Outcome.REPLAN, Outcome.ABORT])
def test_a_speculative_result_is_dropped_when_its_ground_does_not_hold(outcome: Outcome) -> None:
    steps = (step("s1"), step("s2", "s1"))
    state = log(steps, started("s1"), finished("s1"), started("s2"), speculative("s2", "s1"), judged("s1", outcome))
    assert Discard("s2", 1, f"step s1 was judged {outcome.value}") in decide(state, {("s2", 1)})


def test_a_speculative_result_is_judged_once_its_ground_holds() -> None:
    steps = (step("s1"), step("s2", "s1"))
    bodies = (started("s1"), finished("s1"), started("s2"), speculative("s2", "s1"), finished("s2"))
    assert decide(log(steps, *bodies, judged("s1", Outcome.SUCCESS))) == (Judge(steps[1], 1),)


@pytest.mark.parametrize(
    "second",
    [
        (started("s1", 2),),
        (started("s1", 2), finished("s1", 2)),
        (started("s1", 2), finished("s1", 2), judged("s1", Outcome.SUCCESS, 2)),
    ],
)
@pytest.mark.parametrize("ended", [True, False])
def test_what_rests_on_an_attempt_that_is_repeated_is_discarded(second: tuple[Body, ...], ended: bool) -> None:
    steps = (step("s1"), step("s2", "s1"))
    first = (started("s1"), finished("s1"), started("s2"), speculative("s2", "s1", s1=1))
    bodies = (*first, *((finished("s2"),) if ended else ()), judged("s1", Outcome.RETRY), *second)
    assert decide(log(steps, *bodies), {("s1", 2)}) == (Discard("s2", 1, "step s1 was judged RETRY"),)


def test_after_a_discard_the_step_is_begun_again_on_the_newest_attempt() -> None:
    steps = (step("s1"), step("s2", "s1"))
    state = log(
        steps,
        *(started("s1"), finished("s1"), started("s2"), speculative("s2", "s1", s1=1), judged("s1", Outcome.RETRY)),
        *((ev.StepDiscarded(reason="r"), "s2", 1), started("s1", 2), finished("s1", 2)),
        judged("s1", Outcome.SUCCESS, 2),
    )
    assert decide(state) == (Start(steps[1], 2, depends_on_attempts={"s1": 2}),)


def test_discards_come_before_what_takes_their_ground_away() -> None:
    steps = (step("s1"), step("s2", "s1"))
    bodies = (started("s1"), finished("s1"), started("s2"), speculative("s2", "s1", s1=1))
    commands = decide(log(steps, *bodies, judged("s1", Outcome.RETRY)), {("s2", 1)})
    assert commands == (Discard("s2", 1, "step s1 was judged RETRY"), Start(steps[0], 2, "because. do better"))


def test_a_discard_takes_no_place_among_those_that_run_at_once() -> None:
    steps = (step("s2", "s1"), step("s1"))
    bodies = (started("s1"), finished("s1"), started("s2"), speculative("s2", "s1", s1=1), finished("s2"))
    commands = decide(log(steps, *bodies, judged("s1", Outcome.RETRY), parallel=1))
    assert [type(command) for command in commands] == [Discard, Start]


def test_an_attempt_is_confirmed_by_success_of_the_very_attempts_it_rests_on() -> None:
    steps = (step("s1"), step("s2", "s1"))
    done = (started("s1"), finished("s1"))
    again = (judged("s1", Outcome.RETRY), started("s1", 2), finished("s1", 2))
    assert not have_dependencies_succeeded(log(steps, *done), steps[1], {"s1": 1}), "not judged yet"
    assert have_dependencies_succeeded(log(steps, *done, judged("s1", Outcome.SUCCESS)), steps[1], {"s1": 1})
    assert not have_dependencies_succeeded(log(steps, *done, judged("s1", Outcome.REPLAN)), steps[1], {"s1": 1})
    repeated = log(steps, *done, *again, judged("s1", Outcome.SUCCESS, 2))
    assert not have_dependencies_succeeded(repeated, steps[1], {"s1": 1})
    assert have_dependencies_succeeded(repeated, steps[1], {"s1": 2})
    assert have_dependencies_succeeded(repeated, steps[1], {}), "logs of earlier versions name no grounds"
    assert have_dependencies_succeeded(log(steps), steps[0], {}), "there is nothing to wait for"


@pytest.mark.row("S001-28")
def test_retry_is_the_next_attempt_with_the_feedback() -> None:
    steps = (step("s1"),)
    state = log(steps, started("s1"), finished("s1"), judged("s1", Outcome.RETRY))
    assert decide(state) == (Start(steps[0], 2, "because. do better"),)


def test_an_interrupted_attempt_goes_on_under_its_number() -> None:
    steps = (step("s1"),)
    assert decide(log(steps, started("s1"))) == (Start(steps[0], 1),)
    assert decide(log(steps, started("s1"), finished("s1"))) == (Judge(steps[0], 1),)


@pytest.mark.row("S001-30")
@pytest.mark.parametrize("outcome", [Outcome.REPLAN, Outcome.ABORT])
def test_nothing_new_starts_once_a_step_has_halted_the_plan(outcome: Outcome) -> None:
    steps = (step("s1"), step("s2"), step("s3"))
    state = log(steps, started("s1"), finished("s1"), judged("s1", outcome), started("s2"), finished("s2"))
    assert decide(state) == (Judge(steps[1], 1),), "what has ended is still judged, s3 is not started"
    assert needs_replan(state) is (outcome is Outcome.REPLAN)
    assert "because" in find_replan_reason(state)


@pytest.mark.row("S002-29")
def test_without_another_plan_only_what_depends_on_a_failed_step_is_left_out() -> None:
    steps = (step("s1"), step("s2", "s1"), step("s3"), step("s4", "s2"))
    failed = (started("s1"), finished("s1"), judged("s1", Outcome.REPLAN))
    state = log(steps, *failed, replans=0)
    assert decide(state) == (Start(steps[2], 1),)
    assert choose_next_stage(state) == "execute"
    state = log(steps, *failed, started("s3"), finished("s3"), judged("s3", Outcome.SUCCESS), replans=0)
    assert decide(state) == ()
    assert choose_next_stage(state) == "finalize"


def test_a_side_effect_of_unknown_outcome_halts_the_plan_and_is_not_planned_around() -> None:
    steps = (step("s1", effect="effect"), step("s2"))
    unknown = ev.StepUnknown(call_id="s1.1.1", tool="send", key="k", message="unknown")
    state = log(steps, started("s1"), (unknown, "s1", 1))
    assert decide(state) == ()
    assert not needs_replan(state)
    assert choose_next_stage(state) == "finalize"


@pytest.mark.row("S001-29")
@pytest.mark.parametrize(
    ("second", "lost"),
    [({}, ["s1"]), ({"fallback_reason": "no model"}, ["s1"]), ({"asked_for": True}, [])],
    ids=["nothing new", "by rules", "as a person wants it"],
)
def test_what_was_given_up_stays_so_when_the_answer_is_planned_anew(second: dict[str, Any], lost: list[str]) -> None:
    def planned(version: int, *steps: PlanStep, **more: Any) -> Body:
        plan = Plan(goal="g", steps=steps, version=version)
        return ev.PlanProposed(plan=plan, requested="llm", effective="llm", **more), None, None

    def answer(number: int) -> PlanStep:
        return PlanStep(id=f"a{number}", executor="litellm", action="completion", tool="completion")

    failed = (started("s1"), finished("s1"), judged("s1", Outcome.REPLAN))
    doubted = (started("a1"), finished("a1"), judged("a1", Outcome.REPLAN))
    state = log((step("s1"), answer(0)), *failed, planned(1, answer(1), **second), *doubted, planned(2, answer(2)))
    assert [one.id for one in list_abandoned_steps(state)] == lost
    state = log((step("s1"),), *failed, planned(1, step("s2"), answer(1)), *doubted, planned(2, answer(2)))
    assert list_abandoned_steps(state) == (), "another way was found"


@pytest.mark.row("S001-31")
def test_replans_are_bounded() -> None:
    steps = (step("s1"),)
    failed = (started("s1"), finished("s1"), judged("s1", Outcome.REPLAN))
    again: list[Body] = []
    for version in range(1, 4):
        plan = Plan(goal="g", steps=(step(f"r{version}"),), version=version)
        again.append((ev.PlanProposed(plan=plan, requested="rules", effective="rules"), None, None))
        again += [started(f"r{version}"), finished(f"r{version}"), judged(f"r{version}", Outcome.REPLAN)]
    assert choose_next_stage(log(steps, *failed, *again[:-4])) == "plan"
    assert choose_next_stage(log(steps, *failed, *again)) == "finalize"


def test_a_cancelled_run_starts_nothing_and_goes_to_its_end() -> None:
    state = log((step("s1"),), (ev.CancelRequested(), None, None))
    assert decide(state) == ()
    assert choose_next_stage(state) == "finalize"


@st.composite
def dags(draw: st.DrawFn) -> tuple[PlanStep, ...]:
    count = draw(st.integers(1, 8))
    steps = []
    for number in range(count):
        before = [f"s{n}" for n in range(number)]
        depends_on = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        steps.append(step(f"s{number}", *depends_on, effect=draw(st.sampled_from(("read", "effect")))))
    return tuple(draw(st.permutations(steps)))


@given(steps=dags(), data=st.data())
def test_any_dag_ends_with_every_step_done_once_and_after_its_dependencies(
    steps: tuple[PlanStep, ...], data: st.DataObject
) -> None:
    bodies: list[Body] = []
    running: set[tuple[str, int]] = set()
    order: list[str] = []
    while True:
        state = log(steps, *bodies)
        for command in decide(state, running):
            assert isinstance(command, Start)
            assert all(state.get_step(d).status == "succeeded" for d in command.step.depends_on)
            running.add((command.step.id, command.attempt))
            bodies.append(started(command.step.id))
        if not running:
            break
        ended = data.draw(st.sampled_from(sorted(running)))
        running.discard(ended)
        order.append(ended[0])
        bodies += [finished(ended[0]), judged(ended[0], Outcome.SUCCESS)]
    assert sorted(order) == sorted(s.id for s in steps)
    assert is_complete(log(steps, *bodies))
