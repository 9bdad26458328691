"""The rich view: what stock Open WebUI draws as cards and a checklist, and no other client is sent."""

import json
from typing import Any

from agent.core import events as ev
from agent.core.errors import AgentError
from agent.core.models import Outcome, Source
from gateway.render.openai import OpenAIChunks
from gateway.render.openwebui import MAX_CARD_CHARS
from tests.support.builders import (
    RUN_ID,
    Placed,
    answered,
    completion_step,
    created,
    done_step,
    finished,
    judged,
    log,
    planned,
    started,
    tool_step,
)
from tests.support.openwebui import Shown

PLAN = planned(tool_step("s1", "search_docs"), tool_step("s2", "read_file", "s1"), completion_step("s3", "s2"))


def stream(*bodies: ev.EventBody | Placed, rich: bool = True) -> list[dict[str, Any]]:
    chunks = OpenAIChunks(RUN_ID, "helper", include_usage=False, rich=rich)
    return [json.loads(data) for event in log(created(), *bodies) for data in chunks.encode_event(event)]


def cards(frames: list[dict[str, Any]]) -> list[tuple[str, int, str, str]]:
    """(what happened, output index, kind of item, its status)"""
    lines = [frame for frame in frames if frame.get("type", "").startswith("response.output_item.")]
    return [(f["type"].rpartition(".")[2], f["output_index"], f["item"]["type"], f["item"]["status"]) for f in lines]


def items(frames: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [f["item"] for f in frames if f.get("item", {}).get("type") == kind]


def checklists(frames: list[dict[str, Any]]) -> list[list[str]]:
    events = [f["event"] for f in frames if f.get("event", {}).get("type") == "chat:tasks"]
    return [[task["status"] for task in event["data"]["tasks"]] for event in events]


def test_each_step_is_a_card_that_opens_and_is_completed_with_its_output() -> None:
    frames = stream(PLAN, *done_step("s1", "3 passages"), *done_step("s2", "the file"), started("s3"))
    assert cards(frames) == [
        ("added", 0, "function_call", "in_progress"),
        ("done", 0, "function_call", "completed"),
        ("added", 1, "function_call_output", "completed"),
        ("added", 2, "function_call", "in_progress"),
        ("done", 2, "function_call", "completed"),
        ("added", 3, "function_call_output", "completed"),
    ]
    outputs = items(frames, "function_call_output")
    assert [item["output"] for item in outputs] == [
        [{"type": "input_text", "text": "3 passages"}],
        [{"type": "input_text", "text": "the file"}],
    ]


def test_a_card_is_named_by_its_number_and_shows_its_input() -> None:
    call = items(stream(PLAN, started("s2", args={"path": "räksmörgås.md"})), "function_call")[0]
    assert call["name"] == "2. read_file"
    assert json.loads(call["arguments"]) == {"path": "räksmörgås.md"}


def test_every_call_has_its_output_under_the_same_id_whatever_happens() -> None:
    """A call without its output would be taken as one for Open WebUI to execute."""
    dropped = (ev.StepDiscarded(reason="s1 was not accepted"), "s2", 1)
    frames = stream(
        PLAN,
        started("s1"),
        finished("s1", "", error_code="ERR_TOOL_FAILED", error="no such page"),
        judged("s1", Outcome.RETRY),
        started("s2"),
        dropped,
        started("s1", 2, feedback="again"),
        ev.AnswerFinished(text="stopped"),
        ev.RunCancelled(reason="by the caller"),
    )
    calls = {item["call_id"] for item in items(frames, "function_call")}
    outputs = {item["call_id"]: item["output"][0]["text"] for item in items(frames, "function_call_output")}
    assert len(calls) == 3
    assert set(outputs) == calls
    assert list(outputs.values()) == ["Error: no such page", "Discarded: s1 was not accepted", "Stopped."]
    assert items(frames, "function_call")[-1]["name"] == "1. search_docs (attempt 2)"


def test_a_run_that_fails_or_is_left_has_no_card_open() -> None:
    for ending in ("failed", "broken_off"):
        chunks = OpenAIChunks(RUN_ID, "helper", include_usage=False, rich=True)
        events = log(created(), PLAN, started("s1"), ev.RunFailed(failure=AgentError("lost").to_failure()))
        told = [data for event in events[:-1] for data in chunks.encode_event(event)]
        told += (
            chunks.encode_failure(events[-1]) if ending == "failed" else chunks.encode_break("The gateway is stopping")
        )
        found = Shown().read(told)
        assert found.left_open == []
        assert found.statuses[-1][1]
        assert found.statuses[-1][0].startswith("Failed" if ending == "failed" else "The gateway")


def test_sources_are_told_apart_by_number_and_named_without_a_scheme() -> None:
    """Two of one name are two chips, and the page asks a search engine for the icon of a name that is a URL."""
    first = Source(id=1, name="notes.md", quotes=("a",))
    found = Source(id=2, name="notes.md", url="http://127.0.0.1/file", quotes=("b",))
    page = Source(id=3, name="https://example.org/a", url="https://example.org/a", quotes=("c",))
    answer = ev.AnswerFinished(text="x [1] y [2] z [3]", sources=(first, found, page))
    shown = Shown().read(json.dumps(frame) for frame in stream(PLAN, answer, ev.RunSucceeded()))
    assert shown.chips == ["notes.md", "notes.md", "example.org/a"]
    assert shown.asks_the_net == []
    assert [one["url"] for one in shown.sources.values()] == [None, "http://127.0.0.1/file", "https://example.org/a"]


def test_an_attempt_that_is_gone_on_with_after_a_restart_keeps_its_card() -> None:
    assert len(cards(stream(PLAN, started("s1"), started("s1")))) == 1


def test_long_outputs_are_shortened_on_the_card() -> None:
    frames = stream(PLAN, started("s1"), finished("s1", "x" * (MAX_CARD_CHARS + 7)))
    assert items(frames, "function_call_output")[0]["output"][0]["text"].endswith("[7 more characters]")


def test_the_plan_is_a_live_checklist() -> None:
    frames = stream(
        PLAN, *done_step("s1"), *done_step("s2"), started("s3"), finished("s3"), judged("s3"),
        ev.AnswerFinished(text="x"), ev.RunSucceeded(),
    )  # fmt: skip
    assert checklists(frames) == [
        ["pending", "pending", "pending"],
        ["in_progress", "pending", "pending"],
        ["completed", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "pending"],
        ["completed", "completed", "in_progress"],
        ["completed", "completed", "completed"],
        ["completed", "completed", "completed"],
    ]
    tasks = next(f["event"]["data"]["tasks"] for f in frames if f.get("event", {}).get("type") == "chat:tasks")
    assert [(task["id"], task["content"]) for task in tasks] == [
        ("s1", "use search_docs"),
        ("s2", "use read_file"),
        ("s3", "answer"),
    ]


def test_a_step_that_must_be_repeated_is_pending_again() -> None:
    dropped = (ev.StepDiscarded(reason="s1 was not accepted"), "s2", 1)
    frames = stream(PLAN, started("s1"), finished("s1"), started("s2"), judged("s1", Outcome.RETRY), dropped)
    assert checklists(frames)[-1] == ["pending", "pending", "pending"]


def test_a_new_plan_replaces_the_checklist() -> None:
    again = planned(tool_step("s4", "web_fetch"), completion_step("s5", "s4"), version=1)
    assert checklists(stream(PLAN, *done_step("s1"), again))[-1] == ["pending", "pending"]


def test_a_plan_of_one_step_needs_no_checklist() -> None:
    assert checklists(stream(planned(tool_step("s1")), *done_step("s1"))) == []


def test_no_other_client_is_sent_any_of_it() -> None:
    bodies: list[ev.EventBody | Placed] = [
        PLAN,
        *done_step("s1"),
        *done_step("s2"),
        *answered("x", step_id="s3"),
        ev.RunSucceeded(),
    ]
    assert cards(stream(*bodies)) != []
    plain = stream(*bodies, rich=False)
    assert all(frame["object"] == "chat.completion.chunk" for frame in plain)
    assert {frame["event"]["type"] for frame in plain if "event" in frame} == {"status"}


def test_open_webui_gets_token_counts_with_the_last_chunk() -> None:
    frames = stream(PLAN, ev.AnswerFinished(text="x"), ev.RunSucceeded())
    assert frames[-1]["usage"]["total_tokens"] == 0
