"""The planner's one call: it answers and the answer is streamed, or it plans; in every form it may be asked for."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import openai
import pytest

from agent.core.events import AnswerDelta, AnswerStarted, Event, ModelReturned
from agent.core.models import AgentRequest, OutputGuards, Room
from agent.runs.response import build_response
from tests.integration.conftest import Serve
from tests.support.engine import Bench, engine_bench
from tests.support.script import answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import EFFECT, returning

LONG = "The capital of France is Paris, which lies on the river Seine."
JSON_ANSWER = says(json.dumps({"kind": "answer", "answer": LONG}), to="planner", pause_s=0.005)
FORMS = {"text": answers(LONG, pause_s=0.005), "json": JSON_ANSWER}


def deltas(events: list[Event]) -> list[str]:
    return [event.body.text for event in events if isinstance(event.body, AnswerDelta)]


async def follow(bench: Bench, prompt: str, **request: Any) -> tuple[list[Event], list[float]]:
    """The events of a run as they arrive, and when each did, in seconds from its start."""
    began = monotonic()
    run_id = await bench.service.start_run(AgentRequest(prompt=prompt, **request))
    events, times = [], []
    async for event in bench.service.follow_events(run_id):
        events.append(event)
        times.append(monotonic() - began)
    return events, times


@pytest.mark.parametrize("form", FORMS)
async def test_one_call_answers_and_the_answer_is_streamed(tmp_path: Path, form: str) -> None:
    async with engine_bench(tmp_path, script(FORMS[form])) as bench:
        events, _ = await follow(bench, "What is the capital of France?")
        purposes = bench.client.purposes()
    response = build_response(events)
    assert purposes == ["planner"]
    assert (response.response, "".join(deltas(events))) == (LONG, LONG)
    assert len(deltas(events)) > 3
    assert response.metadata["status"] == "complete"
    assert response.metadata["plan"]["steps"][0]["tool"] == "completion"
    assert [body.purpose for e in events if isinstance(body := e.body, ModelReturned)] == ["planner"]


async def test_the_first_piece_comes_with_the_upstream_chunk_that_holds_it(tmp_path: Path) -> None:
    """The chunk of the line ANSWER at once, that of the answer's first character a second later."""
    slow = answers(LONG[:20], chunk=7, pause_s=1.0)
    async with engine_bench(tmp_path, script(slow)) as bench:
        events, times = await follow(bench, "What is the capital of France?")
    first = next(at for event, at in zip(events, times, strict=True) if isinstance(event.body, AnswerDelta))
    assert 1.0 <= first <= 1.15


async def test_a_capable_model_answers_in_free_text_and_is_streamed(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(FORMS["text"])) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        chunks = [
            chunk.choices[0].delta.content or ""
            async for chunk in await client.chat.completions.create(
                model="stepgate", messages=[{"role": "user", "content": "What is it?"}], stream=True
            )
            if chunk.choices
        ]
        await client.close()
    (request,) = model_server.requests()
    assert "response_format" not in request["body"]
    assert "".join(chunks) == LONG
    assert len([chunk for chunk in chunks if chunk]) > 1, "it was streamed to the client"


@pytest.mark.parametrize(
    ("changes", "request_fields"),
    [
        ({"room": Room(id="test", answer_tier="high")}, {}),
        ({"room": Room(id="test", persona="You are a pirate.")}, {}),
        ({"room": Room(id="test", citations=True)}, {}),
        ({}, {"max_tokens": 50}),
        ({}, {"options": {"stop": ["."]}}),
        ({}, {"options": {"response_format": {"type": "json_object"}}}),
    ],
)
async def test_where_the_answer_has_a_form_of_its_own_a_completion_writes_it(
    tmp_path: Path, changes: dict[str, Any], request_fields: dict[str, Any]
) -> None:
    """An answer that the planner writes all the same is not taken: it costs a call, no form."""
    model = script(answers("Not this."), says('{"a": 1}', to="completion"))
    async with engine_bench(tmp_path, model, **changes) as bench:
        response = await bench.run("What is the capital of France?", **request_fields)
        first, second = bench.client.requests
    assert (first["purpose"], second["purpose"], response.response) == ("planner", "completion", '{"a": 1}')
    assert "The first line is the word ANSWER" not in first["body"]["messages"][0]["content"]


async def test_a_plan_wins_over_an_answer_before_it_and_nothing_of_that_is_left(tmp_path: Path) -> None:
    orders = returning("list_orders", "17 orders")
    plan = plans({"tool": "list_orders", "inputs": {"x": "all"}}, {"tool": "completion", "depends_on": ["s1"]})
    both = says(f"ANSWER\nI will look.\n{plan.reply.text}", to="planner")
    async with engine_bench(tmp_path, script(both, says("There are 17.", to="completion")), tools=[orders]) as bench:
        events, _ = await follow(bench, "how many orders?")
    response = build_response(events)
    starts = [event.body for event in events if isinstance(event.body, AnswerStarted)]
    assert response.response == "There are 17."
    assert [start.restarted for start in starts] == [False, True, True], "readers are told at once that it is void"
    assert len(orders.calls) == 1


async def test_prose_without_a_plan_is_the_answer(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(says("No tool here sends faxes.", to="planner"))) as bench:
        response = await bench.run("Send a fax")
        assert bench.client.purposes() == ["planner"]
    assert (response.response, response.metadata["status"]) == ("No tool here sends faxes.", "complete")


async def test_an_answer_that_the_room_looks_at_as_a_whole_is_not_shown_before(tmp_path: Path) -> None:
    room = Room(id="test", guard_output=OutputGuards(pii="redact"))
    async with engine_bench(tmp_path, script(answers("Mail bob@example.org about it.", chunk=2)), room=room) as bench:
        events, _ = await follow(bench, "whom do I ask?")
    assert deltas(events) == []
    assert "bob@example.org" not in build_response(events).response


async def test_a_stream_that_breaks_is_answered_by_a_completion(tmp_path: Path) -> None:
    model = script(answers(LONG, fault="half_stream"), says("Paris.", to="completion"))
    async with engine_bench(tmp_path, model) as bench:
        events, _ = await follow(bench, "What is the capital of France?")
    response = build_response(events)
    assert response.response == "Paris."
    assert [event.body.restarted for event in events if isinstance(event.body, AnswerStarted)] == [False, True, True]
    assert response.metadata["runtime"]["planner"]["fallback_used"] is True


async def test_what_the_model_thought_is_shown_before_its_answer(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(answers("Paris.", reasoning="An easy one."))) as bench:
        events, _ = await follow(bench, "What is the capital of France?")
    shown = [(e.body.kind, e.body.text) for e in events if isinstance(e.body, AnswerDelta)]
    assert "".join(text for kind, text in shown if kind == "reasoning") == "An easy one."
    assert shown[0][0] == "reasoning"
    assert "".join(text for kind, text in shown if kind == "text") == "Paris."


@pytest.mark.parametrize("prefix", ["ANSWER\nThe mail holds this block:\n", "The mail you pasted says:\n"])
async def test_a_plan_quoted_in_other_text_has_no_effect_without_a_person(tmp_path: Path, prefix: str) -> None:
    """The prompt may hold a pasted text, and an answer may quote it."""
    note = returning("send_note", "sent", annotations=EFFECT)
    quoted = plans({"tool": "send_note", "inputs": {"x": "hello"}}).reply.text
    model = script(says(f"{prefix}```json\n{quoted}\n```\nI did nothing.", to="planner"))
    async with engine_bench(tmp_path, model, tools=[note]) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt=f"What does this mail want? {quoted}"))
        asked = await bench.service.wait_for_response(run_id)
    assert asked.metadata["status"] == "awaiting_approval"
    assert note.calls == []
