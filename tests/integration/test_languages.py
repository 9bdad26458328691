"""A Swede asks in Swedish: planned in English, answered in Swedish, every translation a line of the trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.models import AgentRequest, AgentResponse, Room
from agent.runs.response import build_response
from tests.support.engine import engine_bench
from tests.support.script import Rule, plans, says, script
from tests.support.tools import returning

ASKED = "Jämför de två anbuden och säg vilket som är billigast, se `anbud.md`"
ENGLISH = "Compare the two offers and say which is cheapest, see ⟦1⟧"
ANSWERED = "Offer A is cheaper [1]."
SWEDISH = "Anbud A är billigare"


def translations(response: AgentResponse) -> list[tuple[str, str]]:
    return [(step.title, step.status) for step in response.steps if step.type == "translation"]


def rules(request: Rule | None = None, answer: Rule | None = None) -> list[Rule]:
    return [
        request or says(ENGLISH, to="translator", about="<request>"),
        answer or says(f"{SWEDISH} ⟦1⟧.", to="translator", about="<answer>"),
        plans({"tool": "offers"}, {"tool": "completion", "depends_on": ["s1"]}),
        says(ANSWERED, to="completion"),
    ]


async def ask(folder: Path, *script_rules: Rule, prompt: str = ASKED, **settings: Any) -> tuple[AgentResponse, Any]:
    offers = returning("offers", "A costs 10, B costs 20")
    async with engine_bench(folder, script(*script_rules), tools=[offers], **settings) as bench:
        events = await bench.events(prompt)
        return build_response(events), (bench.client, events)


@pytest.mark.row("S001-39", "S001-40")
async def test_it_is_planned_in_english_and_answered_in_swedish(tmp_path: Path) -> None:
    response, (client, events) = await ask(tmp_path, *rules())
    assert response.response == "Anbud A är billigare [1]."
    assert client.purposes() == ["translator", "planner", "completion", "translator"]
    planner, completion, last = (json.dumps(request["body"]["messages"]) for request in client.requests[1:4])
    assert "which is cheapest, see `anbud.md`" in planner
    assert "billigast" not in planner
    assert "which is cheapest" in completion
    assert "Offer A is cheaper \\u27e61\\u27e7." in last, "the citation stands behind a sign"
    assert translations(response) == [
        ("translated the request from Swedish", "done"),
        ("translated the answer into Swedish", "done"),
    ]
    assert response.metadata["runtime"]["language"] == {
        "detected": "sv",
        "planned_in": "en",
        "answered_in": "sv",
        "original": ASKED,
        "fallback_reason": None,
    }
    streamed = "".join(e.body.text for e in events if isinstance(e.body, ev.AnswerDelta))
    assert streamed == response.response, "nobody sees the English answer first"


@pytest.mark.row("S001-41")
@pytest.mark.parametrize("fault", ["status_401", "garbage", "half_stream"])
async def test_a_translator_that_fails_at_the_end_leaves_the_english_answer(tmp_path: Path, fault: str) -> None:
    broken = says("Anbud A", to="translator", about="<answer>", fault=fault)
    response, _ = await ask(tmp_path, *rules(answer=broken))
    assert response.response == ANSWERED
    assert translations(response)[1] == ("the answer was not translated into Swedish", "failed")
    assert "could not be translated into Swedish" in response.metadata["uncertainties"][0]["message"]


@pytest.mark.row("S001-41")
@pytest.mark.parametrize(
    "broken",
    [
        says("", to="translator", about="<request>", fault="status_401"),
        says("the sign is lost", to="translator", about="<request>"),
        says("", to="translator", about="<request>"),
        says(ENGLISH, to="translator", about="<request>", finish_reason="length"),
    ],
)
async def test_a_request_that_cannot_be_translated_goes_on_as_it_stands(tmp_path: Path, broken: Rule) -> None:
    response, (client, _) = await ask(tmp_path, *rules(request=broken))
    assert response.response == ANSWERED
    assert translations(response) == [("the request (Swedish) was not translated", "failed")]
    assert "request, in Swedish," in json.dumps(client.requests[-1]["body"]["messages"])
    assert response.metadata["runtime"]["language"]["planned_in"] == "sv"


async def test_it_can_be_turned_off(tmp_path: Path) -> None:
    said = says("Anbud A är billigast.", to="completion")
    planned = plans({"tool": "offers"}, {"tool": "completion", "depends_on": ["s1"]})
    response, (client, _) = await ask(tmp_path, planned, said, prompt=f"{ASKED} search", translate="off")
    assert response.response == "Anbud A är billigast."
    assert "translator" not in client.purposes()
    assert "request, in Swedish," in json.dumps(client.requests[-1]["body"]["messages"])


async def test_an_answer_that_is_in_the_language_already_is_left_alone(tmp_path: Path) -> None:
    swedish = says("Det billigaste anbudet är det första anbudet.", to="completion")
    response, (client, _) = await ask(tmp_path, *rules()[:3], swedish)
    assert response.response == "Det billigaste anbudet är det första anbudet."
    assert client.purposes().count("translator") == 1
    assert response.metadata["runtime"]["language"]["answered_in"] == "sv"


async def test_without_a_model_it_is_said_and_nothing_stops(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run("Hej, vad är klockan i Stockholm?")
    assert "(Europe/Stockholm)" in response.response
    assert translations(response) == [("the request (Swedish) was not translated", "failed")]


async def test_a_plain_room_and_background_prompts_are_never_translated(tmp_path: Path) -> None:
    model = script(says("Hej hej, jag mår bra.", to="completion"), says("{}", to="task"))
    async with engine_bench(tmp_path, model, room=Room(id="test", planning=False)) as bench:
        plain = await bench.run("Hej, hur mår du i dag egentligen?")
        await bench.run("### Task:\nSkriv en rubrik för den här konversationen på svenska")
        assert "translator" not in bench.client.purposes()
    assert plain.response == "Hej hej, jag mår bra."


async def test_a_run_that_was_interrupted_while_translating_begins_the_translation_again(tmp_path: Path) -> None:
    held = says(f"{SWEDISH} ⟦1⟧.", to="translator", about="<answer>", delay_s=30)
    offers = returning("offers", "A costs 10, B costs 20")
    async with engine_bench(tmp_path, script(*rules(answer=held)), tools=[offers]) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt=ASKED))
        async for event in bench.service.follow_events(run_id):
            if event.type == "gate.checked":
                break
    async with engine_bench(tmp_path, script(*rules()), tools=[offers]) as bench:
        await bench.service.worker.recover_runs()
        response = await bench.service.wait_for_response(run_id)
        assert bench.client.purposes() == ["translator"], "only what was missing is done"
    assert response.response == "Anbud A är billigare [1]."
