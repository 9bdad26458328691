"""The OpenAI door, through the official SDK unmodified, and its wire where the SDK hides it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from tests.integration.conftest import Serve
from tests.support.script import Call, Rule, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer

STEPS = ({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "current_time"}, {"tool": "completion"})
MODEL = script(plans(*STEPS), says("It is 42, as computed.", to="completion"), says('{"title": "Sums"}', to="task"))
ASK = "search and compute, please"


def sdk(url: str, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", **{"max_retries": 0, **options})


def user(content: Any = ASK) -> list[Any]:
    return [{"role": "user", "content": content}]


async def frames(url: str, body: dict[str, Any], **headers: str) -> AsyncIterator[str]:
    """The data of every frame of a stream."""
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/chat/completions", json={"stream": True, **body}, headers=headers) as response,
    ):
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                yield line.removeprefix("data: ")


@pytest.mark.row("S001-13", "S001-45", "S001-42")
async def test_a_completion_with_its_trace(serve: Serve) -> None:
    async with serve(MODEL) as url, sdk(url) as client:
        completion = await client.chat.completions.create(model="stepgate", messages=user(), metadata={"mine": "1"})
    message = completion.choices[0].message
    assert message.content == "It is 42, as computed."
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 30
    extra = completion.model_extra or {}
    assert extra["steps"] == (message.model_extra or {})["metadata"]["steps"]
    assert extra["metadata"]["mine"] == "1"
    assert extra["stepgate"]["tool_results"][0]["output"]["value"] == "42"
    assert extra["stepgate"]["runtime"]["planner"]["effective"] == "llm"


@pytest.mark.row("S001-13", "S001-35")
async def test_a_stream_of_valid_chunks_with_progress_riding_along(serve: Serve) -> None:
    async with serve(MODEL) as url, sdk(url) as client:
        stream = await client.chat.completions.create(
            model="stepgate", messages=user(), stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "It is 42, as computed."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 30
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    riders = [(c.model_extra or {}).get("event") for c in chunks]
    status = [r["data"]["description"] for r in riders if r and r["type"] == "status"]
    assert status[:4] == ["Planning", "Plan: 3 steps", "Step 1/3: calculator", "Step 2/3: current_time"]
    assert status[-1].startswith("Done: 3 steps")
    assert {r["type"] for r in riders if r} == {"status"}, "only Open WebUI is sent more"
    last = chunks[-2]
    assert (last.model_extra or {})["metadata"]["status"] == "complete"
    assert (last.model_extra or {})["steps"]
    assert len({c.id for c in chunks}) == 1


async def test_every_frame_of_a_plain_stream_is_a_chunk(serve: Serve) -> None:
    async with serve(MODEL) as url:
        received = [data async for data in frames(url, {"model": "stepgate", "messages": user()})]
    assert received[-1] == "[DONE]"
    for data in received[:-1]:
        chunk = ChatCompletionChunk.model_validate_json(data)
        assert chunk.object == "chat.completion.chunk"
        assert len(chunk.choices) == 1


async def test_open_webui_gets_cards_and_a_checklist(serve: Serve) -> None:
    async with serve(MODEL) as url:
        body = {"model": "stepgate", "messages": user()}
        received = [json.loads(d) async for d in frames(url, body, **{"X-OpenWebUI-Chat-Id": "c"}) if d != "[DONE]"]
    items = [frame for frame in received if str(frame.get("type", "")).startswith("response.output_item")]
    added = [f for f in items if f["type"].endswith("added") and f["item"]["type"] == "function_call"]
    outputs = [f for f in items if f["item"]["type"] == "function_call_output"]
    done = [f for f in items if f["type"].endswith("done")]
    assert [f["item"]["name"] for f in added] == ["1. calculator", "2. current_time"]
    assert {f["item"]["call_id"] for f in added} == {f["item"]["call_id"] for f in outputs}
    assert len(done) == len(added)
    assert {f["item"]["status"] for f in done} == {"completed"}
    assert sorted(f["output_index"] for f in (*added, *outputs)) == [0, 1, 2, 3]
    assert json.loads(added[0]["item"]["arguments"]) == {"expression": "2*21"}
    tasks = [f["event"]["data"]["tasks"] for f in received if f.get("event", {}).get("type") == "chat:tasks"]
    assert [task["status"] for task in tasks[0]] == ["pending"] * 3
    assert [task["status"] for task in tasks[-1]] == ["completed"] * 3
    assert any(task["status"] == "in_progress" for task in tasks[1])


async def test_sources_come_before_the_text_that_cites_them(serve: Serve, tmp_path: Any) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "handbook.md").write_text("You get 25 days of leave.\n")
    model = script(
        plans({"tool": "read_file", "inputs": {"path": "handbook.md"}}, {"tool": "completion"}),
        says("You get 25 days [1].", to="completion"),
    )
    async with serve(model, file_roots=(folder,)) as url:
        body = {"model": "stepgate", "messages": user("what do my files say about leave?")}
        received = [json.loads(d) async for d in frames(url, body) if d != "[DONE]"]
    kinds = [
        "source" if f.get("event", {}).get("type") == "source" else "text"
        for f in received
        if f.get("event", {}).get("type") == "source" or f["choices"][0]["delta"].get("content")
    ]
    assert kinds[0] == "source"
    assert kinds.count("source") == 1
    source = next(f["event"]["data"] for f in received if f.get("event", {}).get("type") == "source")
    assert source["source"]["name"] == "handbook.md"
    assert "25 days" in source["document"][0]
    assert source["metadata"][0]["name"] == "handbook.md"
    assert received[-1]["stepgate"]["citations"][0]["source_id"] == 1


@pytest.mark.row("S001-14")
async def test_every_room_is_a_model(serve: Serve) -> None:
    async with serve() as url, sdk(url) as client:
        models = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("chat")
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve("nope")
    assert models == ["stepgate", "chat", "incident", "knowledge", "pipelines", "studio"]
    assert one.id == "chat"
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unknown_model_is_404_before_anything_else(serve: Serve, stream: bool) -> None:
    async with serve() as url, sdk(url) as client:
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="gpt-17", messages=user(), stream=stream)
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"
    assert caught.value.request_id


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (b'{"model":', 400, None, None),
        (b"[]", 400, None, None),
        ({"messages": user()}, 400, "model", "missing_required_parameter"),
        ({"model": "stepgate"}, 400, "messages", "missing_required_parameter"),
        ({"model": "stepgate", "messages": []}, 400, "messages", "empty_array"),
        ({"model": "stepgate", "messages": "hi"}, 400, "messages", "invalid_type"),
        ({"model": "stepgate", "messages": [{"role": "robot"}]}, 400, "messages[0].role", "invalid_value"),
        ({"model": "stepgate", "messages": [{"content": "x"}]}, 400, "messages[0].role", "missing_required_parameter"),
        ({"model": "stepgate", "messages": user(None)}, 400, "messages[0].content", "invalid_type"),
        ({"model": "stepgate", "messages": user("")}, 400, "messages[0].content", "invalid_value"),
        ({"model": "stepgate", "messages": [{"role": "assistant", "content": "x"}]}, 400, "messages", "invalid_value"),
        ({"model": "stepgate", "messages": user(), "n": 2}, 400, "n", "unsupported_parameter"),
        ({"model": "stepgate", "messages": user(), "temperature": 9}, 400, "temperature", "invalid_value"),
        (
            {"model": "stepgate", "messages": user([{"type": "image_url", "image_url": {"url": "data:image/png,x"}}])},
            400, "messages", None,
        ),
        (
            {"model": "stepgate", "messages": user([{"type": "input_audio", "input_audio": {}}])},
            400, "messages[0].content[0].type", "invalid_value",
        ),
        ({"model": "stepgate", "messages": user("x" * 6_000_000)}, 413, None, "request_too_large"),
    ],
)  # fmt: skip
async def test_bad_requests_are_told_in_openais_shape(
    serve: Serve, body: Any, status: int, param: str | None, code: str | None
) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=30) as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        response = await client.post(f"{url}/v1/chat/completions", content=content, headers=headers)
        alive = await client.get(f"{url}/health")
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert (error["param"], error["code"]) == (param, code)
    assert "None" not in error["message"]
    assert response.headers["x-request-id"]
    assert alive.status_code == 200


async def streamed_whole(client: openai.AsyncOpenAI) -> list[Any]:
    """Every chunk of an answer."""
    asked = user("What is the capital of France?")
    stream = await client.chat.completions.create(model="stepgate", messages=asked, stream=True)
    return [chunk async for chunk in stream]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("status_401", 502),
        ("status_500", 502),
        ("status_429", 429),
        ("context", 400),
        ("garbage", 502),
        ("half_stream", 502),
    ],
)
async def test_a_model_that_fails_is_an_error_of_the_door(serve: Serve, fault: str, status: int) -> None:
    model = script(says("something", fault=fault, retry_after=0))
    async with serve(model) as url, sdk(url) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(model="stepgate", messages=user("What is the capital of France?"))
        with pytest.raises(openai.APIError) as streamed:
            await streamed_whole(client)
    if fault != "half_stream":  # nothing was said yet: it is a status, as without a stream
        assert isinstance(streamed.value, openai.APIStatusError)
        assert streamed.value.status_code == status
    assert caught.value.status_code == status
    assert caught.value.response.headers["x-should-retry"] == "false", "the SDK must not start a second run"
    if fault == "context":
        assert caught.value.code == "context_length_exceeded"


async def test_whole_conversations_are_context(serve: Serve, model_server: ScriptedServer) -> None:
    messages: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "I am Ada"},
        {"role": "assistant", "content": "Hello Ada"},
        {"role": "user", "content": [{"type": "text", "text": "Who"}, {"type": "text", "text": "am I?"}]},
    ]
    async with serve(script(answers("Ada."))) as url, sdk(url) as client:
        await client.chat.completions.create(model="stepgate", messages=messages)
        (planner,) = model_server.requests()
        model_server.load(script(plans({"tool": "completion"}), says("Ada.", to="completion")))
        await client.chat.completions.create(model="stepgate", messages=messages)
        completion = model_server.requests()[-1]
    system, user_message = (m["content"] for m in planner["body"]["messages"])
    assert system.startswith("Be brief.\n\n"), "the caller's own instructions hold for an answer of the planner too"
    assert "<history>\nuser: I am Ada\nassistant: Hello Ada\n</history>" in user_message
    assert "<user_request>\nWho\nam I?\n</user_request>" in user_message
    sent = [(m["role"], m["content"]) for m in completion["body"]["messages"]]
    assert sent == [("system", "Be brief."), ("user", "I am Ada"), ("assistant", "Hello Ada"), ("user", "Who\nam I?")]


async def test_background_prompts_of_a_chat_page_make_no_plan_and_no_run_in_the_list(
    serve: Serve, model_server: ScriptedServer
) -> None:
    async with serve(MODEL) as url, sdk(url) as client, httpx.AsyncClient() as http:
        completion = await client.chat.completions.create(
            model="stepgate", messages=user("### Task:\nGenerate a title.")
        )
        listed = (await http.get(f"{url}/v1/runs")).json()
    assert json.loads(completion.choices[0].message.content or "") == {"title": "Sums"}
    assert model_server.purposes() == ["task"]
    assert listed["data"] == []


async def test_the_clients_own_tools_reach_only_a_plain_room(serve: Serve, model_server: ScriptedServer) -> None:
    tool: Any = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}}}
    model = script(says("", to="completion", about="use mine", calls=(Call("mine", {"a": 1}, id="c9"),)), says("hi"))
    async with serve(model) as url, sdk(url) as client:
        called = await client.chat.completions.create(model="chat", messages=user("use mine"), tools=[tool])
        stream = await client.chat.completions.create(
            model="chat", messages=user("use mine"), tools=[tool], stream=True
        )
        chunks = [chunk async for chunk in stream]
        ignored = await client.chat.completions.create(model="stepgate", messages=user("hello"), tools=[tool])
    calls = called.choices[0].message.tool_calls or []
    assert called.choices[0].finish_reason == "tool_calls"
    assert [(c.id, c.function.name, c.function.arguments) for c in calls if c.type == "function"] == [
        ("c9", "mine", '{"a": 1}')
    ]
    streamed = [c.choices[0].delta.tool_calls for c in chunks if c.choices and c.choices[0].delta.tool_calls]
    assert streamed[0][0].id == "c9"
    assert (ignored.model_extra or {})["stepgate"]["runtime"]["client_tools_ignored"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        says("Paris.", to="completion", reasoning="Let me think."),
        says("<think>Let me think.</think>\n\nParis.", to="completion", chunk=3),
    ],
)
async def test_reasoning_of_the_model_is_streamed_apart(serve: Serve, reply: Rule) -> None:
    async with serve(script(reply)) as url, sdk(url) as client:
        stream = await client.chat.completions.create(model="chat", messages=user("capital?"), stream=True)
        deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
    assert "".join((d.model_extra or {}).get("reasoning_content", "") for d in deltas) == "Let me think."
    assert "".join(d.content or "" for d in deltas) == "Paris."


async def test_a_client_that_hangs_up_does_not_lose_its_run(serve: Serve) -> None:
    model = script(plans(*STEPS), says("It is 42.", to="completion", delay_s=0.3))
    async with serve(model) as url, httpx.AsyncClient(timeout=30) as client:
        body = {"model": "stepgate", "messages": user(), "stream": True}
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
            run_id = response.headers["x-stepgate-run-id"]
        async with client.stream("GET", f"{url}/v1/runs/{run_id}/events") as follow:
            names = [line.removeprefix("event: ") async for line in follow.aiter_lines() if line.startswith("event: ")]
        run = (await client.get(f"{url}/v1/runs/{run_id}")).json()
    assert names[-1] == "run.succeeded"
    assert run["response"]["response"] == "It is 42."
