"""The response contract: `response`, `steps` and `metadata`, for every outcome of a run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.failures import AgentFailure
from agent.core.models import RESERVED_METADATA, AgentResponse, Outcome, Room, Uncertainty
from agent.runs.response import build_response
from tests.support.builders import (
    RUN_ID,
    Placed,
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
    source,
    started,
    tool_step,
)

PLAN = planned(tool_step("s1"))


def build_ended_response(
    *middle: ev.EventBody | Placed, end: ev.EventBody | None = None, **request: Any
) -> AgentResponse:
    return build_response(
        log(created(**request), PLAN, *middle, ev.AnswerFinished(text="42"), end or ev.RunSucceeded())
    )


def list_tool_lines(response: AgentResponse) -> list[str]:
    return [step.title for step in response.steps if step.type == "tool"]


@pytest.mark.row("S001-42", "S001-44", "S001-38")
def test_the_response_carries_the_answer_and_the_executed_plan() -> None:
    response = build_ended_response(*done_step("s1"))
    assert response.response == "42"
    assert response.metadata["plan"] == {**PLAN.plan.model_dump(mode="json"), "estimated_tools": ["search"]}
    assert response.metadata["run_id"] == RUN_ID
    assert response.metadata["room"] == "r"
    assert response.metadata["status"] == "complete"


@pytest.mark.row("S001-44")
def test_what_the_caller_sent_along_comes_back() -> None:
    response = build_ended_response(metadata={"x": 1, "nested": {"y": [True, None]}})
    assert response.metadata["x"] == 1
    assert response.metadata["nested"] == {"y": [True, None]}


@pytest.mark.row("S001-44")
@pytest.mark.parametrize("key", sorted(RESERVED_METADATA | {"aborted", "reason", "sources", "citations"}))
def test_a_caller_cannot_speak_for_the_engine(key: str) -> None:
    assert build_ended_response(metadata={key: "forged"}).metadata.get(key) != "forged"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (ev.RunSucceeded(), "complete"),
        (ev.RunSucceeded(completeness="partial", reason="a budget is spent"), "partial"),
        (ev.RunSucceeded(completeness="aborted", reason="harm"), "aborted"),
        (ev.RunCancelled(reason="by the caller"), "cancelled"),
    ],
)
def test_the_status_says_how_it_ended(end: ev.EventBody, status: str) -> None:
    metadata = build_ended_response(end=end).metadata
    assert metadata["status"] == status
    assert metadata.get("aborted", False) is (status == "aborted")


def test_a_failed_run_answers_with_its_failure() -> None:
    failure = AgentFailure(agent_id="completion", error_code="ERR_MODEL_DOWN", message="no model", recoverable=True)
    response = build_response(log(created(), PLAN, ev.RunFailed(failure=failure)))
    assert response.response == "no model"
    assert response.metadata["status"] == "failed"
    assert response.metadata["failure"]["error_code"] == "ERR_MODEL_DOWN"


@pytest.mark.row("S001-38", "S001-48")
def test_every_call_stands_once_in_the_tool_results_in_the_order_of_the_trace() -> None:
    refused = (ev.ToolRefused(call_id="s1.1.2", tool="secret", args={}, reason="outside the scope"), "s1", 1)
    broken: dict[str, Any] = {"error_code": "ERR_TOOL_INPUT", "error": "x: is required", "text": ""}
    response = build_ended_response(
        started("s1"),
        called("s1", "slow"),
        refused,
        returned("s1", "picky", 3, **broken),
        returned("s1", "slow", text="late", duration=1.5),
    )
    results = response.metadata["tool_results"]
    assert [result["tool"] for result in results] == list_tool_lines(response) == ["slow", "secret", "picky"]
    assert [result["error_code"] for result in results] == [None, "ERR_TOOL_DENIED", "ERR_TOOL_INPUT"]
    assert (results[0]["ok"], results[0]["text"], results[0]["step_id"]) == (True, "late", "s1")


def test_a_call_the_run_did_not_wait_for_is_reported_as_such() -> None:
    response = build_ended_response(
        started("s1"), called("s1", "read_it"), called("s1", "send_it", 2, effect="effect"), ev.CancelRequested(),
        end=ev.RunCancelled(reason="by the caller"),
    )  # fmt: skip
    results = response.metadata["tool_results"]
    assert [(r["tool"], r["error_code"]) for r in results] == [
        ("read_it", "ERR_CANCELLED"),
        ("send_it", "ERR_TOOL_UNKNOWN_OUTCOME"),
    ]
    assert [(r["step_id"], r["attempt"]) for r in results] == [("s1", 1), ("s1", 1)]


CALLS = ("returns", "fails", "refused", "unknown", "interrupted", "bad_arguments")


def make_call(kind: str, number: int) -> list[Placed]:
    where = ("s1", f"{kind}_{number}", number)
    match kind:
        case "refused":
            body = ev.ToolRefused(call_id=f"s1.1.{number}", tool=where[1], args={}, reason="r")
            return [(body, "s1", 1)]
        case "unknown":
            lost = ev.StepUnknown(call_id=f"s1.1.{number}", tool=where[1], key="k", message="m")
            return [called(*where, effect="effect"), (lost, "s1", 1)]
        case "interrupted":
            return [called(*where)]
        case "bad_arguments":
            return [returned(*where, error_code="ERR_TOOL_INPUT", error="e")]
        case "fails":
            return [called(*where), returned(*where, error_code="ERR_TOOL_FAILED", error="e")]
        case _:
            return [called(*where), returned(*where)]


@pytest.mark.row("S001-38")
@given(st.lists(st.sampled_from(CALLS), max_size=12), st.sampled_from(["succeeded", "cancelled"]))
def test_tool_results_and_tool_lines_are_always_as_many(kinds: list[str], ending: str) -> None:
    calls = [body for number, kind in enumerate(kinds, start=1) for body in make_call(kind, number)]
    end = ev.RunSucceeded() if ending == "succeeded" else ev.RunCancelled(reason="r")
    response = build_ended_response(started("s1"), *calls, end=end)
    assert [result["tool"] for result in response.metadata["tool_results"]] == list_tool_lines(response)
    assert len(list_tool_lines(response)) == len(kinds)
    assert all(step.status != "running" for step in response.steps)


def test_usage_is_the_sum_of_every_model_call() -> None:
    usage = build_ended_response(
        make_model_call("planner", 10), make_model_call("skill", 20, "s1", 1), make_model_call("supervisor", 4, "s1", 1)
    ).metadata["usage"]
    assert (usage["model_calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (3, 34, 17)
    assert usage["total_tokens"] == 51


def test_the_runtime_says_who_was_asked_and_who_did_it() -> None:
    fallen = planned(tool_step("s1"), effective="rules", fallback_reason="the model is down")
    runtime = build_response(log(created(), fallen, ev.RunSucceeded())).metadata["runtime"]
    assert runtime["planner"] == {
        "requested": "llm",
        "effective": "rules",
        "fallback_used": True,
        "fallback_reason": "the model is down",
    }
    assert runtime["mode"] == "rules"


def test_a_fallback_of_the_first_plan_is_told_although_a_later_plan_went_well() -> None:
    fallen = planned(tool_step("s1"), effective="rules", fallback_reason="the model was down")
    runtime = build_response(log(created(), fallen, planned(tool_step("s2"), version=1))).metadata["runtime"]
    assert runtime["planner"]["fallback_reason"] == "the model was down"
    assert runtime["replans"] == 1


def test_the_runtime_counts_retries_and_names_the_answering_model() -> None:
    runtime = build_ended_response(
        make_model_call("planner"), started("s1"), finished("s1", ""), judged("s1", Outcome.RETRY), started("s1", 2),
        *answered("42"),
    ).metadata["runtime"]  # fmt: skip
    assert (runtime["retries"], runtime["mode"], runtime["supervision"]) == (1, "llm", "auto")
    assert (runtime["answer"]["tier"], runtime["answer"]["model"]) == ("fast", "small")


@pytest.mark.parametrize(("planning", "told"), [(True, 2), (False, None)])
def test_the_clients_tools_are_reported_as_ignored_only_where_they_were(planning: bool, told: int | None) -> None:
    tool: dict[str, JsonValue] = {"type": "function", "function": {"name": "f"}}
    room = Room(id="r", planning=planning)
    runtime = build_response(log(created(room=room, client_tools=(tool, tool)), PLAN)).metadata["runtime"]
    assert runtime.get("client_tools_ignored") == told


def test_sources_and_doubts_of_the_answer_stand_in_the_metadata() -> None:
    doubt = Uncertainty(level="notable", message="only one source")
    finish = ev.AnswerFinished(
        text="25 days [1]", sources=(source(1, "handbook.pdf", "25 days"),), uncertainties=(doubt,)
    )
    metadata = build_response(log(created(), PLAN, finish, ev.RunSucceeded())).metadata
    assert metadata["sources"][0]["quotes"] == ["25 days"]
    assert metadata["uncertainties"][0]["message"] == "only one source"


def test_an_unfinished_run_can_be_shown_too() -> None:
    response = build_response(log(created(), ev.RunClaimed(worker="w"), PLAN, started("s1"), called("s1")))
    assert (response.response, response.metadata["status"]) == ("", "running")
    assert response.metadata["tool_results"] == []


@pytest.mark.parametrize(("text", "repeats"), [("The boats lay still, and all was quiet. " * 60, True), ("A", False)])
def test_an_answer_that_was_cut_off_says_whether_it_only_repeated_itself(text: str, *, repeats: bool) -> None:
    cut = ev.AnswerFinished(text=text, finish_reason="length")
    metadata = build_response(log(created(), cut, ev.RunSucceeded())).metadata
    assert (metadata["truncated"], metadata["repeats_itself"]) == (True, repeats)


def test_an_answer_that_repeats_itself_says_so_with_the_sentence_below_it_too() -> None:
    text = "The boats lay still, and all was quiet. " * 60
    output = finished("s1", text, effective="llm", finish_reason="length")
    cut = ev.AnswerFinished(
        text=f"{text}\n\nThe model repeated itself, so the answer ends here.", finish_reason="length"
    )
    metadata = build_response(log(created(), planned(completion_step("s1")), started("s1"), output, cut)).metadata
    assert (metadata["truncated"], metadata["repeats_itself"]) == (True, True)
