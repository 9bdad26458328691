"""The `steps` trace of every kind of run."""

import json

import pytest
from pydantic_core import to_json

from agent.core import events as ev
from agent.core.models import Effect, Outcome, TraceStep
from agent.runs.trace_details import MAX_TEXT_CHARS
from agent.runs.trace_projection import build_projection, build_trace
from tests.support.builders import (
    answered,
    called,
    completion_step,
    created,
    done_step,
    finished,
    judged,
    log,
    make_model_call,
    planned,
    returned,
    started,
    tool_step,
)

PLAN = planned(tool_step("s1"), completion_step("s2", "s1"), duration=2.0)


def summarize(steps: tuple[TraceStep, ...]) -> list[tuple[str, str, str]]:
    return [(step.type, step.title, step.status) for step in steps]


@pytest.mark.row("S001-34", "S001-43")
def test_a_line_that_is_known_by_its_end_stands_where_it_began() -> None:
    """A judge takes its time while other steps run beside it."""
    events = log(
        created(), planned(tool_step("s1"), tool_step("s2")), started("s1"), started("s2"), called("s1"), called("s2"),
        returned("s1"), finished("s1"), returned("s2"), finished("s2"), judged("s2"), judged("s1", duration=2.5),
    )  # fmt: skip
    projection = build_projection(events)
    steps = projection.list_steps()
    assert summarize(steps)[5:] == [("supervision", "s1: SUCCESS", "done"), ("supervision", "s2: SUCCESS", "done")]
    began = [step.started_at for step in steps]
    assert began == sorted(began)
    assert [one["step_id"] for one in projection.list_tool_results()] == ["s1", "s2"]


def test_a_line_is_encoded_as_its_step_is() -> None:
    projection = build_projection(log(created(), make_model_call("planner"), PLAN, *done_step("s1"), ev.RunSucceeded()))
    assert projection.list_steps()
    steps = [step.model_dump(mode="json") for step in projection.list_steps()]
    assert json.loads(to_json(projection.list_lines())) == steps


@pytest.mark.row("S001-34")
def test_a_clock_that_is_set_back_turns_no_run_upside_down() -> None:
    events = log(created(), PLAN, *done_step("s1"), started("s2"))
    back = [event._replace(at=event.at - 100) if event.seq > 4 else event for event in events]
    assert summarize(build_trace(back)) == summarize(build_trace(events))


@pytest.mark.parametrize("lateness", [0.0, 1.5])
def test_a_plan_stands_behind_the_route_whenever_each_was_written(lateness: float) -> None:
    """A loaded machine writes the route with a time after that at which the plan was begun."""
    route = ev.RequestUnderstood(route="plan", reason="tools are needed", question="p")
    events = log(created(), route, make_model_call("planner"), PLAN, started("s1"))
    events = [event._replace(at=event.at + lateness) if event.body == route else event for event in events]
    steps = build_trace(events)
    assert [step.type for step in steps] == ["route", "plan", "step"]
    assert steps[0].started_at <= steps[1].started_at


@pytest.mark.row("S001-43", "S001-38")
def test_a_run_is_told_in_the_order_it_happened() -> None:
    steps = build_trace(
        log(
            created(),
            ev.RunClaimed(worker="w"),
            ev.InputGuarded(prompt="p"),
            ev.RequestUnderstood(route="plan", reason="tools are needed", question="p"),
            ev.MemoryRetrieved(source="messages"),
            make_model_call("planner"),
            PLAN,
            *done_step("s1"),
            started("s2"),
            *answered("An ", "answer", step_id="s2"),
            make_model_call("completion", 40, "s2", 1),
            finished("s2", "An answer"),
            judged("s2"),
            ev.GateChecked(gate="citations", passed=True, reason="all resolve"),
            ev.AnswerFinished(text="An answer"),
            ev.RunSucceeded(),
        )
    )
    assert summarize(steps) == [
        ("route", "route: plan", "done"),
        ("memory", "memory retrieval", "done"),
        ("plan", "plan: 2 steps", "done"),
        ("step", "search", "done"),
        ("tool", "search", "done"),
        ("supervision", "s1: SUCCESS", "done"),
        ("completion", "answer", "done"),
        ("supervision", "s2: SUCCESS", "done"),
        ("gate", "citations", "done"),
    ]
    assert all(TraceStep.model_validate_json(step.model_dump_json()) == step for step in steps)


def test_the_guard_is_told_only_when_it_removed_something() -> None:
    clean = build_trace(log(created(), ev.InputGuarded(prompt="p")))
    hidden = ev.InputGuarded(prompt="p", removed_characters=3, findings=("3 hidden characters were removed",))
    assert clean == ()
    assert summarize(build_trace(log(created(), hidden))) == [("guard", "checked the prompt", "done")]


def test_a_line_begins_when_its_work_began_and_lasts_as_long() -> None:
    events = log(created(), PLAN, started("s1"), finished("s1", duration=0.5), judged("s1", duration=0.25))
    plan, step, verdict = build_trace(events)
    assert (plan.started_at.timestamp(), plan.duration) == (1000.0, 2.0)
    assert (step.started_at, step.duration) == (events[2].timestamp, 0.5)
    assert (verdict.started_at.timestamp(), verdict.duration) == (1004.75, 0.25)


def test_tokens_stand_where_they_were_spent() -> None:
    steps = build_trace(
        log(
            created(),
            make_model_call("planner", 10),
            make_model_call("planner", 30),
            PLAN,
            started("s1"),
            make_model_call("skill", 100, "s1", 1),
            make_model_call("skill", 20, "s1", 1),
            finished("s1"),
            make_model_call("supervisor", 8, "s1", 1),
            judged("s1"),
        )
    )
    assert [step.usage and step.usage.prompt_tokens for step in steps] == [40, 120, 8]
    assert [step.usage and step.usage.model_calls for step in steps] == [2, 2, 1]


def test_a_plan_tells_which_replies_were_rejected_and_why_the_rules_took_over() -> None:
    rejected = ev.PlanRejected(problems=("s1 names no tool", "s2 depends on itself"))
    fallen = planned(tool_step("s1"), effective="rules", fallback_reason="the model is down")
    (plan,) = build_trace(log(created(), rejected, fallen))
    assert plan.detail["rejected"] == ["s1 names no tool; s2 depends on itself"]
    assert plan.detail["reason"] == "the model is down"
    assert (plan.detail["requested"], plan.detail["effective"]) == ("llm", "rules")


def test_every_new_plan_is_a_line_with_its_reason() -> None:
    replanned = planned(tool_step("s2"), version=1, replan_reason="s1 found nothing")
    events = log(created(), PLAN, started("s1"), finished("s1", ""), judged("s1", Outcome.REPLAN), replanned)
    steps = build_trace(events)
    assert summarize(steps)[1:] == [
        ("step", "search", "replanned"),
        ("supervision", "s1: REPLAN", "done"),
        ("plan", "new plan: 1 step", "done"),
    ]
    assert steps[-1].detail["replan_reason"] == "s1 found nothing"
    assert "rejected" not in steps[-1].detail


def test_each_attempt_is_a_line_with_the_feedback_it_was_given() -> None:
    steps = build_trace(
        log(
            created(), PLAN, started("s1"), finished("s1", ""), judged("s1", Outcome.RETRY),
            started("s1", 2, feedback="look again"), finished("s1", "found", 2), judged("s1", attempt=2),
        )
    )  # fmt: skip
    attempts = [step for step in steps if step.type == "step"]
    assert [(step.attempt, step.status) for step in attempts] == [(1, "retried"), (2, "done")]
    assert attempts[1].detail["feedback"] == "look again"


@pytest.mark.parametrize(
    ("outcome", "status"), [(Outcome.ABORT, "failed"), (Outcome.REPLAN, "replanned"), (Outcome.RETRY, "retried")]
)
def test_a_verdict_changes_what_the_step_looks_like(outcome: Outcome, status: str) -> None:
    steps = build_trace(log(created(), PLAN, started("s1"), finished("s1"), judged("s1", outcome)))
    assert steps[1].status == status


def test_a_failed_step_tells_its_error() -> None:
    failed = finished("s1", "", error_code="ERR_TOOL_TIMEOUT", error="search did not finish within 5 s")
    step = build_trace(log(created(), PLAN, started("s1"), failed))[1]
    assert step.status == "failed"
    assert step.detail["error"] == "search did not finish within 5 s"


def test_a_running_step_is_shown_as_running() -> None:
    steps = build_trace(log(created(), PLAN, started("s1"), called("s1")))
    assert [(step.status, step.duration) for step in steps[1:]] == [("running", None), ("running", None)]


def test_a_refused_call_is_told_with_its_reason() -> None:
    refused = ev.ToolRefused(call_id="s1.1.1", tool="secret", args={}, reason="outside the scope")
    (line,) = build_trace(log(created(), (refused, "s1", 1)))
    assert (line.title, line.status, line.detail["reason"]) == ("secret", "refused", "outside the scope")


def test_a_speculative_attempt_that_did_not_hold_is_discarded_with_the_call_it_was_in() -> None:
    plan = planned(tool_step("s1"), tool_step("s2", "search", "s1"))
    speculative = (ev.StepSpeculative(waiting_for=("s1",)), "s2", 1)
    dropped = (ev.StepDiscarded(reason="s1 was not accepted"), "s2", 1)
    steps = build_trace(log(created(), plan, started("s2"), speculative, called("s2"), dropped))
    assert summarize(steps)[1:] == [
        ("step", "search", "discarded"),
        ("notice", "s2 runs before the verdict on s1", "done"),
        ("tool", "search", "discarded"),
    ]


@pytest.mark.parametrize(
    ("effect", "status"), [("read", "discarded"), ("idempotent", "discarded"), ("effect", "unknown")]
)
def test_nothing_is_left_running_when_a_run_is_cancelled(effect: Effect, status: str) -> None:
    plan = planned(tool_step("s1", effect=effect))
    events = log(
        created(), plan, started("s1"), called("s1", effect=effect), ev.CancelRequested(),
        ev.AnswerFinished(text="stopped"), ev.RunCancelled(reason="cancelled by the caller"),
    )  # fmt: skip
    steps = build_trace(events)
    assert summarize(steps)[1:] == [
        ("step", "search", "discarded"),
        ("tool", "search", status),
        ("notice", "cancelled by the caller", "done"),
    ]


def test_a_side_effect_without_a_recorded_return_is_unknown_and_so_is_its_step() -> None:
    unknown = ev.StepUnknown(call_id="s1.1.1", tool="send", key="k", message="it may have happened")
    steps = build_trace(
        log(
            created(), planned(tool_step("s1", "send", effect="effect")), started("s1"),
            called("s1", "send", effect="effect"), (unknown, "s1", 1),
            finished("s1", "", error_code="ERR_TOOL_UNKNOWN_OUTCOME", error="it may have happened"), ev.RunSucceeded(),
        )
    )  # fmt: skip
    assert summarize(steps)[1:] == [("step", "send", "unknown"), ("tool", "send", "unknown")]


def test_a_resumed_attempt_stays_one_line() -> None:
    steps = build_trace(
        log(
            created(), PLAN, started("s1"), called("s1"), ev.RunSuspended(reason="the gateway is stopping"),
            ev.RunClaimed(worker="other", resumed=True), started("s1"), called("s1"), returned("s1"), finished("s1"),
        )
    )  # fmt: skip
    assert summarize(steps)[1:] == [
        ("step", "search", "done"),
        ("tool", "search", "done"),
        ("notice", "the gateway is stopping", "done"),
        ("notice", "the run was resumed", "done"),
    ]


def test_long_results_are_shortened_and_say_by_how_much() -> None:
    steps = build_trace(log(created(), PLAN, started("s1"), finished("s1", "x" * (MAX_TEXT_CHARS + 1500))))
    output = steps[1].detail["output"]
    assert isinstance(output, str)
    assert output.endswith("[1,500 more characters]")
    assert output.startswith("x" * MAX_TEXT_CHARS + " [")


@pytest.mark.row("S002-29", "S002-31")
def test_what_was_planned_and_never_begun_is_skipped_and_says_over_what() -> None:
    plan = planned(
        tool_step("s1"), tool_step("s2", "fetch", "s1"), tool_step("s3", "mail"), tool_step("s4", "post", "s2"),
        completion_step("s5", "s2", "s3"),
    )  # fmt: skip
    failed = (started("s1"), finished("s1", error_code="ERR_TOOL_FAILED", error="down"), judged("s1", Outcome.REPLAN))
    end = ev.RunSucceeded(completeness="partial", reason="s1 failed")
    steps = build_trace(log(created(), plan, *failed, *done_step("s3"), ev.AnswerFinished(text="x"), end))
    lines = [(one.step_id, one.type, one.status, one.detail.get("reason")) for one in steps if one.status == "skipped"]
    why = "s1 failed: because"
    assert lines == [
        ("s2", "step", "skipped", why),
        ("s4", "step", "skipped", why),
        ("s5", "completion", "skipped", why),
    ]
    assert all(TraceStep.model_validate_json(step.model_dump_json()) == step for step in steps)
    ended = build_trace(log(created(), plan, started("s1"), ev.RunCancelled(reason="by the caller")))
    assert [one.detail["reason"] for one in ended if one.step_id == "s3"] == ["the run ended before it could start"]
    retried = (
        *failed[:2],
        judged("s1", Outcome.RETRY),
        started("s1", 2),
        finished("s1", attempt=2),
        judged("s1", attempt=2),
    )
    again = build_trace(log(created(), plan, *retried, ev.RunCancelled(reason="by the caller")))
    assert {one.detail["reason"] for one in again if one.status == "skipped"} == {"the run ended before it could start"}


@pytest.mark.row("S002-24")
def test_a_plan_names_the_tools_it_means_to_use() -> None:
    (line,) = build_trace(log(created(), planned(tool_step("s1"), tool_step("s2"), completion_step("s3", "s1", "s2"))))
    assert line.detail["estimated_tools"] == ["search"]


@pytest.mark.row("S003-07")
def test_each_line_names_its_agent_and_the_model_it_asked() -> None:
    lines = build_trace(
        log(
            created(), make_model_call("planner"), planned(tool_step("s1"), tool_step("s2")),
            started("s1"), called("s1"), returned("s1"), finished("s1"),
            make_model_call("supervisor", step_id="s1", attempt=1),
            judged("s1"), *done_step("s2"), ev.RunSucceeded(),
        )
    )  # fmt: skip
    assert [(line.type, line.step_id, line.agent_id, line.model) for line in lines] == [
        ("plan", None, "planner", "small"),
        ("step", "s1", "executor", None),
        ("tool", "s1", "executor", None),
        ("supervision", "s1", "supervisor", "small"),
        ("step", "s2", "executor", None),
        ("tool", "s2", "executor", None),
        ("supervision", "s2", "supervisor", None),
    ], "a rule's verdict asks no model"
    assert all(line.started_at.tzinfo for line in lines)


@pytest.mark.row("S003-07")
def test_a_step_that_asks_a_model_names_it() -> None:
    lines = build_trace(
        log(
            created(),
            planned(tool_step("s1")),
            started("s1"),
            make_model_call("skill", step_id="s1", attempt=1),
            finished("s1"),
        )
    )
    assert [(line.type, line.agent_id, line.model) for line in lines] == [
        ("plan", "planner", None),
        ("step", "executor", "small"),
    ]
