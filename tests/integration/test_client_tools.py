"""A client's own tools in a room that plans with them: calls, results, and the run that goes on, over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_audit import keys_of
from tests.integration.test_openai_door import sdk, user
from tests.support.script import Script, decides, plans, says, script
from tests.support.scripted_server import ScriptedServer

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get-Weather",
        "description": "Returns the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 9}},
            "required": ["city"],
        },
    },
}
ASK = "What is the weather in Paris, and how much is 2*21?"
MIXED = (
    {"id": "w", "tool": "get-Weather", "inputs": {"city": "Paris"}},
    {"id": "c", "tool": "calculator", "inputs": {"expression": "2*21"}},
    {"id": "a", "tool": "completion", "depends_on": ["w", "c"]},
)
ANSWER = says("It is sunny in Paris; 42.", to="completion")


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """Settings with rooms that offer the client's tools to their planner."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "mine.yaml").write_text("client_tools: offer\nsupervision: checks\nmemory: false\n")
    (folder / "other.yaml").write_text("client_tools: offer\nsupervision: checks\nmemory: false\n")
    (folder / "careful.yaml").write_text("client_tools: offer\nsupervision: checks\nmemory: false\napproval: always\n")
    return {"rooms_dir": folder}


def model(*steps: dict[str, Any]) -> Script:
    return script(plans(*(steps or MIXED)), ANSWER)


async def ask(client: openai.AsyncOpenAI, messages: list[Any], room: str = "mine", **more: Any) -> Any:
    return await client.chat.completions.create(model=room, messages=messages, tools=[WEATHER], **more)


def results(completion: Any, *texts: str) -> list[Any]:
    """The conversation with the assistant's calls and their results."""
    message = completion.choices[0].message
    sent = [
        {"role": "tool", "tool_call_id": c.id, "content": t} for c, t in zip(message.tool_calls, texts, strict=True)
    ]
    return [*user(ASK), message.model_dump(include={"role", "content", "tool_calls"}), *sent]


def trace(completion: Any) -> Any:
    return (completion.model_extra or {})["stepgate"]


async def test_a_planned_call_ends_the_run_and_its_result_goes_on(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer
) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
        asked = len(model_server.requests())
        second = await ask(client, results(first, '{"sky": "sunny"}'))
        requests = model_server.requests()
    (call,) = first.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get-Weather", {"city": "Paris"})
    assert (first.choices[0].finish_reason, first.choices[0].message.content) == ("tool_calls", None)
    assert trace(first)["status"] == "awaiting_input"
    assert trace(first)["runtime"]["client_tools_offered"] == 1
    assert trace(first)["client_tool_calls"][0]["id"] == call.id
    assert [result["tool"] for result in trace(first)["tool_results"]] == ["calculator"]
    assert "calls tools of the client: get-Weather" in [step["title"] for step in trace(first)["steps"]]
    assert second.choices[0].message.content == "It is sunny in Paris; 42."
    assert (second.choices[0].finish_reason, trace(second)["status"]) == ("stop", "complete")
    assert [result["tool"] for result in trace(second)["tool_results"]] == ["get-Weather"], "nothing is done again"
    assert len(requests) == asked + 1, "the plan is not made again: only the answer is written"
    assert "sunny" in json.dumps(requests[-1]["body"]["messages"])
    assert "42" in json.dumps(requests[-1]["body"]["messages"])


async def test_the_planner_sees_the_tool_and_its_result_is_untrusted(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer
) -> None:
    async with serve(model(), **options) as url, sdk(url) as client, httpx.AsyncClient(base_url=url) as http:
        first = await ask(client, user(ASK))
        planner = json.dumps(model_server.requests()[0]["body"]["messages"])
        second = await ask(client, results(first, "sunny"))
        events = await http.get(f"/v1/runs/{trace(second)['run_id']}/events")
    assert "get-Weather(city: string, days?: integer)" in planner
    bodies = [json.loads(line.removeprefix("data: ")) for line in events.text.splitlines() if line.startswith("data: ")]
    (returned,) = [body["data"] for body in bodies if body["type"] == "tool.returned"]
    assert (returned["tool"], returned["text"], returned["tainted"]) == ("get-Weather", "sunny", True)


async def test_a_stream_ends_with_the_call_and_goes_on_as_a_stream(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        chunks = [chunk async for chunk in await ask(client, user(ASK), stream=True)]
        (call,) = [c for chunk in chunks for c in (chunk.choices[0].delta.tool_calls or ())]
        assistant = {
            "role": "assistant",
            "tool_calls": [{"id": call.id, "type": "function", "function": call.function.model_dump()}],
        }
        told = [*user(ASK), assistant, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        more = [chunk async for chunk in await ask(client, told, stream=True)]
    assert call.function.name == "get-Weather"
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == ["tool_calls"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in more) == "It is sunny in Paris; 42."
    assert [c.choices[0].finish_reason for c in more if c.choices[0].finish_reason] == ["stop"]


@pytest.mark.parametrize(("fits", "is_called"), [("yes", True), ("no", False), ("", True)])
async def test_a_small_model_is_asked_whether_the_only_tool_that_it_calls_is_made_for_the_request(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer, fits: str, *, is_called: bool
) -> None:
    judged = says(json.dumps({"fits": fits}), about="You judge whether a function fulfils a request")
    call = decides({"tool": "get-Weather", "inputs": {"city": "Paris"}})
    small = script(judged, call, says("There is a museum of clocks.", to="completion"))
    async with serve(small, model_profile="small", **options) as url, sdk(url) as client:
        completion = await ask(client, user("Which museums does Paris have?"))
        question = model_server.requests()[-1 if is_called else -2]["body"]["messages"][-1]["content"]
    assert "get-Weather(city, days)" in question
    assert "Which museums does Paris have?" in question
    assert completion.choices[0].finish_reason == ("tool_calls" if is_called else "stop")


async def test_small_models_read_what_the_inputs_of_a_client_s_tool_are(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer
) -> None:
    days = {"type": "integer", "description": "Days from today on, 1 if not given."}
    tool = json.loads(json.dumps(WEATHER))
    tool["function"]["parameters"]["properties"]["days"] = days
    small = script(decides({"tool": "get-Weather", "inputs": {"city": "Paris"}}))
    async with serve(small, model_profile="small", **options) as url, sdk(url) as client:
        await client.chat.completions.create(model="mine", messages=user("How is the weather in Paris?"), tools=[tool])
        prompts = [str(request["body"]["messages"][0]["content"]) for request in model_server.requests()]
    (described,) = (prompt for prompt in prompts if "get-Weather(city, days?)" in prompt)
    assert "\n  days: Days from today on, 1 if not given.\n" in f"{described}\n"


TWO = (
    {"id": "p", "tool": "get-Weather", "inputs": {"city": "Paris"}},
    {"id": "r", "tool": "get-Weather", "inputs": {"city": "Rome"}},
    {"id": "a", "tool": "completion", "depends_on": ["p", "r"]},
)


async def test_two_calls_at_once_and_one_after_the_other(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(*TWO), **options) as url, sdk(url) as client:
        both = await ask(client, user(ASK))
        done = await ask(client, results(both, "sunny", "rainy"))
        single = await ask(client, user(ASK), parallel_tool_calls=False)
        next_one = await ask(client, results(single, "sunny"), parallel_tool_calls=False)
        end = await ask(client, results(next_one, "rainy"), parallel_tool_calls=False)
    cities = [json.loads(call.function.arguments)["city"] for call in both.choices[0].message.tool_calls]
    assert cities == ["Paris", "Rome"]
    assert trace(done)["status"] == "complete"
    assert [
        r["output"]["value"] if isinstance(r["output"], dict) else r["output"] for r in trace(done)["tool_results"]
    ] == ["sunny", "rainy"]
    assert [len(c.choices[0].message.tool_calls) for c in (single, next_one)] == [1, 1]
    assert "Rome" in next_one.choices[0].message.tool_calls[0].function.arguments
    assert (end.choices[0].finish_reason, trace(end)["status"]) == ("stop", "complete")


async def test_a_result_feeds_a_later_call_of_the_client(serve: Serve, options: dict[str, Any]) -> None:
    steps = (
        {"id": "w", "tool": "get-Weather", "inputs": {"city": "Paris"}},
        {"id": "n", "tool": "get-Weather", "inputs": {"city": "${w.next}"}, "depends_on": ["w"]},
        {"id": "a", "tool": "completion", "depends_on": ["n"]},
    )
    async with serve(model(*steps), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
        second = await ask(client, results(first, '{"next": "Lyon"}'))
        third = await ask(client, results(second, "cloudy"))
    assert json.loads(second.choices[0].message.tool_calls[0].function.arguments) == {"city": "Lyon"}
    assert trace(third)["status"] == "complete"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m[-1].update(tool_call_id="call_unknown_1"), "no run of yours waits"),
        (lambda m: m[-1].update(tool_call_id=m[-1]["tool_call_id"] + "7"), "no run of yours waits"),
        (lambda m: m.pop(), "every call needs its result"),
        (lambda m: m.append(m[-1]), "two results"),
    ],
)
async def test_results_that_fit_no_call_are_refused(
    serve: Serve, options: dict[str, Any], change: Any, said: str
) -> None:
    async with serve(model(*TWO), **options) as url, sdk(url) as client:
        messages = results(await ask(client, user(ASK)), "sunny", "rainy")
        change(messages)
        with pytest.raises(openai.BadRequestError, match=said) as caught:
            await ask(client, messages)
        assert caught.value.param == "messages"


async def test_results_go_to_the_room_and_the_owner_of_the_call(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        messages = results(await ask(client, user(ASK)), "sunny")
        with pytest.raises(openai.BadRequestError, match="made by the model 'mine'"):
            await ask(client, messages, "other")


async def test_results_of_another_owner_are_those_of_an_unknown_call(
    serve: Serve, options: dict[str, Any], tmp_path: Path
) -> None:
    async with (
        serve(model(), require_key="always", **options) as url,
        keys_of(tmp_path / "data") as keys,
        sdk(url) as c,
    ):
        _, hers = await keys.create("anna", "laptop", ["chat"], by="test")
        _, his = await keys.create("bert", "phone", ["chat"], by="test")
        messages = results(await ask(c.with_options(api_key=hers), user(ASK)), "sunny")
        with pytest.raises(openai.BadRequestError, match="no run of yours waits"):
            await ask(c.with_options(api_key=his), messages)
        assert trace(await ask(c.with_options(api_key=hers), messages))["status"] == "complete"


async def test_the_same_results_twice_are_one_run_and_others_are_refused(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
        once, again = await asyncio.gather(*(ask(client, results(first, "sunny")) for _ in range(2)))
        with pytest.raises(openai.ConflictError, match="answered before with other results"):
            await ask(client, results(first, "rainy"))
    assert once.id == again.id


async def test_a_restart_between_the_call_and_its_result(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
    async with serve(model(), **options) as url, sdk(url) as client:
        second = await ask(client, results(first, "sunny"))
    assert second.choices[0].message.content == "It is sunny in Paris; 42."
    assert trace(second)["status"] == "complete"


ELSEWHERE = {"$ref": "http://127.0.0.1:9/x"}


def tool(**function: Any) -> Any:
    return {"type": "function", "function": {"name": "mine", **function}}


@pytest.mark.parametrize(
    ("tools", "param", "said"),
    [
        ([tool(name="calculator")], "tools[0].function.name", "of this gateway"),
        ([tool(name="Completion")], "tools[0].function.name", "of this gateway"),
        ([tool(name="a b")], "tools[0].function.name", "1 to 64"),
        ([tool(), tool()], "tools[1].function.name", "given twice"),
        ([tool(parameters={"type": "objekt"})], "tools[0].function.parameters", "not a valid JSON Schema"),
        ([tool(parameters={"type": "array"})], "tools[0].function.parameters", "not 'object'"),
        ([tool(parameters={"properties": {"a": ELSEWHERE}})], "tools[0].function.parameters", "refers to"),
        ([tool(description="x" * 10_000)], "tools[0]", "the limit is 10,000"),
        ([tool(name=f"t{n}", description="x" * 9_000) for n in range(7)], "tools", "the limit is 60,000"),
        ([tool(name=f"t{n}") for n in range(65)], "tools", "at most 64"),
    ],
)  # fmt: skip
async def test_tools_that_cannot_be_offered_are_refused(
    serve: Serve, options: dict[str, Any], tools: list[Any], param: str, said: str
) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        with pytest.raises(openai.BadRequestError, match=said) as caught:
            await client.chat.completions.create(model="mine", messages=user(ASK), tools=tools)
        assert caught.value.param == param
        ignored = await client.chat.completions.create(model="stepgate", messages=user("Hi"), tools=tools)
    assert trace(ignored)["runtime"]["client_tools_ignored"] == len(tools)


async def test_arguments_that_do_not_fit_are_not_sent(serve: Serve, options: dict[str, Any]) -> None:
    steps = (
        {"id": "c", "tool": "calculator", "inputs": {"expression": "5*20"}},
        {"id": "w", "tool": "get-Weather", "inputs": {"city": "Paris", "days": "${c.value}"}, "depends_on": ["c"]},
        {"id": "a", "tool": "completion", "depends_on": ["w"]},
    )
    async with serve(script(plans(*steps, times=1), plans(*MIXED), ANSWER), **options) as url, sdk(url) as client:
        completion = await ask(client, user(ASK))
    (call,) = completion.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Paris"}, "the new plan's call"
    assert "days" in json.dumps(trace(completion)["steps"])


async def test_an_approved_plan_is_not_asked_about_again(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        waiting = await ask(client, user(ASK), "careful")
        question = waiting.choices[0].message.content
        assert "Approval needed" in question
        told = [*user(ASK), {"role": "assistant", "content": question}, *user("approve")]
        first = await ask(client, told, "careful")
        second = await ask(client, results(first, "sunny"), "careful")
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content == "It is sunny in Paris; 42."


async def test_responses_have_the_call_as_an_item_and_take_its_output(serve: Serve, options: dict[str, Any]) -> None:
    own: Any = {"type": "function", **WEATHER["function"], "strict": False}
    async with serve(model(), **options) as url, sdk(url) as client:
        first = await client.responses.create(model="mine", input=ASK, tools=[own])
        (call,) = [item for item in first.output if item.type == "function_call"]
        output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        second = await client.responses.create(model="mine", previous_response_id=first.id, input=output, tools=[own])
        stream = await client.responses.create(model="mine", input=ASK, tools=[own], stream=True)
        kinds = [event.type async for event in stream]
    assert (first.status, first.output_text) == ("completed", "")
    assert (call.name, json.loads(call.arguments)) == ("get-Weather", {"city": "Paris"})
    assert second.output_text == "It is sunny in Paris; 42."
    assert "get-Weather" not in [item.name for item in second.output if item.type == "mcp_call"], (
        "it is no tool of ours"
    )
    assert "response.function_call_arguments.done" in kinds
    assert kinds[-1] == "response.completed"


async def test_a_result_that_is_an_error_makes_a_new_plan(serve: Serve, options: dict[str, Any]) -> None:
    again = ({"id": "r", "tool": "get-Weather", "inputs": {"city": "Rome"}}, {"id": "b", "tool": "completion"})
    async with serve(script(plans(*MIXED, times=1), plans(*again), ANSWER), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
        second = await ask(client, results(first, "Error: there is no such city"))
        third = await ask(client, results(second, "rainy"))
    assert "Rome" in second.choices[0].message.tool_calls[0].function.arguments
    assert trace(third)["status"] == "complete"
    plans_made = [step for step in trace(third)["steps"] if step["type"] == "plan"]
    assert len(plans_made) >= 2, "the plans of the earlier runs are in the trace"


async def test_a_client_that_always_fails_ends(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        completion = await ask(client, user(ASK))
        rounds = 0
        while completion.choices[0].finish_reason == "tool_calls":
            rounds += 1
            assert rounds < 12, "retries and new plans are counted over all runs"
            completion = await ask(client, results(completion, "Error: no connection"))
    assert trace(completion)["status"] in ("partial", "aborted")
    assert rounds >= 1, "what a client's tool changes nobody knows: its call is not made again on a guess"


async def test_a_message_of_the_user_after_the_results_is_a_new_request(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(model(), **options) as url, sdk(url) as client:
        first = await ask(client, user(ASK))
        other = await ask(client, [*results(first, "sunny"), *user("And once more?")])
    assert other.choices[0].finish_reason == "tool_calls"
    assert trace(other)["run_id"] != trace(first)["run_id"]


async def test_without_a_model_the_tools_are_not_called(serve: Serve, options: dict[str, Any]) -> None:
    async with serve(**options) as url, sdk(url) as client:
        completion = await ask(client, user("calculate 2*21"))
    assert "42" in (completion.choices[0].message.content or "")
    assert trace(completion)["runtime"]["client_tools_ignored"] == 1
