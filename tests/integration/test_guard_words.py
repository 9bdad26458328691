"""What models write on the way to an answer, by the output policy of the room: plans, turns of skills, verdicts, and
the calls of a client's own tools. The answer itself is in test_guard_output.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.models import AgentRequest, Room, RoomGuards
from agent.runs.response import build_response
from tests.integration.test_engine import write_skill
from tests.integration.test_guard_output import BOB, CODED, FOREIGN, OWN, extract_visible_text, room
from tests.support.engine import engine_bench
from tests.support.script import Call, plans, says, script
from tests.support.tools import EFFECT, returning

SAID = f"Ask {BOB} with {FOREIGN}, or {OWN}, or {CODED}."
PARTS = (FOREIGN, OWN, CODED[4:-4])
SEND = {"type": "function", "function": {"name": "send", "parameters": {"type": "object", "properties": {}}}}
POLICIES: list[dict[str, str]] = [{}, {"pii": "redact"}, {"pii": "block", "secret": "block"}]
JUDGED = json.dumps({"reason": f"good: {SAID}", "evidence": SAID, "outcome": "SUCCESS", "suggested_fix": SAID})


def stored_words(guards: dict[str, str]) -> tuple[str, ...]:
    """What such a room shows to nobody."""
    return (*PARTS, BOB) if "pii" in guards else PARTS


def plain(**guards: str) -> Room:
    """A room that hands a client's tools to its model."""
    return room(**guards).model_copy(update={"planning": False})


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("guards", POLICIES)
async def test_what_a_plan_a_skill_and_a_verdict_quote_is_shown_to_nobody(
    tmp_path: Path, guards: dict[str, str]
) -> None:
    step = {"tool": "summarize", "inputs": {"task": "sum it up"}, "intent": f"sum up: {SAID}"}
    wire: Any = json.loads(plans(step, {"tool": "completion", "depends_on": ["s1"]}).reply.text)
    wire |= {"goal": SAID, "reasoning": SAID}
    model = script(
        says(json.dumps(wire), to="planner"),
        says(SAID, to="skill"),
        says(JUDGED, to="supervisor"),
        says("Ask the office.", to="completion"),
    )
    chosen = room(**guards).model_copy(update={"supervision": "always"})
    async with engine_bench(tmp_path, model, room=chosen, llm_api_key=OWN) as bench:
        events = await bench.events("please sum it up, then report")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "skill", "supervisor", "completion", "supervisor"]
    assert build_response(events).response == "Ask the office."
    whole = extract_visible_text(events)
    assert [part for part in stored_words(guards) if part in whole] == []
    assert "sum up: Ask" in whole, "the rest of the plan's words stays"


@pytest.mark.row("S003-02", "S003-42")
@pytest.mark.parametrize("guards", [*POLICIES, {"hate_speech": "block"}])
async def test_the_words_of_a_skill_that_is_the_answer_are_not_in_its_log(
    tmp_path: Path, guards: dict[str, str]
) -> None:
    hate = "immigrants are vermin"
    said = hate if "hate_speech" in guards else SAID
    model = script(
        plans({"tool": "summarize", "inputs": {"task": "sum it up"}}),
        says(said, to="skill", times=1),
        says("Ask the office.", to="skill"),
    )
    async with engine_bench(tmp_path, model, room=room(**guards), llm_api_key=OWN) as bench:
        events = await bench.events("please sum it up, then report")
    response, whole = build_response(events), extract_visible_text(events)
    assert [part for part in (*stored_words(guards), hate) if part in whole] == []
    blocks = "block" in guards.values()
    assert (response.response == "Ask the office.") is blocks
    assert [step.status for step in response.steps if step.type == "guard" and blocks] == ["retried"] * blocks


@pytest.mark.row("S002-27", "S003-02")
@pytest.mark.parametrize("guards", POLICIES)
async def test_a_call_that_a_model_wrote_as_text_goes_on_as_it_was_allowed(
    tmp_path: Path, guards: dict[str, str]
) -> None:
    """Such a turn is arguments, not words: without them the run would ask again, or do something else."""
    args = {"x": f"to {BOB}, with {FOREIGN}"}
    mail = returning("send_mail", "sent", annotations=EFFECT)
    root = write_skill(tmp_path / "skills", "mailing", "send_mail")
    model = script(
        says(json.dumps({"name": "send_mail", "arguments": args}), to="skill", times=1),
        says("Mailed.", to="skill"),
    )
    chosen = room(**guards).model_copy(update={"approval": "side_effects"})
    async with engine_bench(tmp_path / "d", model, tools=[mail], skill_roots=[root], room=chosen) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="/mailing mail Bob"))
        asked = await bench.service.wait_for_response(run_id)
        assert asked.metadata["status"] == "awaiting_approval"
        decided = await bench.service.submit_decision(run_id, "approve")
        done = await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)
        assert bench.client.purposes() == ["skill", "skill"], "no turn is asked again"
    assert (done.response, mail.calls) == ("Mailed.", [args])


@pytest.mark.row("S003-02")
async def test_a_plan_that_is_refused_is_quoted_without_keys(tmp_path: Path) -> None:
    model = script(
        says(json.dumps({"steps": SAID}), to="planner", times=1),
        plans({"tool": FOREIGN}, times=1),
        says("Ask the office."),
    )
    async with engine_bench(tmp_path, model, room=room(pii="redact"), llm_api_key=OWN) as bench:
        events = await bench.events("please search the page and report")
    assert [event.type for event in events].count("plan.rejected") == 2
    assert [part for part in stored_words({"pii": "redact"}) if part in extract_visible_text(events)] == []


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("guards", POLICIES)
@pytest.mark.parametrize("marker", ["ANSWER\n", ""])
async def test_what_a_planner_answers_is_shown_without_keys_and_personal_data(
    tmp_path: Path, guards: dict[str, str], marker: str
) -> None:
    model = script(says(f"{marker}{SAID}", to="planner", chunk=3), says("Ask the office.", to="completion"))
    async with engine_bench(tmp_path, model, room=room(**guards), llm_api_key=OWN) as bench:
        events = await bench.events("whom do I ask?")
        # An answer that the room refuses is written again by a completion, under a stricter instruction.
        assert bench.client.purposes() == ["planner"] + ["completion"] * ("secret" in guards)
    whole = extract_visible_text(events)
    assert [part for part in stored_words(guards) if part in whole] == []
    assert build_response(events).response.startswith("Ask ")


async def test_what_the_caller_wrote_stays_in_the_words_of_the_plan(tmp_path: Path) -> None:
    step = {"tool": "read_it", "inputs": {"x": BOB}, "intent": f"write to {BOB}"}
    model = script(plans(step, {"tool": "completion", "depends_on": ["s1"]}), says("Done.", to="completion"))
    tool = returning("read_it", "a page")
    async with engine_bench(tmp_path, model, tools=[tool], room=room(pii="redact")) as bench:
        events = await bench.events(f"please search the page of {BOB} and report")
    (proposed,) = [event.body.plan for event in events if isinstance(event.body, ev.PlanProposed)]
    assert (proposed.steps[0].intent, tool.calls) == (f"write to {BOB}", [{"x": BOB}])


@pytest.mark.row("S003-02")
@pytest.mark.parametrize("guards", [{}, {"pii": "redact"}])
async def test_a_call_of_a_clients_tool_carries_no_key(tmp_path: Path, guards: dict[str, str]) -> None:
    call = Call("send", {"to": [BOB], "text": f'said "{SAID}"', OWN: 1})
    model = script(says("Sending.", calls=(call,)))
    async with engine_bench(tmp_path, model, room=plain(**guards), llm_api_key=OWN) as bench:
        events = await bench.events("send it", client_tools=(SEND,))
    assert [part for part in stored_words(guards) if part in extract_visible_text(events)] == []
    (finished,) = [event.body for event in events if isinstance(event.body, ev.AnswerFinished)]
    (function,) = [told["function"] for told in finished.tool_calls]
    assert isinstance(function, dict)
    told = json.loads(str(function["arguments"]))
    assert function["name"] == "send"
    assert told["to"] == (["[removed: EMAIL]"] if guards else [BOB])
    assert told["text"].startswith('said "Ask ')


@pytest.mark.row("S003-02", "S003-04")
async def test_a_call_of_a_clients_tool_carries_what_the_caller_wrote(tmp_path: Path) -> None:
    call = Call("send", {"to": "<EMAIL_1>", "key": "<CREDENTIAL_1>"})
    chosen = plain(pii="redact").model_copy(update={"guard_input": RoomGuards.model_validate({"pii": "redact"})})
    async with engine_bench(tmp_path, script(says(calls=(call,))), room=chosen) as bench:
        events = await bench.events(f"send it to {BOB} with the token {FOREIGN}", client_tools=(SEND,))
    (finished,) = [event.body for event in events if isinstance(event.body, ev.AnswerFinished)]
    assert json.loads(str(finished.tool_calls[0]["function"]["arguments"])) == {"to": BOB, "key": FOREIGN}  # type: ignore[index, call-overload]


@pytest.mark.row("S003-42")
@pytest.mark.parametrize("by", ["pii", "secret"])
async def test_a_call_that_a_room_refuses_is_made_anew_and_then_refused(tmp_path: Path, by: str) -> None:
    bad = Call("send", {"text": f"Ask {BOB}." if by == "pii" else FOREIGN})
    for again in (False, True):
        good = bad if again else Call("send", {"text": "Ask the office."})
        model = script(says(calls=(bad,), times=1), says(calls=(good,)))
        async with engine_bench(tmp_path / str(again), model, room=plain(**{by: "block"})) as bench:
            events = await bench.events("send it", client_tools=(SEND,))
            second = str(bench.client.requests[-1]["body"])
            assert bench.client.purposes() == ["completion", "completion"]
        assert "This is strict" in second
        assert [part for part in (BOB, FOREIGN) if part in extract_visible_text(events)] == []
        last = events[-1].body
        if again:
            assert isinstance(last, ev.RunFailed)
            assert (last.failure.error_code, last.failure.agent_id) == ("ERR_GUARDRAIL_UNSAFE", "guardrails")
        else:
            (finished,) = [event.body for event in events if isinstance(event.body, ev.AnswerFinished)]
            assert "Ask the office." in str(finished.tool_calls)
