"""Sub-agents in the state and the trace of a run: nested, complete, with their own ids."""

import pytest

from agent.core import events as ev
from agent.core.models import Usage
from agent.core.run_reducer import fold
from agent.core.subagent_result import SubAgentResult
from agent.runs.trace_projection import build_projection, build_trace
from tests.support.builders import RUN_ID, Placed, called, created, finished, judged, log, planned, started, tool_step

PLAN = planned(tool_step("s1", "spawn_scout"))


def make_start(span: str = "s1.1.1", parent: str = "", depth: int = 1) -> Placed:
    body = ev.SubAgentStarted(agent_id="scout", span=span, parent=parent, depth=depth, max_turns=3, timeout_s=9)
    return body, "s1", 1


def make_model_call(span: str, tokens: int, text: str | None = "said") -> Placed:
    usage = Usage(model_calls=1, prompt_tokens=tokens)
    message = ev.AssistantTurn(text=text) if text is not None else None
    body = ev.ModelReturned(
        purpose="subagent", tier="high", model="m", usage=usage, duration=0.1, message=message, span=span
    )
    return body, "s1", 1


def make_tool_call(span: str, number: int = 1) -> list[Placed]:
    call_id = f"{span}/{number}"
    intent = ev.ToolCalled(call_id=call_id, tool="look", args={}, effect="read", key=f"k:{call_id}", span=span)
    return [(intent, "s1", 1), (ev.ToolReturned(call_id=call_id, tool="look", text="sand", span=span), "s1", 1)]


def make_end(span: str, *, success: bool = True, outcome: ev.SubAgentOutcome = "done") -> Placed:
    result = SubAgentResult(success=success, summary="Sand.")
    body = ev.SubAgentFinished(
        agent_id="scout", span=span, outcome=outcome, result=result, turns=1, usage=Usage(model_calls=1), duration=2
    )
    return body, "s1", 1


@pytest.mark.row("S002-47", "S002-49")
def test_two_side_by_side_keep_their_turns_calls_and_costs_apart() -> None:
    events = log(
        created(), PLAN, started("s1"), called("s1", "spawn_scout"), called("s1", "spawn_scout", 2),
        make_start("s1.1.1"), make_start("s1.1.2"), make_model_call("s1.1.2", 5, "two"),
        make_model_call("s1.1.1", 7, "one"), *make_tool_call("s1.1.1"),
        *make_tool_call("s1.1.2"), make_end("s1.1.2"), make_model_call("s1.1.1", 11, None), make_end("s1.1.1"),
    )  # fmt: skip
    state = fold(RUN_ID, events)
    one, two = state.subagents["s1.1.1"], state.subagents["s1.1.2"]
    assert ([turn.text for turn in one.turns], one.usage.prompt_tokens) == (["one"], 18)
    assert ([turn.text for turn in two.turns], two.usage.prompt_tokens) == (["two"], 5)
    assert state.usage.prompt_tokens == 23, "the run pays for both"
    assert state.steps["s1"].attempts[0].turns == (), "the turns of a sub-agent are none of the skill's"
    steps = build_trace(events)
    assert {(step.type, step.agent_id, step.model) for step in steps if step.span} == {
        ("subagent", "scout", "m"),
        ("tool", "scout", None),
    }
    assert [(step.type, step.title, step.span, step.status) for step in steps if step.span] == [
        ("subagent", "scout", "s1.1.1", "done"),
        ("subagent", "scout", "s1.1.2", "done"),
        ("tool", "look", "s1.1.1", "done"),
        ("tool", "look", "s1.1.2", "done"),
    ]


def test_the_step_and_the_sub_agent_each_show_what_they_spent() -> None:
    usage = Usage(model_calls=1, prompt_tokens=100)
    skill = ev.ModelReturned(purpose="skill", tier="fast", model="m", usage=usage, duration=0.1)
    events = log(
        created(), PLAN, started("s1"), (skill, "s1", 1), make_start(), make_model_call("s1.1.1", 7),
        make_end("s1.1.1"), finished("s1"),
        judged("s1"),
    )  # fmt: skip
    shown = {step.type: step.usage for step in build_trace(events) if step.usage is not None}
    assert (shown["step"].prompt_tokens, shown["subagent"].model_calls) == (100, 1)


def test_a_nested_one_names_its_parent() -> None:
    events = log(
        created(), PLAN, started("s1"), make_start(), make_start("s1.1.1/1", "s1.1.1", 2), make_end("s1.1.1/1")
    )
    line = build_trace(events)[-1]
    assert (line.span, line.parent_span, line.detail["depth"]) == ("s1.1.1/1", "s1.1.1", 2)


def test_calls_it_still_waited_for_end_with_it_and_with_no_one_elses() -> None:
    events = log(
        created(), PLAN, started("s1"), called("s1", "spawn_scout"), make_start(), make_start("s1.1.2"),
        make_tool_call("s1.1.1")[0],
        make_tool_call("s1.1.2")[0], make_end("s1.1.1", success=False, outcome="timeout"),
    )  # fmt: skip
    projection = build_projection(events)
    lines = {(step.title, step.span): step.status for step in projection.list_steps() if step.type != "plan"}
    assert lines == {
        ("spawn_scout", None): "running",
        ("scout", "s1.1.1"): "failed",
        ("scout", "s1.1.2"): "running",
        ("look", "s1.1.1"): "discarded",
        ("look", "s1.1.2"): "running",
    }
    assert [result["error_code"] for result in projection.list_tool_results()] == ["ERR_CANCELLED"]


def test_one_that_is_begun_again_after_a_crash_is_the_same() -> None:
    events = log(created(), PLAN, started("s1"), make_start(), make_model_call("s1.1.1", 7), make_start())
    assert len(fold(RUN_ID, events).subagents["s1.1.1"].turns) == 1
    assert sum(step.type == "subagent" for step in build_trace(events)) == 1


def test_logs_of_before_have_no_spans() -> None:
    old = ev.ToolCalled.model_validate({"call_id": "s1.1.1", "tool": "t", "args": {}, "effect": "read", "key": "k"})
    assert old.span == ""
    assert fold(RUN_ID, log(created(), make_model_call("nowhere", 3))).usage.prompt_tokens == 3
