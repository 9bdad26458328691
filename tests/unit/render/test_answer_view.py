"""What the page says is being done, and what it shows of an answer."""

import json
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest

from agent.core import events as ev
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject, PlanStep
from gateway.render.answer_view import MAX_LINE_CHARS, AnswerFrames, build_view, describe_step, get_thought
from tests.support.builders import RUN_ID, created, log

LONG = "lost devices and where they are reported " * 9


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"tool": "search_files", "args": {"limit": 3, "query": "lost  devices"}}, "search files: lost devices"),
        ({"tool": "search_files", "args": {"query": "x"}, "intent": "find who takes them"}, "find who takes them"),
        ({"tool": "list_files"}, "list files"),
        ({"tool": "completion", "action": "completion"}, "Writing the answer"),
    ],
)
def test_a_step_is_described_by_its_intent_or_its_call(step: dict[str, object], words: str) -> None:
    assert describe_step(PlanStep.model_validate({"id": "s1", "executor": "agent", "action": "tool", **step})) == words


def test_a_long_description_is_cut() -> None:
    step = PlanStep(id="s1", executor="agent", action="tool", tool="search_files", args={"query": LONG})
    line = describe_step(step)
    assert line.startswith("search files: lost devices")
    assert len(line) <= MAX_LINE_CHARS


async def read_frames(*bodies: ev.EventBody, stored: int = 0) -> list[tuple[str, Any]]:
    """The frames of a followed run, each as its event and its data. `stored` bodies were there before."""

    async def replay() -> AsyncGenerator[ev.Event, None]:
        for event in log(created(), *bodies):
            yield event

    frames = [frame async for frame in AnswerFrames(RUN_ID, 0, stored and stored + 1).stream(replay())]
    fields = [dict(line.split(": ", 1) for line in frame.strip().splitlines()) for frame in frames]
    return [(one["event"], json.loads(one["data"])) for one in fields]


async def test_what_a_model_thinks_is_shown_before_its_answer() -> None:
    started = ev.AnswerStarted(tier="fast", model="m", reason="")
    thoughts = [ev.AnswerDelta(text=text, kind="reasoning") for text in ("An easy ", "one.")]
    whole = ev.AnswerFinished(text="Paris.", provider_fields={"reasoning": "An easy one."})
    bodies = (started, *thoughts, ev.AnswerDelta(text="Paris."), whole, ev.RunSucceeded())
    frames = await read_frames(*bodies)
    assert [data["text"] for name, data in frames if name == "thought"] == ["An easy ", "one."]
    lines = [data["text"] for name, data in frames if name == "progress"]
    assert lines[-3:] == ["Writing the answer", "Thinking", "Writing the answer"]
    assert [data["thought"] for name, data in frames if name == "view"][-1] == "An easy one."
    assert build_view(log(created(), *bodies))["thought"] == "An easy one.", "when it is opened again, too"


async def test_who_comes_back_gets_what_was_written_in_one_piece() -> None:
    thoughts = [ev.AnswerDelta(text=text, kind="reasoning") for text in ("An easy ", "one.")]
    pieces = [ev.AnswerDelta(text=f"Paragraph {number}.\n\n") for number in range(50)]
    earlier = [ev.AnswerStarted(tier="fast", model="m", reason=""), ev.AnswerDelta(text="Wrong")]
    bodies = [*earlier, ev.AnswerStarted(tier="fast", model="m", reason=""), *thoughts, *pieces]
    ends = [ev.AnswerDelta(text="More."), ev.AnswerFinished(text="All of it."), ev.RunSucceeded()]
    frames = await read_frames(*bodies, *ends, stored=len(bodies))
    assert [name for name, _ in frames[:2]] == ["blocks", "progress"]
    whole = frames[0][1]
    assert (whole["restart"], whole["thought"]) == (True, "An easy one.")
    assert [block["index"] for block in whole["blocks"]] == list(range(50))
    assert "Wrong" not in str(whole)
    assert frames[1][1] == {"text": "Writing the answer"}
    later = [data for name, data in frames[2:] if name == "blocks"]
    assert [data["restart"] for data in later] == [False]
    assert "More." in later[-1]["blocks"][-1]["html"]
    assert frames[-1][0] == "view"


@pytest.mark.parametrize(
    ("fields", "thought"),
    [
        ({}, ""),
        (
            {"reasoning_content": "So: 42.", "reasoning_details": [{"type": "reasoning.text", "text": "So: 42."}]},
            "So: 42.",
        ),
        ({"reasoning_details": [{"text": "First."}, {"data": "encrypted"}, {"summary": "Then."}]}, "First.\n\nThen."),
    ],
)
def test_a_thought_is_shown_once_whatever_form_it_has(fields: JsonObject, thought: str) -> None:
    assert get_thought(ev.AnswerFinished(text="42", provider_fields=fields)) == thought


def test_a_view_holds_what_people_replied_to_each_question_once() -> None:
    def decide(number: int, decision: Literal["approved", "answered", "expired"], reason: str = "") -> ev.EventBody:
        return ev.ApprovalDecided(approval_id=f"apr_{number}", decision=decision, by="anna", reason=reason)

    waits = ev.RunWaiting(approvals=("apr_1", "apr_2"))
    bodies = [waits, decide(1, "answered", "Take 3+3"), decide(2, "answered", "Take 3+3"), waits, decide(3, "approved")]
    bodies += [waits, decide(4, "approved"), waits, decide(5, "expired", "nobody decided in time")]
    assert build_view(log(created(), *bodies))["replies"] == ["Take 3+3", "approved", "approved"]


@pytest.mark.parametrize(("written", "html"), [("It **was**", "<p>It <strong>was</strong></p>\n"), ("", None)])
def test_what_was_written_when_a_model_failed_stays_in_view(written: str, html: str | None) -> None:
    failure = AgentFailure(agent_id="completion", error_code="ERR_MODEL_DOWN", message="It failed.", recoverable=True)
    events = log(created(), ev.RunFailed(failure=failure, written=written))
    view = build_view(events)
    assert (view["html"], view["text"]) == (html, "It failed.")
    assert build_view(events, html=False)["html"] is None
