"""`/v1/ag-ui`: the AG-UI protocol over HTTP, read with the official package and checked by the verifier's rules."""

import json
from typing import Any

import httpx
import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

from tests.integration.conftest import Serve
from tests.support.script import Call, plans, says, script
from tests.support.studio import acts, concludes, intent, routes

PLANNED = script(
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("It is 42.", to="completion"),
)
ENDS = {"RUN_FINISHED", "RUN_ERROR"}
_SPANS = {
    "STEP_STARTED": ("STEP_FINISHED", "stepName"),
    "TEXT_MESSAGE_START": ("TEXT_MESSAGE_END", "messageId"),
    "TOOL_CALL_START": ("TOOL_CALL_END", "toolCallId"),
    "REASONING_START": ("REASONING_END", "messageId"),
    "SUBAGENT_STARTED": ("SUBAGENT_FINISHED", "subagentRunId"),
}


def turn(text: str, run_id: str = "r1", /, **fields: Any) -> dict[str, Any]:
    messages = [{"id": "m1", "role": "user", "content": text}] if text else []
    body = {"threadId": "t1", "runId": run_id, "protocolVersion": "1.0", "messages": messages, **fields}
    RunAgentInput.model_validate(body)
    return body


async def read(client: httpx.AsyncClient, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """The events of one turn; each is one of the protocol's, and together they pass the verifier's rules."""
    response = await client.post("/v1/ag-ui", json=body, headers=headers)
    assert response.status_code == 200, response.text
    events = [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]
    for event in events:
        TypeAdapter[Any](Event).validate_python(event)
        assert None not in event.values(), "clients before 1.0 refuse null"
    return events


def verify(events: list[dict[str, Any]]) -> None:
    """What the protocol's verifier refuses: a wrong beginning, anything open at the end, anything after it."""
    assert events[0]["type"] == "RUN_STARTED"
    assert [event["type"] for event in events if event["type"] in ENDS] == [events[-1]["type"]]
    for start, (end, name) in _SPANS.items():
        ends = {end, "SUBAGENT_ERROR"} if end == "SUBAGENT_FINISHED" else {end}
        opened: list[str] = []
        for event in events:
            if event["type"] == start:
                assert event[name] not in opened, "opened twice"
                opened.append(event[name])
            elif event["type"] in ends:
                opened.remove(event[name])
        assert opened == [], f"{start} without its end"


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.mark.row("Scard-06")
async def test_a_planned_turn_passes_the_verifier(serve: Serve) -> None:
    async with serve(PLANNED) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        events = await read(client, turn("search and compute"))
    verify(events)
    kinds = [event["type"] for event in events]
    assert (events[0]["threadId"], events[0]["runId"], events[0]["protocolVersion"]) == ("t1", "r1", "1.0")
    assert kinds[1] == "STATE_SNAPSHOT"
    plan = next(event for event in events if event["type"] == "ACTIVITY_SNAPSHOT")
    assert next(step["tool"] for step in plan["content"]["steps"]) == "calculator"
    called = next(event for event in events if event["type"] == "TOOL_CALL_START")
    result = next(event for event in events if event["type"] == "TOOL_CALL_RESULT")
    assert called["toolCallName"] == "calculator"
    assert (result["toolCallId"], result["content"]) == (called["toolCallId"], "2*21 = 42")
    assert text_of(events) == "It is 42."
    assert kinds[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"], "the final state comes before the end"
    assert events[-2]["snapshot"]["status"] == "complete"
    assert events[-1]["outcome"] == {"type": "success"}
    assert sum(usage["inputTokens"] for usage in events[-1]["usage"]) > 0


async def test_the_same_turn_is_one_run_and_can_be_read_on(serve: Serve) -> None:
    async with serve(PLANNED) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        body = turn("search and compute")
        response = await client.post("/v1/ag-ui", json=body)
        again = await read(client, body)
        ids = [int(line[4:]) for line in response.text.split("\n") if line.startswith("id: ")]
        middle = ids[len(ids) // 2]
        rest = await read(client, body, **{"Last-Event-ID": str(middle)})
        other = await client.post("/v1/ag-ui", json=turn("x", "new"), headers={"Last-Event-ID": "3"})
        wrong = await client.post("/v1/ag-ui", json=body, headers={"Last-Event-ID": "soon"})
        runs = (await client.get("/v1/runs")).json()["data"]
    assert len(runs) == 1
    verify(again)
    assert text_of(again) == "It is 42."
    assert 0 < len(rest) < len(again)
    assert rest == again[-len(rest) :]
    assert (other.status_code, wrong.status_code) == (400, 400)


EFFECT_ROOM = "name: Careful\napproval: always\nsupervision: checks\n"


async def ask(serve: Serve, tmp_path: Any, resume: Any, *, version: str | None = "1.0") -> list[list[dict[str, Any]]]:
    """A turn that waits for a person, and the one that answers with `resume(interrupt)`."""
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text(EFFECT_ROOM)
    async with serve(PLANNED, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        props: dict[str, Any] = {"forwardedProps": {"room": "careful"}}
        first = turn("search and compute", **props)
        if version is None:
            del first["protocolVersion"]
        asked = await read(client, first)
        entry = resume(asked[-1]["outcome"]["interrupts"][0])
        answered = await read(client, turn("", "r2", resume=[entry], **props))
    return [asked, answered]


async def test_a_yes_and_a_no_to_one_interrupt_decide_nothing(serve: Serve, tmp_path: Any) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text(EFFECT_ROOM)
    async with serve(PLANNED, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        props: dict[str, Any] = {"forwardedProps": {"room": "careful"}}
        asked = await read(client, turn("search and compute", **props))
        entry = {"interruptId": asked[-1]["outcome"]["interrupts"][0]["id"], "status": "resolved"}
        both = [{**entry, "payload": {"decision": decision}} for decision in ("reject", "approve")]
        refused = await client.post("/v1/ag-ui", json=turn("", "r2", resume=both, **props))
        waiting = (await client.get("/v1/approvals")).json()["data"]
    assert refused.status_code == 400
    assert "once" in refused.text
    assert len(waiting) == 1


async def test_an_approval_is_an_interrupt_that_the_next_turn_answers(serve: Serve, tmp_path: Any) -> None:
    def approve(interrupt: dict[str, Any]) -> dict[str, Any]:
        assert interrupt["responseSchema"]["properties"]["decision"]["enum"] == ["approve", "reject", "answer"]
        assert "calculator" in interrupt["message"]
        return {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "approve"}}

    asked, answered = await ask(serve, tmp_path, approve)
    verify(asked)
    verify(answered)
    assert "TOOL_CALL_START" not in [event["type"] for event in asked], "nothing was done before the answer"
    assert (answered[0]["runId"], text_of(answered)) == ("r2", "It is 42.")
    assert "PLAN" not in [event.get("activityType") for event in answered[:3]]


@pytest.mark.row("S002-49", "Scard-06")
async def test_a_sub_agent_that_waits_ends_as_suspended_and_starts_again_after_the_answer(serve: Serve) -> None:
    model = script(
        routes(intent("room_management", "create", name="Ours")),
        acts("rooms_list", times=1),
        acts("room_create", {"name": "Ours"}, times=1, call_id="a2"),
        concludes("Made Ours."),
    )
    props: dict[str, Any] = {"forwardedProps": {"room": "studio"}}
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = await read(client, turn("make a room called Ours, as the others are", **props))
        interrupt = asked[-1]["outcome"]["interrupts"][0]
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "approve"}}
        answered = await read(client, turn("", "r2", resume=[entry], **props))
    verify(asked)
    verify(answered)
    spans = [[one for one in events if one["type"].startswith("SUBAGENT_")] for events in (asked, answered)]
    assert [one["type"] for one in spans[0]] == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    assert spans[0][1]["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
    assert [one["type"] for one in spans[1]] == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    assert {one["subagentRunId"] for events in spans for one in events} == {spans[0][0]["subagentRunId"]}
    assert spans[1][1].get("outcome") is None, "it has come to its own end"
    called = [one for one in answered if one["type"] == "TOOL_CALL_START" and one["toolCallName"] == "room_create"]
    assert [one["subagentRunId"] for one in called] == [spans[0][0]["subagentRunId"]]


async def test_a_cancelled_interrupt_is_a_refusal(serve: Serve, tmp_path: Any) -> None:
    asked, answered = await ask(serve, tmp_path, lambda one: {"interruptId": one["id"], "status": "cancelled"})
    verify(asked)
    verify(answered)
    assert "TOOL_CALL_START" not in [event["type"] for event in answered]


async def test_clients_before_1_0_read_the_question_as_text(serve: Serve, tmp_path: Any) -> None:
    def reject(interrupt: dict[str, Any]) -> dict[str, Any]:
        return {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "reject"}}

    asked, _ = await ask(serve, tmp_path, reject, version=None)
    verify(asked)
    assert "protocolVersion" not in asked[0]
    assert "Approval needed" in text_of(asked)


async def test_tools_of_the_application_are_called_by_it(serve: Serve) -> None:
    tools = [{"name": "paint", "description": "Paints the page.", "parameters": {"type": "object", "properties": {}}}]
    painting = script(says("", to="completion", calls=(Call("paint", {"colour": "red"}, "c1"),)))
    async with serve(painting) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        events = await read(client, turn("paint it", tools=tools, forwardedProps={"room": "chat"}))
        ignored = await read(client, turn("6*7", "r2", tools=tools))
    verify(events)
    assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert json.loads(next(e["delta"] for e in events if e["type"] == "TOOL_CALL_ARGS")) == {"colour": "red"}
    assert next(event["value"] for event in ignored if event["type"] == "CUSTOM") == ["tools"]


async def test_tools_of_the_application_are_steps_of_a_plan(serve: Serve, tmp_path: Any) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "mine.yaml").write_text("client_tools: offer\nsupervision: checks\n")
    paint = {"name": "paint", "description": "Paints the page.", "parameters": {"type": "object", "properties": {}}}
    more = {"tools": [paint], "forwardedProps": {"room": "mine"}}
    planned = script(plans({"tool": "paint"}, {"tool": "completion"}), says("It is red.", to="completion"))
    async with (
        serve(planned, rooms_dir=tmp_path / "rooms") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        called = await read(client, turn("paint it", **more))
        (call,) = called[-1]["outcome"]["pendingToolCallIds"]
        messages = [
            {"id": "m1", "role": "user", "content": "paint it"},
            {"id": "m2", "role": "assistant",
             "toolCalls": [{"id": call, "type": "function", "function": {"name": "paint", "arguments": "{}"}}]},
            {"id": "m3", "role": "tool", "toolCallId": call, "content": "red"},
        ]  # fmt: skip
        went_on = await read(client, {**turn("", "r2", **more), "messages": messages})
    verify(called)
    verify(went_on)
    assert "CUSTOM" not in [event["type"] for event in called], "the tools are not ignored"
    assert text_of(went_on) == "It is red."


async def test_a_failed_run_ends_in_one_error(serve: Serve) -> None:
    broken = script(says("x", to="completion", fault="status_400"))
    async with serve(broken) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        events = await read(client, turn("hello there, who are you?", forwardedProps={"room": "chat"}))
    verify(events)
    assert events[-1]["type"] == "RUN_ERROR"
    assert events[-1]["code"].startswith("ERR_MODEL")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "threadId"),
        ({"threadId": "t", "runId": "r"}, "messages"),
        ({"threadId": " ", "runId": "r", "messages": []}, "threadId"),
        ({"threadId": "t" * 300, "runId": "r", "messages": []}, "threadId"),
        ({"threadId": "t", "runId": "r", "messages": []}, "messages"),
        ({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "poet", "content": "x"}]}, "messages.0"),
        (turn("x", forwardedProps={"room": 7}), "forwardedProps.room"),
        (turn("", resume=[{"interruptId": "a", "status": "resolved"}]), "resume"),
    ],
)
async def test_a_wrong_input_is_named(serve: Serve, body: dict[str, Any], param: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        response = await client.post("/v1/ag-ui", json=body)
        runs = (await client.get("/v1/runs")).json()["data"]
    error = response.json()["error"]
    assert (response.status_code, error["details"]["param"]) == (400, param)
    assert runs == []


async def test_a_conversation_with_parts_and_context_reaches_the_model(serve: Serve) -> None:
    messages = [
        {"id": "1", "role": "user", "content": "My name is Ada."},
        {"id": "2", "role": "assistant", "content": "Hello Ada."},
        {"id": "3", "role": "activity", "activityType": "PLAN", "content": {}},
        {"id": "4", "role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    context = [{"description": "open page", "value": "Profile"}]
    hears = script(says("You are Ada on the profile page.", to="completion", about="Profile"))
    async with serve(hears) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        body = turn("", messages=messages, context=context, forwardedProps={"room": "chat"})
        events = await read(client, body)
    assert text_of(events) == "You are Ada on the profile page."
