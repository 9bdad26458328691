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


async def refusal(serve: Serve, body: dict[str, Any]) -> dict[str, Any]:
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
        ("stream", "yes", "boolean"),
        ("stream", 1, "boolean"),
        ("temperature", "0.5", "number"),
        ("temperature", True, "number"),
        ("max_tokens", 10.5, "integer"),
        ("max_tokens", "10", "integer"),
        ("n", True, "integer"),
        ("model", 5, "string"),
        ("tools", {}, "list"),
        ("response_format", "json", "dictionary"),
    ],
)
async def test_a_value_of_another_type_is_refused(serve: Serve, option: str, value: Any, told: str) -> None:
    error = await refusal(serve, asking(**{option: value}))
    assert (error["param"], error["code"]) == (option, "invalid_type")
    assert told in error["message"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_a_temperature_that_is_no_number_is_called_that(serve: Serve, value: float) -> None:
    error = await refusal(serve, asking(temperature=value))
    assert f"{json.dumps(value)} is no finite number at line 1, column" in error["message"]


async def test_whole_numbers_and_nulls_are_taken_where_openai_takes_them(serve: Serve) -> None:
    body = asking(temperature=1, stream=None, max_tokens=None, tools=None, response_format={"type": "text"})
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert response.status_code == 200


FORCED = ["required", {"type": "function", "function": {"name": "mine"}}]


@pytest.mark.parametrize("choice", FORCED, ids=str)
async def test_a_planning_room_names_the_one_that_takes_the_clients_tools(serve: Serve, choice: Any) -> None:
    error = await refusal(serve, asking(tools=[TOOL], tool_choice=choice))
    assert (error["param"], error["code"]) == ("tool_choice", "unsupported_parameter")
    assert "reach the model in 'chat'" in error["message"]


@pytest.mark.parametrize("choice", FORCED, ids=str)
async def test_a_plain_room_passes_a_forced_tool_to_the_model(
    serve: Serve, model_server: ScriptedServer, choice: Any
) -> None:
    await told(serve, asking(model="chat", tools=[TOOL], tool_choice=choice))
    assert model_server.requests()[-1]["body"]["tool_choice"] == choice


async def test_a_tool_cannot_be_forced_where_none_is_offered(serve: Serve) -> None:
    error = await refusal(serve, asking(model="chat", tool_choice="required"))
    assert (error["param"], error["code"]) == ("tool_choice", "invalid_value")


@pytest.mark.parametrize("room", ["stepgate", "chat"])
@pytest.mark.parametrize("form", ["json_object", "json_schema"])
async def test_a_form_of_the_answer_needs_a_model(serve: Serve, room: str, form: str) -> None:
    error = await refusal(serve, asking(model=room, response_format={"type": form}))
    assert (error["param"], error["code"]) == ("response_format", "unsupported_parameter")
    assert form in error["message"]


async def test_a_form_nobody_knows_is_refused(serve: Serve) -> None:
    error = await refusal(serve, asking(model="chat", response_format={"type": "xml"}))
    assert (error["param"], error["code"]) == ("response_format.type", "invalid_value")


@pytest.mark.parametrize("room", ["stepgate", "chat"])
async def test_what_shapes_the_answer_reaches_the_model_that_writes_it(
    serve: Serve, model_server: ScriptedServer, room: str
) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    sent = {"top_p": 0.5, "seed": 7, "stop": ["END"], "presence_penalty": 1.0, "response_format": form}
    await told(serve, asking(model=room, **sent))
    body = model_server.requests()[-1]["body"]
    assert {name: body.get(name) for name in sent} == sent


async def told(serve: Serve, body: dict[str, Any]) -> None:
    """Ask a gateway whose model answers anything."""
    async with serve(script(says("{}"))) as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert response.status_code == 200


async def test_an_unknown_room_is_told_before_what_it_cannot_do(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        body = asking(model="nope", response_format={"type": "json_object"})
        response = await client.post(f"{url}/v1/chat/completions", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_client_that_wants_no_tool_called_has_none_offered(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(says("hi"))) as url, httpx.AsyncClient(timeout=15) as client:
        for choice in ("auto", "none"):
            body = asking(model="chat", tools=[TOOL], tool_choice=choice)
            response = await client.post(f"{url}/v1/chat/completions", json=body)
            assert response.status_code == 200
    auto, none = (request["body"] for request in model_server.requests())
    assert [tool["function"]["name"] for tool in auto["tools"]] == ["mine"]
    assert "tools" not in none
