"""`/v1/responses`: what is refused, by name and in OpenAI's shape, and what other owners cannot see."""

from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_openai_door import ASK, MODEL, sdk
from tests.integration.test_responses import approval
from tests.support.keys import created_key
from tests.support.script import says, script

UNKNOWN = "resp_" + "0" * 32
NO_REQUEST = f"mcpr_{'0' * 32}_apr_1"
OWN = {"type": "mcp", "server_label": "stepgate"}
CALL = {"type": "function_call"}
OUTPUT = {"type": "function_call_output"}
DECISION = {"type": "mcp_approval_response", "approval_request_id": NO_REQUEST}
MESSAGE = {"role": "user", "content": "hi"}


def asking(**options: Any) -> dict[str, Any]:
    return {"model": "chat", "input": "hi", **options}


BAD_REQUESTS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"input": "hi"}, "model", "missing_required_parameter"),
    ({"model": "chat"}, "input", "missing_required_parameter"),
    (asking(input=""), "input", "invalid_value"),
    (asking(input=[]), "input", "invalid_value"),
    (asking(input=7), "input", "invalid_type"),
    (asking(input=["hi"]), "input[0]", "invalid_type"),
    (asking(input=[{"role": "robot", "content": "x"}]), "input[0].role", "invalid_value"),
    (asking(input=[{"content": "x"}]), "input[0].role", "missing_required_parameter"),
    (asking(input=[{"role": "user"}]), "input[0].content", "invalid_type"),
    (asking(input=[{"role": "user", "content": ["x"]}]), "input[0].content[0]", "invalid_type"),
    (
        asking(input=[{**MESSAGE, "content": [{"type": "input_audio"}]}]),
        "input[0].content[0].type", "invalid_value",
    ),
    (
        asking(input=[{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]),
        "input[0].content[0].type", "invalid_value",
    ),
    (
        asking(input=[{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]),
        "input[0].content[0].file_id", "unsupported_parameter",
    ),
    (asking(input=[MESSAGE, {"type": "hologram_call"}]), "input[1].type", "unsupported_parameter"),
    (asking(input=[{"type": "item_reference", "id": "msg_1"}]), "input[0].id", "invalid_value"),
    (asking(input=[{**CALL, "call_id": "c"}]), "input[0].name", "missing_required_parameter"),
    (asking(input=[{**OUTPUT, "output": "x"}]), "input[0].call_id", "missing_required_parameter"),
    (
        asking(input=[{**OUTPUT, "call_id": "c", "output": [{"type": "input_image"}]}]),
        "input[0].output[0].file_id", "unsupported_parameter",
    ),
    (
        asking(input=[{"type": "mcp_approval_response", "approval_request_id": "x", "approve": True}]),
        "input[0].approval_request_id", "invalid_value",
    ),
    (
        asking(input=[{**DECISION, "approve": 1}]),
        "input[0].approve", "invalid_type",
    ),
    (
        asking(input=[{**DECISION, "approve": True}]),
        "input", "invalid_value",
    ),
    (asking(tools=[{"type": "web_search"}]), "tools[0].type", "unsupported_parameter"),
    (asking(tools=[{"type": "function"}]), "tools[0].name", "missing_required_parameter"),
    (asking(tools=[{**OWN, "server_url": "http://x"}]), "tools[0].server_url", "unsupported_parameter"),
    (asking(tool_choice={"type": "web_search"}), "tool_choice", "unsupported_parameter"),
    (asking(tool_choice="required"), "tool_choice", "invalid_value"),
    (asking(text={"format": {"type": "xml"}}), "text.format.type", "invalid_value"),
    (asking(text={"format": {"type": "json_object"}}), "text.format", "unsupported_parameter"),
    (asking(truncation="auto"), "truncation", "unsupported_parameter"),
    (asking(top_logprobs=2), "top_logprobs", "unsupported_parameter"),
    (asking(include=["message.output_text.logprobs"]), "include", "unsupported_parameter"),
    (asking(max_tool_calls=3), "max_tool_calls", "unsupported_parameter"),
    (asking(prompt={"id": "pmpt_1"}), "prompt", "unsupported_parameter"),
    (asking(context_management=[{"type": "compaction"}]), "context_management", "unsupported_parameter"),
    (asking(moderation={"model": "m"}), "moderation", "unsupported_parameter"),
    (asking(background=True, store=False), "background", None),
    (
        asking(previous_response_id=UNKNOWN, conversation="c"),
        "previous_response_id", "mutually_exclusive_parameters",
    ),
    (asking(previous_response_id=UNKNOWN), "previous_response_id", "previous_response_not_found"),
    (asking(previous_response_id="../../etc"), "previous_response_id", "previous_response_not_found"),
    (asking(conversation=""), "conversation", "invalid_value"),
    (asking(conversation="x" * 300), "conversation", "invalid_value"),
    (asking(temperature=9), "temperature", "invalid_value"),
    (asking(stream="yes"), "stream", "invalid_type"),
    (asking(metadata=[1]), "metadata", "invalid_type"),
]  # fmt: skip


async def test_a_bad_request_names_its_parameter(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=30) as client:
        for body, param, code in BAD_REQUESTS:
            response = await client.post(f"{url}/v1/responses", json=body)
            assert response.status_code == 400, (body, response.text)
            error = response.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error"), body
            assert "None" not in error["message"]
            assert "Missing" not in error["message"] or code == "missing_required_parameter", error
            assert (await client.get(f"{url}/v1/runs")).json()["data"] == [], body


async def test_an_unknown_model_is_not_found(serve: Serve) -> None:
    async with serve() as url, sdk(url) as client:
        for stream in (False, True):
            with pytest.raises(openai.NotFoundError) as caught:
                await client.responses.create(model="gpt-17", input="hi", stream=stream)
            assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("name", [UNKNOWN, "resp_1", "run_" + "0" * 32, f"{UNKNOWN}_3", "resp_%00", "x" * 500])
async def test_an_unknown_response_is_not_found(serve: Serve, name: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=f"{url}/v1/responses", timeout=30) as client:
        answers = [
            await client.get(f"/{name}"),
            await client.get(f"/{name}?stream=true"),
            await client.delete(f"/{name}"),
            await client.post(f"/{name}/cancel"),
            await client.get(f"/{name}/input_items"),
        ]
    for answer in answers:
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_runs_of_other_doors_are_no_responses(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        run = (await client.post("/v1/agent", json={"prompt": "2+2"})).json()["metadata"]["run_id"]
        response = await client.get(f"/v1/responses/resp_{run.removeprefix('run_')}")
    assert response.status_code == 404


@pytest.mark.parametrize("query", ["starting_after=1", "stream=true&starting_after=-1", "stream=maybe"])
async def test_a_bad_query_is_refused(serve: Serve, query: str) -> None:
    async with serve() as url, sdk(url) as client, httpx.AsyncClient(timeout=30) as http:
        found = await client.responses.create(model="stepgate", input="2+2")
        response = await http.get(f"{url}/v1/responses/{found.id}?{query}")
    assert response.status_code == 400
    assert response.json()["error"]["param"] in ("starting_after", "stream")


async def test_input_items_are_paged(serve: Serve) -> None:
    items: Any = [{"role": "user", "content": str(number)} for number in range(5)]
    async with serve(script(says("hi", to="completion"))) as url, sdk(url) as client:
        made = await client.responses.create(model="chat", input=items)
        newest = [item.to_dict() async for item in client.responses.input_items.list(made.id, limit=2)]
        oldest = [item.to_dict() async for item in client.responses.input_items.list(made.id, limit=3, order="asc")]
        with pytest.raises(openai.BadRequestError):
            await client.responses.input_items.list(made.id, after="nothing")
    texts = [item["content"][0]["text"] for item in oldest]  # type: ignore[index]
    assert texts == ["0", "1", "2", "3", "4"]
    assert newest == oldest[::-1]


async def test_another_owners_response_is_like_none(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "careful.yaml").write_text("id: careful\nname: Careful\napproval: always\nsupervision: checks\n")
    anna, bob = [
        await created_key(tmp_path / "data", name, owner=name, scopes="chat,approve") for name in ("anna", "bob")
    ]
    reader = await created_key(tmp_path / "data", "reader", owner="anna", scopes="chat")
    async with serve(MODEL, rooms_dir=folder, require_key="always") as url:
        hers, his, read_only = (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) for key in (anna, bob, reader)
        )
        async with hers, his, read_only:
            asked = await hers.responses.create(model="careful", input=ASK)
            reply = [approval(asked.output[-1].id or "", approve=True)]
            for call in (his.responses.retrieve, his.responses.delete, his.responses.cancel):
                with pytest.raises(openai.NotFoundError):
                    await call(asked.id)
            with pytest.raises(openai.NotFoundError):
                await his.responses.input_items.list(asked.id)
            with pytest.raises(openai.NotFoundError):
                await his.responses.retrieve(asked.id, stream=True)
            for options in ({"input": reply}, {"input": "approve", "previous_response_id": asked.id}):
                with pytest.raises(openai.BadRequestError) as caught:
                    await his.responses.create(model="careful", **options)
                assert caught.value.param in ("input", "previous_response_id")
            with pytest.raises(openai.PermissionDeniedError):
                await read_only.responses.create(model="careful", input=reply)
            done = await hers.responses.create(model="careful", input=reply)
    assert done.output_text == "It is 42, as computed."
