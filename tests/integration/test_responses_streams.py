"""`/v1/responses` as a stream: typed events, resumed from any number, in the background, cancelled."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.integration.conftest import Serve
from tests.integration.test_openai_door import ASK, MODEL, STEPS, sdk
from tests.integration.test_responses import TOOL, approval
from tests.integration.test_responses import rooms as rooms  # noqa: PLC0414 - a fixture
from tests.support.script import Call, plans, says, script
from tests.support.scripted_server import ScriptedServer

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


async def frames(url: str, **body: Any) -> list[dict[str, Any]]:
    """The frames of a stream as they are on the wire; each names its event."""
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/responses", json={"stream": True, **body}) as response,
    ):
        assert response.status_code == 200
        return await read_frames(response)


async def resumed(url: str, response_id: str, after: int | None = None) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"stream": "true"} | ({} if after is None else {"starting_after": after})
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("GET", f"{url}/v1/responses/{response_id}", params=params) as response,
    ):
        assert response.status_code == 200
        return await read_frames(response)


async def read_frames(response: httpx.Response) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            frame = json.loads(line.removeprefix("data: "))
            assert frame["type"] == name
            found.append(frame)
    return found


def check_events(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every frame has its type, numbers rise, items open before they change. Returns the last response."""
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    opened: list[str] = []
    for event in events:
        EVENT.validate_python(event)
        if event["type"] == "response.output_item.added":
            assert event["output_index"] == len(opened)
            opened.append(event["item"]["id"])
        elif "item_id" in event:
            assert opened[event["output_index"]] == event["item_id"]
    last: dict[str, Any] = events[-1]["response"]
    Response.model_validate(last)
    done = {e["output_index"]: e["item"] for e in events if e["type"] == "response.output_item.done"}
    ended = [done[index] for index in sorted(done)]
    messages = [item for item in ended if item["type"] == "message"]
    replaced = [item for item in messages[:-1] if item["status"] == "incomplete"]
    assert [item for item in ended if item not in replaced] == last["output"]
    return last


def text_of(events: Sequence[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def test_the_sdk_accumulates_the_stream(serve: Serve) -> None:
    async with (
        serve(MODEL) as url,
        sdk(url) as client,
        client.responses.stream(model="stepgate", input=ASK) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == "It is 42, as computed."
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.mcp_call.completed") == 2
    assert "response.reasoning_summary_text.done" in kinds


@pytest.mark.parametrize("model", ["stepgate", "chat"])
async def test_every_event_has_its_declared_type(serve: Serve, model: str) -> None:
    answer = script(*MODEL.rules[:1], says("It is 42.", to="completion", reasoning="Let me think.", chunk=2))
    async with serve(answer) as url:
        events = await frames(url, model=model, input=ASK)
        response = check_events(events)
        replayed = await resumed(url, response["id"])
    assert text_of(events) == "It is 42."
    assert [e["text"] for e in events if e["type"] == "response.reasoning_text.done"] == ["Let me think."]
    assert any(e["type"] == "response.reasoning_text.delta" for e in events)
    assert replayed[-1] == events[-1]


@pytest.mark.parametrize("model", ["stepgate", "chat"])
async def test_a_stream_is_resumed_after_any_event(serve: Serve, model: str) -> None:
    """The journal has dropped the pieces of the text by then; nothing is missing or repeated nonetheless."""
    answer = script(*MODEL.rules[:1], says("It is 42, said Ada.", to="completion", reasoning="So: 6*7.", chunk=3))
    async with serve(answer) as url:
        events = await frames(url, model=model, input=ASK)
        response_id = events[0]["response"]["id"]
        for place, event in enumerate(events):
            rest = await resumed(url, response_id, event["sequence_number"])
            assert text_of(events[: place + 1]) + text_of(rest) == "It is 42, said Ada."
            kinds = [e["type"] for e in events[place + 1 :] if not e["type"].endswith("text.delta")]
            assert [e["type"] for e in rest if not e["type"].endswith("text.delta")] == kinds
            numbers = [e["sequence_number"] for e in rest if not e["type"].endswith("text.delta")]
            after = [e["sequence_number"] for e in events[place + 1 :] if not e["type"].endswith("text.delta")]
            assert numbers == after


async def test_calls_of_the_clients_functions_are_streamed(serve: Serve) -> None:
    model = script(says("", to="completion", calls=(Call("mine", {"a": 1}, id="c9"),)))
    async with serve(model) as url, sdk(url) as client:
        check_events(await frames(url, model="chat", input="use mine", tools=[TOOL]))
        async with client.responses.stream(model="chat", input="use mine", tools=[TOOL]) as stream:
            final = await stream.get_final_response()
    (call,) = final.output
    assert call.type == "function_call"
    assert (call.call_id, json.loads(call.arguments)) == ("c9", {"a": 1})


async def test_a_custom_tool_is_called_with_a_text_beside_tools_that_are_left_out(
    serve: Serve, model_server: ScriptedServer
) -> None:
    model = script(
        says("", to="completion", calls=(Call("patch", {"input": "*** Begin"}, id="c9"),), times=1),
        says("Patched.", to="completion"),
    )
    tools: Any = [{"type": "custom", "name": "patch", "description": "Edit."}, TOOL, {"type": "web_search"}]
    async with serve(model) as url, sdk(url) as client:
        async with client.responses.stream(model="chat", input="patch it", tools=tools) as stream:
            asked = await stream.get_final_response()
        (call,) = asked.output
        output: Any = {"type": "custom_tool_call_output", "call_id": "c9", "output": "done"}
        history: Any = [{"role": "user", "content": "patch it"}, call.to_dict(), output]
        done = await client.responses.create(model="chat", tools=tools, input=history)
    assert call.type == "custom_tool_call"
    assert (call.call_id, call.name, call.input) == ("c9", "patch", "*** Begin")
    assert done.output_text == "Patched."
    first, last = [request["body"] for request in model_server.requests()]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["patch", TOOL["name"]]
    assert json.loads(last["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"input": "*** Begin"}
    shown: Any = done.to_dict()
    assert shown["stepgate"]["runtime"]["ignored_parameters"] == ["tools.web_search"]


async def test_an_approval_ends_one_stream_and_starts_another(serve: Serve, rooms: Any) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url:
        asked = await frames(url, model="careful", input=ASK)
        first = check_events(asked)
        reply = [approval(first["output"][-1]["id"], approve=True)]
        went_on = await frames(url, model="careful", input=reply, previous_response_id=first["id"])
        second = check_events(went_on)
        again = await resumed(url, first["id"])
    assert first["output"][-1]["type"] == "mcp_approval_request"
    assert first["status"] == "completed"
    assert text_of(went_on) == "It is 42, as computed."
    assert second["previous_response_id"] == first["id"]
    assert [(e["type"], e["sequence_number"]) for e in again] == [(e["type"], e["sequence_number"]) for e in asked]


async def test_a_stream_in_the_background_is_left_and_resumed(serve: Serve) -> None:
    model = script(plans(*STEPS), says("It is 42.", to="completion", delay_s=0.5))
    async with serve(model) as url, sdk(url) as client:
        seen = -1
        response_id = ""
        stream = await client.responses.create(model="stepgate", input=ASK, background=True, stream=True)
        async for event in stream:
            seen = event.sequence_number
            if event.type == "response.created":
                response_id = event.response.id
            if event.type == "response.mcp_call.completed":
                break
        await stream.close()
        rest = await client.responses.retrieve(response_id, stream=True, starting_after=seen)
        events = [event async for event in rest]
    assert events[0].sequence_number == seen + 1
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "It is 42."
    assert events[-1].response.background is True


async def test_the_background_is_polled_and_cancelled(serve: Serve) -> None:
    model = script(plans(*STEPS), says("It is 42.", to="completion", delay_s=1.0))
    async with serve(model) as url, sdk(url) as client:
        started = await client.responses.create(model="stepgate", input=ASK, background=True)
        assert started.status == "in_progress"
        with pytest.raises(openai.BadRequestError) as early:
            await client.responses.create(model="stepgate", input="and?", previous_response_id=started.id)
        with pytest.raises(openai.BadRequestError):
            await client.responses.delete(started.id)
        response = started
        async with asyncio.timeout(20):
            while response.status == "in_progress":
                response = await client.responses.retrieve(started.id)
        assert response.output_text == "It is 42."
        with pytest.raises(openai.BadRequestError):
            await client.responses.cancel(started.id)
        stopped = await client.responses.create(model="stepgate", input=ASK, background=True)
        cancelled = await client.responses.cancel(stopped.id)
        twice = await client.responses.cancel(stopped.id)
    assert early.value.code == "response_in_progress"
    assert cancelled.status == "cancelled"
    assert twice.to_dict() == cancelled.to_dict()


async def test_a_cancelled_question_is_no_longer_open(serve: Serve, rooms: Any) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, sdk(url) as client:
        asked = await client.responses.create(model="careful", input=ASK)
        cancelled = await client.responses.cancel(asked.id)
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="careful", input=[approval(asked.output[-1].id or "", approve=True)])
    assert cancelled.status == "cancelled"


@pytest.mark.parametrize(("fault", "status"), [("status_500", 502), ("status_429", 429), ("context", 400)])
async def test_a_model_that_fails_is_a_status_and_a_failed_response(serve: Serve, fault: str, status: int) -> None:
    model = script(says("something", to="completion", fault=fault, retry_after=0))
    async with serve(model) as url, sdk(url) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.responses.create(model="chat", input="hi")
        with pytest.raises(openai.APIStatusError) as streamed:
            await client.responses.create(model="chat", input="hi", stream=True)
        run_id = caught.value.response.headers["x-stepgate-run-id"]
        read = await client.responses.retrieve(f"resp_{run_id.removeprefix('run_')}")
    assert (caught.value.status_code, streamed.value.status_code) == (status, status)
    assert read.status == "failed"
    assert read.error is not None
    assert read.error.code == (
        "rate_limit_exceeded" if status == 429 else "invalid_prompt" if status == 400 else "server_error"
    )


async def test_a_failure_after_the_first_byte_is_an_event(serve: Serve) -> None:
    model = script(says("It is a long answer.", to="completion", chunk=2, pause_s=0.05, fault="half_stream"))
    async with serve(model) as url:
        events = await frames(url, model="chat", input="hi")
    response = check_events(events)
    assert events[-1]["type"] == "response.failed"
    assert response["status"] == "failed"
    assert response["output"][0]["status"] == "incomplete"


async def test_an_answer_that_was_begun_again_is_in_the_response_once(serve: Serve) -> None:
    broken = says("It is a long answer.", to="completion", times=1, chunk=2, fault="half_stream")
    model = script(broken, says("It is a long answer.", to="completion", chunk=2))
    async with serve(model) as url, sdk(url) as client:
        response = await client.responses.create(model="chat", input="hi")
        read = await client.responses.retrieve(response.id)
    assert (response.status, response.output_text, read.output_text) == ("completed", *["It is a long answer."] * 2)
