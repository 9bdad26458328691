"""The stream of the OpenAI door: valid chunks for everybody, with progress riding along."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import Outcome
from gateway.render.openai import PIECE_CHARS, RESTARTED_NOTE, OpenAIChunks
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

PLAN = planned(tool_step("s1"), completion_step("s2", "s1"))
ROUTED = ev.RequestUnderstood(route="plan", reason="r", question="q")
Frames = list[dict[str, Any]]


def stream(*bodies: ev.EventBody | Placed, usage: bool = False, rich: bool = False) -> Frames:
    chunks = OpenAIChunks(RUN_ID, "helper", include_usage=usage, rich=rich)
    return [json.loads(data) for event in log(created(), *bodies) for data in chunks.encode_event(event)]


def text_of(frames: Frames) -> str:
    return "".join(f["choices"][0]["delta"].get("content") or "" for f in frames if f.get("choices"))


def riders(frames: Frames, kind: str) -> list[Any]:
    return [f["event"]["data"] for f in frames if f.get("event", {}).get("type") == kind]


def whole(*deltas: str, text: str | None = None, **finish: Any) -> tuple[ev.EventBody | Placed, ...]:
    """A planned run whose answer is streamed in `deltas`."""
    done = ev.AnswerFinished(text="".join(deltas) if text is None else text, **finish)
    written = (started("s2"), *answered(*deltas, step_id="s2"), finished("s2", "".join(deltas)), judged("s2"))
    return (ROUTED, PLAN, *done_step("s1"), *written, done, ev.RunSucceeded())


@pytest.mark.row("S001-13", "S001-35")
def test_every_frame_of_a_plain_stream_is_a_chunk_of_the_official_type() -> None:
    frames = stream(*whole("An ", "answer"), usage=True)
    chunks = [ChatCompletionChunk.model_validate(frame) for frame in frames]
    assert {chunk.id for chunk in chunks} == {f"chatcmpl-{RUN_ID}"}
    assert {chunk.model for chunk in chunks} == {"helper"}
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk.created for chunk in chunks} == {1001}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert text_of(frames) == "An answer"


def test_progress_rides_on_chunks_with_an_empty_delta() -> None:
    frames = stream(*whole("An answer"))
    told = [f for f in frames if "event" in f]
    assert all(f["choices"][0]["delta"] == {} and f["choices"][0]["finish_reason"] is None for f in told)
    assert [line["description"] for line in riders(frames, "status")] == [
        "Planning",
        "Plan: 2 steps",
        "Step 1/2: search",
        "Step 2/2: answer",
        "Done: 2 steps, 14.0 s",
    ]
    assert [line["done"] for line in riders(frames, "status")] == [False, False, False, False, True]


def test_a_status_that_was_begun_is_always_ended() -> None:
    one = planned(completion_step("s2"))
    frames = stream(
        ROUTED, one, started("s2"), *answered("Hi", step_id="s2"), ev.AnswerFinished(text="Hi"), ev.RunSucceeded()
    )
    assert [line["done"] for line in riders(frames, "status")] == [False, True]


def test_a_plain_answer_without_a_plan_has_no_status_lines() -> None:
    direct = ev.RequestUnderstood(route="direct", reason="r", question="q")
    frames = stream(
        direct, planned(completion_step("s2")), started("s2"), *answered("Hi", step_id="s2"),
        ev.AnswerFinished(text="Hi"), ev.RunSucceeded(),
    )  # fmt: skip
    assert riders(frames, "status") == []
    assert text_of(frames) == "Hi"


@pytest.mark.row("S001-45")
def test_the_last_chunk_carries_the_finish_reason_and_the_whole_trace() -> None:
    frames = stream(*whole("cut of", finish_reason="length"))
    last = frames[-1]
    assert last["choices"][0]["finish_reason"] == "length"
    assert [f["choices"][0]["finish_reason"] for f in frames[:-1]] == [None] * (len(frames) - 1)
    assert [step["type"] for step in last["steps"]] == [
        "route", "plan", "step", "tool", "supervision", "completion", "supervision",
    ]  # fmt: skip
    assert last["choices"][0]["delta"]["metadata"] == last["stepgate"]
    assert last["stepgate"]["steps"] == last["steps"]
    assert last["stepgate"]["usage"]
    assert last["metadata"]["run_id"] == RUN_ID
    assert not [name for name, value in last["metadata"].items() if not isinstance(value, str)]


def test_usage_comes_last_with_no_choices_and_only_when_asked_for() -> None:
    spent = (make_model_call("planner", 40), *whole("An answer"))
    with_usage, without = stream(*spent, usage=True), stream(*spent)
    assert with_usage[-1]["choices"] == []
    assert with_usage[-1]["usage"] == {"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60}
    assert all(frame["usage"] is None for frame in with_usage[:-1])
    assert all("usage" not in frame for frame in without)


def test_reasoning_is_streamed_apart_from_the_text() -> None:
    thought = (ev.AnswerDelta(text="hmm", kind="reasoning"), "s2", 1)
    opened = answered(step_id="s2")
    frames = stream(
        PLAN, *opened, thought, (ev.AnswerDelta(text="42"), "s2", 1), ev.AnswerFinished(text="42"), ev.RunSucceeded()
    )
    thoughts = [f["choices"][0]["delta"]["reasoning_content"] for f in frames if "reasoning_content" in str(f)]
    assert thoughts == ["hmm"]
    assert text_of(frames) == "42"


def test_an_answer_that_was_not_streamed_is_sent_in_pieces() -> None:
    text = "".join(chr(97 + n % 26) for n in range(2 * PIECE_CHARS + 50))
    frames = stream(PLAN, *done_step("s1"), ev.AnswerFinished(text=text), ev.RunSucceeded())
    pieces = [f for f in frames if f["choices"][0]["delta"].get("content")]
    assert [len(f["choices"][0]["delta"]["content"]) for f in pieces] == [PIECE_CHARS, PIECE_CHARS, 50]
    assert text_of(frames) == text


def test_what_follows_the_streamed_text_is_added_to_it() -> None:
    frames = stream(*whole("An answer", text="An answer\n\n---\nIt did not pass every check."))
    assert text_of(frames) == "An answer\n\n---\nIt did not pass every check."


def test_an_answer_that_differs_from_what_was_streamed_is_sent_anew() -> None:
    assert (
        text_of(stream(*whole("Half of an ans", text="The whole one")))
        == f"Half of an ans{RESTARTED_NOTE}The whole one"
    )


BROKEN: tuple[ev.EventBody | Placed, ...] = (
    PLAN,
    *answered("Half of an ans", step_id="s2"),
    *answered("The whole", " one", step_id="s2", restarted=True),
    ev.AnswerFinished(text="The whole one"),
    ev.RunSucceeded(),
)


def test_a_restarted_answer_is_announced_to_plain_clients() -> None:
    frames = stream(*BROKEN)
    assert text_of(frames) == f"Half of an ans{RESTARTED_NOTE}The whole one"
    begun_anew = [frame["event"] for frame in frames if frame["choices"][0]["delta"].get("content") == RESTARTED_NOTE]
    assert begun_anew == [{"type": "replace", "data": {"content": ""}}], "for clients that can take it back"


def test_a_restarted_answer_replaces_the_old_one_in_open_webui() -> None:
    frames = stream(*BROKEN, rich=True)
    replaced = next(i for i, f in enumerate(frames) if f.get("event", {}).get("type") == "replace")
    assert frames[replaced]["event"]["data"] == {"content": ""}
    assert text_of(frames[replaced:]) == "The whole one"
    assert text_of(frames[:replaced]) == "Half of an ans"


def test_a_restart_before_any_text_is_not_announced() -> None:
    frames = stream(
        PLAN, *answered(step_id="s2"), *answered("All", step_id="s2", restarted=True), ev.AnswerFinished(text="All"),
        ev.RunSucceeded(),
    )  # fmt: skip
    assert text_of(frames) == "All"


def test_sources_stand_before_the_text_that_cites_them() -> None:
    handbook = source(1, "handbook.pdf", "25 days a year", url="https://example.org/h")
    frames = stream(
        PLAN, *done_step("s1", sources=(handbook,)), started("s2"), *answered("25 days [1]", step_id="s2"),
        ev.AnswerFinished(text="25 days [1]", sources=(handbook,)), ev.RunSucceeded(),
    )  # fmt: skip
    assert riders(frames, "source") == [
        {
            "source": {"name": "handbook.pdf", "url": "https://example.org/h"},
            "document": ["25 days a year"],
            "metadata": [{"source": "source 1", "name": "handbook.pdf"}],
        }
    ]
    first_source = next(i for i, f in enumerate(frames) if f.get("event", {}).get("type") == "source")
    assert text_of(frames[:first_source]) == ""
    assert riders(frames, "status")[-1]["description"].startswith("Done: 1 step, 1 source, ")


def test_only_steps_that_succeeded_are_sources_numbered_as_the_answer_cites_them() -> None:
    plan = planned(tool_step("s1"), tool_step("s2"), tool_step("s3"), completion_step("s4", "s1", "s3"))
    bad, good, more = source(1, "bad.pdf", "no"), source(1, "good.pdf", "yes"), source(1, "good.pdf", "indeed")
    frames = stream(
        plan, *done_step("s1", sources=(good,)),
        started("s2"), finished("s2", sources=(bad,)), judged("s2", Outcome.ABORT),
        *done_step("s3", sources=(more,)), *answered("As said [1]", step_id="s4"),
    )  # fmt: skip
    assert [(s["source"]["name"], s["document"]) for s in riders(frames, "source")] == [("good.pdf", ["yes", "indeed"])]


def test_the_clients_tool_calls_are_streamed_by_index() -> None:
    calls: tuple[dict[str, JsonValue], ...] = tuple(
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(2)
    )
    finish = ev.AnswerFinished(text="", finish_reason="tool_calls", tool_calls=calls)
    frames = stream(planned(completion_step("s2")), *answered(step_id="s2"), finish, ev.RunSucceeded())
    chunks = [ChatCompletionChunk.model_validate(frame) for frame in frames]
    sent = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [(call.index, call.id) for call in sent] == [(0, "c0"), (1, "c1")]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (ev.RunSucceeded(completeness="partial"), "Partly done: "),
        (ev.RunSucceeded(completeness="aborted"), "Stopped early: "),
        (ev.RunCancelled(reason="by the caller"), "Cancelled: "),
    ],
)
def test_the_headline_is_honest_about_the_end(end: ev.EventBody, word: str) -> None:
    frames = stream(PLAN, *done_step("s1"), ev.AnswerFinished(text="what is known"), end)
    assert riders(frames, "status")[-1]["description"].startswith(word)
    assert text_of(frames) == "what is known"


def test_a_retry_and_a_new_plan_are_told() -> None:
    frames = stream(
        PLAN, started("s1"), called("s1"), returned("s1"), finished("s1", ""), judged("s1", Outcome.RETRY),
        started("s1", 2, feedback="look again"), finished("s1", "", 2), judged("s1", Outcome.REPLAN, 2),
        planned(tool_step("s3"), version=1), *done_step("s3"), ev.AnswerFinished(text="x"), ev.RunSucceeded(),
    )  # fmt: skip
    assert [line["description"] for line in riders(frames, "status")][2:-1] == [
        "Again, step 1/2: search",
        "Step s1 did not help: because",
        "New plan: 1 step",
        "Step 1/1: search",
    ]
    assert ", 1 retry, " in riders(frames, "status")[-1]["description"]
