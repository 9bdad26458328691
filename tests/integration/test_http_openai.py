"""What the OpenAI door refuses rather than ignores, and how strictly it reads types."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

TOOL = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}}}


def asking(**options: Any) -> dict[str, Any]:
    return {"model": "stepgate", "messages": [{"role": "user", "content": "2+2"}], **options}


async def read_refusal(serve: Serve, body: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's error object for a body that is refused, with nothing begun."""
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        # Python's own JSON, because NaN must reach the wire.
        response = await client.post(
            f"{url}/v1/chat/completions", content=json.dumps(body), headers={"content-type": "application/json"}
        )
        listed = (await client.get(f"{url}/v1/runs")).json()["data"]
    assert response.status_code == 400
    assert listed == []
    error: dict[str, Any] = response.json()["error"]
    return error


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("stream", "yes", "true or false"),
        ("stream", 1, "true or false"),
        ("temperature", "0.5", "number"),
        ("temperature", True, "number"),
        ("max_tokens", 10.5, "whole number"),
        ("max_tokens", "10", "whole number"),
        ("n", True, "whole number, not true"),
        ("model", 5, "text"),
        ("tools", {}, "list"),
        ("response_format", "json", "map of names"),
    ],
)
async def test_a_value_of_another_type_is_refused(serve: Serve, option: str, value: Any, told: str) -> None:
    error = await read_refusal(serve, asking(**{option: value}))
    assert (error["param"], error["code"]) == (option, "invalid_type")
    assert told in error["message"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_a_temperature_that_is_no_number_is_called_that(serve: Serve, value: float) -> None:
    error = await read_refusal(serve, asking(temperature=value))
    assert f"{json.dumps(value)} is not a finite number at line 1, column" in error["message"]


async def test_whole_numbers_and_nulls_are_taken_where_openai_takes_them(serve: Serve) -> None:
    body = asking(temperature=1, stream=None, max_tokens=None, tools=None, response_format={"type": "text"})
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert response.status_code == 200


FORCED = ["required", {"type": "function", "function": {"name": "mine"}}]


@pytest.mark.parametrize("choice", FORCED, ids=str)
async def test_a_planning_room_names_the_one_that_takes_the_clients_tools(serve: Serve, choice: Any) -> None:
    error = await read_refusal(serve, asking(tools=[TOOL], tool_choice=choice))
    assert (error["param"], error["code"]) == ("tool_choice", "unsupported_parameter")
    assert "reach the model in 'chat'" in error["message"]


@pytest.mark.parametrize("choice", FORCED, ids=str)
async def test_a_plain_room_passes_a_forced_tool_to_the_model(
    serve: Serve, model_server: ScriptedServer, choice: Any
) -> None:
    await ask(serve, asking(model="chat", tools=[TOOL], tool_choice=choice))
    assert model_server.requests()[-1]["body"]["tool_choice"] == choice


async def test_a_tool_cannot_be_forced_where_none_is_offered(serve: Serve) -> None:
    error = await read_refusal(serve, asking(model="chat", tool_choice="required"))
    assert (error["param"], error["code"]) == ("tool_choice", "invalid_value")


@pytest.mark.parametrize("room", ["stepgate", "chat"])
@pytest.mark.parametrize("form", ["json_object", "json_schema"])
async def test_a_form_of_the_answer_needs_a_model(serve: Serve, room: str, form: str) -> None:
    error = await read_refusal(serve, asking(model=room, response_format={"type": form}))
    assert (error["param"], error["code"]) == ("response_format", "unsupported_parameter")
    assert form in error["message"]


async def test_a_form_nobody_knows_is_refused(serve: Serve) -> None:
    error = await read_refusal(serve, asking(model="chat", response_format={"type": "xml"}))
    assert (error["param"], error["code"]) == ("response_format.type", "invalid_value")


@pytest.mark.parametrize("room", ["stepgate", "chat"])
async def test_what_shapes_the_answer_reaches_the_model_that_writes_it(
    serve: Serve, model_server: ScriptedServer, room: str
) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    sent = {"top_p": 0.5, "seed": 7, "stop": ["END"], "presence_penalty": 1.0, "response_format": form}
    await ask(serve, asking(model=room, **sent))
    body = model_server.requests()[-1]["body"]
    assert {name: body.get(name) for name in sent} == sent


async def ask(serve: Serve, body: dict[str, Any]) -> dict[str, Any]:
    """The completion of a gateway whose model answers `{}` to everything."""
    async with serve(script(says("{}"))) as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert response.status_code == 200
    completion: dict[str, Any] = response.json()
    return completion


PASSED = {
    "logit_bias": {"50256": -100.0}, "min_p": 0.1, "prediction": {"type": "content", "content": "{}"},
    "prompt_cache_key": "k", "prompt_cache_retention": "24h", "reasoning_effort": "low", "repetition_penalty": 1.1,
    "safety_identifier": "s", "service_tier": "flex", "store": True, "top_k": 40, "user": "u", "verbosity": "low",
}  # fmt: skip


@pytest.mark.parametrize("room", ["stepgate", "chat"])
async def test_every_other_parameter_of_openai_reaches_the_model(
    serve: Serve, model_server: ScriptedServer, room: str
) -> None:
    completion = await ask(serve, asking(model=room, **PASSED, messages=[{"role": "user", "content": "tell a joke"}]))
    body = model_server.requests()[-1]["body"]
    assert {name: body.get(name) for name in PASSED} == PASSED
    assert "ignored_parameters" not in completion["stepgate"]["runtime"]


async def test_a_search_by_the_provider_needs_a_plain_room(serve: Serve, model_server: ScriptedServer) -> None:
    for room in ("stepgate", "chat"):
        error = await read_refusal(serve, asking(model=room, web_search_options={}))
        assert (error["param"], error["code"]) == ("web_search_options", "unsupported_parameter")
    await ask(serve, asking(model="chat", web_search_options={"search_context_size": "low"}))
    assert model_server.requests()[-1]["body"]["web_search_options"] == {"search_context_size": "low"}


async def test_parallel_calls_are_mentioned_only_with_tools(serve: Serve, model_server: ScriptedServer) -> None:
    for room, tools, value in (("chat", [TOOL], False), ("chat", None, None), ("stepgate", [TOOL], None)):
        question = [{"role": "user", "content": "tell a joke"}]
        await ask(serve, asking(model=room, tools=tools, parallel_tool_calls=False, messages=question))
        assert model_server.requests()[-1]["body"].get("parallel_tool_calls") is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("functions", [TOOL["function"]]),
        ("function_call", {"name": "mine"}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "mp3"}),
        ("moderation", {"model": "m"}),
    ],
)
async def test_what_no_room_can_do_is_refused(serve: Serve, name: str, value: Any) -> None:
    error = await read_refusal(serve, asking(model="chat", **{name: value}))
    assert (error["param"], error["code"]) == (name, "unsupported_parameter")


@pytest.mark.parametrize("field", ["function_call", "audio"])
async def test_an_old_form_of_a_message_is_refused(serve: Serve, field: str) -> None:
    messages = [{"role": "assistant", "content": None, field: {"name": "mine"}}, {"role": "user", "content": "2+2"}]
    error = await read_refusal(serve, asking(messages=messages))
    assert (error["param"], error["code"]) == (f"messages[0].{field}", "unsupported_parameter")


async def test_requests_for_nothing_are_accepted(serve: Serve) -> None:
    nothing = {"logprobs": False, "top_logprobs": 0, "functions": [], "function_call": "auto", "modalities": ["text"]}
    completion = await ask(serve, asking(**nothing, n=1, audio=None, web_search_options=None))
    assert "ignored_parameters" not in completion["stepgate"]["runtime"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unknown_field_is_named_in_the_answer(serve: Serve, stream: bool) -> None:
    part = {"type": "text", "text": "2+2", "cache_control": {"type": "ephemeral"}}
    previous = {"role": "assistant", "content": "Hi", "metadata": {"run_id": "x"}, "mood": "good"}
    body = asking(
        messages=[previous, {"role": "user", "content": [part]}],
        num_ctx=4096, think=False, stream=stream, stream_options={"include_obfuscation": True},
    )  # fmt: skip
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        text = (await client.post(f"{url}/v1/chat/completions", json=body)).text
    last = json.loads(text.split("data: ")[-2] if stream else text)
    ignored = ["messages.content.cache_control", "messages.mood", "num_ctx", "stream_options.include_obfuscation"]
    assert last["stepgate"]["runtime"]["ignored_parameters"] == ignored


@pytest.mark.parametrize("name", ["model", "messages", "api_base", "api_key", "extra_headers", "n", "tools"])
async def test_options_of_the_json_door_cannot_replace_the_gateways_own(serve: Serve, name: str) -> None:
    async with serve(script(says("{}"))) as url, httpx.AsyncClient(timeout=15) as client:
        body = {"prompt": "tell a joke", "room": "chat", "options": {name: "http://attacker.example"}}
        response = await client.post(f"{url}/v1/agent", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(f"options.{name} is unknown; the options are")


async def test_an_unknown_room_is_told_before_what_it_cannot_do(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        body = asking(model="nope", response_format={"type": "json_object"})
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_client_that_wants_no_tool_called_says_so(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(says("hi"))) as url, httpx.AsyncClient(timeout=15) as client:
        for choice in ("auto", "none"):
            body = asking(model="chat", tools=[TOOL], tool_choice=choice)
            response = await client.post(f"{url}/v1/chat/completions", json=body)
            assert response.status_code == 200
    auto, none = (request["body"] for request in model_server.requests())
    assert [tool["function"]["name"] for tool in auto["tools"]] == ["mine"]
    assert (none["tools"], none["tool_choice"]) == (auto["tools"], "none")
