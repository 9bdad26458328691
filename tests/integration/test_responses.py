"""`/v1/responses` through the official SDK, over HTTP: whole responses, chains, items and approvals."""

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from tests.integration.conftest import Serve
from tests.integration.test_openai_door import ASK, MODEL, sdk
from tests.support.script import Call, plans, says, script
from tests.support.scripted_server import ScriptedServer

TOOL: Any = {
    "type": "function",
    "name": "mine",
    "description": "does it",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "strict": False,
}


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    """A folder with a room that asks before every plan."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "careful.yaml").write_text("id: careful\nname: Careful\napproval: always\nsupervision: checks\n")
    return folder


def check_types(response: Response) -> None:
    """The response has the types that the SDK declares; `model_construct` alone would not show it."""
    data = response.to_dict()
    Response.model_validate(data)
    ids = [item.id for item in response.output if item.id]
    assert len(ids) == len(set(ids))


def last_messages(server: ScriptedServer) -> list[tuple[str, Any]]:
    return [(m["role"], m["content"]) for m in server.requests()[-1]["body"]["messages"]]


async def test_a_plan_is_a_summary_and_calls_before_the_answer(serve: Serve) -> None:
    async with serve(MODEL) as url, sdk(url) as client:
        response = await client.responses.create(model="stepgate", input=ASK, metadata={"mine": "1"})
    check_types(response)
    assert response.status == "completed"
    assert response.output_text == "It is 42, as computed."
    assert [item.type for item in response.output] == ["reasoning", "mcp_call", "mcp_call", "message"]
    plan, first = response.output[0], response.output[1]
    assert plan.type == "reasoning"
    assert "1. calculator" in plan.summary[0].text
    assert first.type == "mcp_call"
    assert (first.name, json.loads(first.arguments)) == ("calculator", {"expression": "2*21"})
    assert (first.status, first.error) == ("completed", None)
    assert "42" in (first.output or "")
    assert response.usage is not None
    assert response.usage.total_tokens == 30
    assert response.metadata == {"mine": "1"}
    trace = (response.model_extra or {})["stepgate"]
    assert trace["status"] == "complete"
    assert trace["tool_results"][0]["output"]["value"] == "42"


async def test_what_the_caller_sent_is_repeated_and_reaches_the_model(
    serve: Serve, model_server: ScriptedServer
) -> None:
    class Sum(BaseModel):
        value: int

    async with serve(script(says('{"value": 42}', to="completion"))) as url, sdk(url) as client:
        response = await client.responses.parse(
            model="chat", input="2*21?", instructions="Be brief.", text_format=Sum, temperature=0.5, top_p=0.9,
            max_output_tokens=100, reasoning={"effort": "low"}, user="ada",
        )  # fmt: skip
    assert response.output_parsed == Sum(value=42)
    assert (response.instructions, response.temperature, response.top_p) == ("Be brief.", 0.5, 0.9)
    assert response.max_output_tokens == 100
    assert response.text is not None
    assert response.text.format is not None
    assert response.text.format.type == "json_schema"
    body = model_server.requests()[-1]["body"]
    assert last_messages(model_server) == [("system", "Be brief."), ("user", "2*21?")]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 100)
    assert (body["reasoning_effort"], body["user"]) == ("low", "ada")
    assert body["response_format"]["json_schema"]["strict"] is True


async def test_a_chain_survives_a_restart(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(says("Hello Ada.", to="completion"))) as url, sdk(url) as client:
        first = await client.responses.create(model="chat", input="I am Ada", instructions="Be kind.")
    async with serve() as url, sdk(url) as client:
        kept = await client.responses.retrieve(first.id)
        items = [item async for item in client.responses.input_items.list(first.id)]
    async with serve(script(says("You are Ada.", to="completion"))) as url, sdk(url) as client:
        second = await client.responses.create(
            model="chat", input="Who am I?", previous_response_id=first.id, instructions="Be brief."
        )
        third = await client.responses.create(model="chat", input="Sure?", previous_response_id=second.id)
        read = await client.responses.retrieve(third.id)
    check_types(kept)
    assert kept.output_text == "Hello Ada."
    assert kept.to_dict() == first.to_dict()
    assert [item.to_dict()["content"] for item in items] == [[{"type": "input_text", "text": "I am Ada"}]]
    assert second.previous_response_id == first.id
    assert read.previous_response_id == second.id
    assert last_messages(model_server) == [
        ("user", "I am Ada"),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
        ("assistant", "You are Ada."),
        ("user", "Sure?"),
    ], "instructions hold for their own request only"


async def test_input_tokens_are_estimated_without_a_run(serve: Serve) -> None:
    async with serve(script(says("Hello.", to="completion"))) as url, sdk(url) as client:
        short = await client.responses.input_tokens.count(model="chat", input="Hi")
        long = await client.responses.input_tokens.count(model="chat", input="Hi", instructions="x" * 400)
        tools = await client.responses.input_tokens.count(model="chat", input="Hi", tools=[TOOL])
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"{url}/v1/runs")).json()["data"] == []
        first = await client.responses.create(model="chat", input="x" * 400)
        chained = await client.responses.input_tokens.count(model="chat", input="Hi", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.input_tokens.count(model="none", input="Hi")
    assert 0 < short.input_tokens < 5
    assert long.input_tokens - short.input_tokens == 100
    assert tools.input_tokens > short.input_tokens
    assert chained.input_tokens > 100


async def test_a_named_conversation_is_remembered(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(says("Yes.", to="completion"))) as url, sdk(url) as client:
        first = await client.responses.create(model="chat", input="I am Ada", conversation="talk-1")
        await client.responses.create(model="chat", input="Who am I?", conversation={"id": "talk-1"})
        assert last_messages(model_server) == [("user", "I am Ada"), ("assistant", "Yes."), ("user", "Who am I?")]
        await client.responses.create(model="chat", input="Who am I?", conversation="talk-2")
        assert last_messages(model_server) == [("user", "Who am I?")]
    assert first.conversation is not None
    assert first.conversation.id == "talk-1"


@pytest.mark.parametrize("chained", [True, False], ids=["previous_response_id", "own history"])
async def test_the_clients_functions_are_called_and_answered(
    serve: Serve, model_server: ScriptedServer, chained: bool
) -> None:
    model = script(
        says("", to="completion", calls=(Call("mine", {"a": 1}, id="c9"),), times=1), says("It did.", to="completion")
    )
    async with serve(model) as url, sdk(url) as client:
        asked = await client.responses.create(model="chat", input="use mine", tools=[TOOL])
        check_types(asked)
        (call,) = asked.output
        assert call.type == "function_call"
        assert (call.name, call.call_id, json.loads(call.arguments)) == ("mine", "c9", {"a": 1})
        answer: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
        if chained:
            options: Any = {"input": [answer], "previous_response_id": asked.id}
        else:
            history = [item.to_dict() for item in asked.output]
            options = {"input": [{"role": "user", "content": "use mine"}, *history, answer]}
        done = await client.responses.create(model="chat", tools=[TOOL], **options)
    assert done.output_text == "It did."
    sent = model_server.requests()[-1]["body"]
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "tool"]
    assert sent["messages"][1]["tool_calls"][0]["id"] == "c9"
    assert sent["messages"][2] == {"role": "tool", "tool_call_id": "c9", "content": "done"}
    assert sent["tools"][0]["function"]["name"] == "mine"


async def test_a_planning_room_says_that_it_ignores_the_clients_functions(serve: Serve) -> None:
    async with serve(MODEL) as url, sdk(url) as client:
        response = await client.responses.create(model="stepgate", input=ASK, tools=[TOOL])
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="stepgate", input=ASK, tools=[TOOL], tool_choice="required")
    assert (response.model_extra or {})["stepgate"]["runtime"]["client_tools_ignored"] == 1
    assert caught.value.param == "tool_choice"


async def test_what_has_no_effect_is_named(serve: Serve) -> None:
    async with serve(MODEL) as url, sdk(url) as client:
        response = await client.responses.create(
            model="stepgate", input=ASK, include=["reasoning.encrypted_content"], extra_body={"num_ctx": 7}
        )
    assert (response.model_extra or {})["stepgate"]["runtime"]["ignored_parameters"] == [
        "include.reasoning.encrypted_content", "num_ctx",
    ]  # fmt: skip


@pytest.mark.parametrize("by_text", [False, True], ids=["item", "words"])
async def test_a_plan_waits_for_approval_and_goes_on(serve: Serve, rooms: Path, by_text: bool) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, sdk(url) as client:
        asked = await client.responses.create(model="careful", input=ASK)
        check_types(asked)
        request = asked.output[-1]
        assert request.type == "mcp_approval_request"
        assert request.server_label == "stepgate"
        assert json.loads(request.arguments)["steps"][0]["tool"] == "calculator"
        assert "`calculator`" in asked.output_text
        reply: Any = "approve" if by_text else [approval(request.id, approve=True)]
        done = await client.responses.create(model="careful", input=reply, previous_response_id=asked.id)
        check_types(done)
        items = [item.to_dict() async for item in client.responses.input_items.list(done.id)]
        with pytest.raises(openai.BadRequestError) as again:
            await client.responses.create(model="careful", input=[approval(request.id, approve=True)])
        before = await client.responses.retrieve(asked.id)
    assert done.output_text == "It is 42, as computed."
    assert [item.type for item in done.output] == ["mcp_call", "mcp_call", "message"]
    assert done.previous_response_id == asked.id
    assert done.id != asked.id
    assert before.to_dict() == asked.to_dict(), "what was asked stays as it was"
    assert [(item["approval_request_id"], item["approve"]) for item in items] == [(request.id, True)]
    assert again.value.code == "approval_decided"


def approval(request_id: str, *, approve: bool, reason: str | None = None) -> Any:
    reply = {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": approve}
    return {**reply, "reason": reason} if reason else reply


async def test_a_rejection_needs_no_previous_id(serve: Serve, rooms: Path) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, sdk(url) as client:
        asked = await client.responses.create(model="careful", input=ASK, store=False)
        history: Any = [{"role": "user", "content": ASK}, *(item.to_dict() for item in asked.output)]
        reply = approval(asked.output[-1].id or "", approve=False, reason="too dear")
        done = await client.responses.create(model="careful", input=[*history, reply], store=False)
    assert "too dear" in done.output_text
    assert done.status == "completed"
    assert (done.model_extra or {})["stepgate"]["tool_results"] == []


async def test_other_words_change_the_plan(serve: Serve, rooms: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "1+1"}}, {"tool": "completion"}, times=1),
        plans({"tool": "calculator", "inputs": {"expression": "3+3"}}, {"tool": "completion"}, about="take 3+3"),
        says("never", to="completion"),
    )
    async with serve(model, rooms_dir=rooms) as url, sdk(url) as client:
        asked = await client.responses.create(model="careful", input=ASK)
        again = await client.responses.create(model="careful", input="take 3+3", previous_response_id=asked.id)
    assert again.output[-1].type == "mcp_approval_request"
    assert "3+3" in again.output_text


async def test_the_gateways_own_tools_are_an_mcp_server(serve: Serve) -> None:
    own: Any = {"type": "mcp", "server_label": "stepgate", "require_approval": "always"}
    async with serve(MODEL) as url, sdk(url) as client:
        asked = await client.responses.create(model="stepgate", input=ASK, tools=[own])
        check_types(asked)
        limited: Any = {"type": "mcp", "server_label": "stepgate", "allowed_tools": ["nothing_of_ours"]}
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="stepgate", input=ASK, tools=[limited])
        other: Any = {"type": "mcp", "server_label": "other", "server_url": "https://example.com"}
        with pytest.raises(openai.BadRequestError) as foreign:
            await client.responses.create(model="stepgate", input=ASK, tools=[other])
    assert asked.output[-1].type == "mcp_approval_request"
    assert "nothing_of_ours" in caught.value.message
    assert foreign.value.param == "tools[0].server_label"


@pytest.mark.parametrize(("text", "reason"), [("cut", "max_output_tokens"), ("filtered", "content_filter")])
async def test_a_cut_answer_is_incomplete(serve: Serve, text: str, reason: str) -> None:
    finish = "length" if text == "cut" else "content_filter"
    async with serve(script(says(text, to="completion", finish_reason=finish))) as url, sdk(url) as client:
        response = await client.responses.create(model="chat", input="hi")
    check_types(response)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == reason


async def test_sources_are_annotations(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "handbook.md").write_text("You get 25 days of leave.\n")
    model = script(
        plans({"tool": "read_file", "inputs": {"path": "handbook.md"}}, {"tool": "completion"}),
        says("You get 25 days [1].", to="completion"),
    )
    async with serve(model, file_roots=(folder,)) as url, sdk(url) as client:
        response = await client.responses.create(model="stepgate", input="what do my files say about leave?")
    check_types(response)
    message = response.output[-1]
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    (note,) = message.content[0].annotations
    assert note.type == "file_citation"
    assert (note.filename, response.output_text[note.index : note.index + 3]) == ("handbook.md", "[1]")


async def test_a_stored_response_can_be_deleted_and_an_unstored_one_is_not_found(serve: Serve) -> None:
    async with serve(script(says("Yes.", to="completion"))) as url, sdk(url) as client, httpx.AsyncClient() as http:
        kept = await client.responses.create(model="chat", input="hi")
        unstored = await client.responses.create(model="chat", input="hi", store=False)
        await client.responses.delete(kept.id)
        for response in (kept, unstored):
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(response.id)
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(model="chat", input="hi", previous_response_id=response.id)
            assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")
        run = await http.get(f"{url}/v1/runs/run_{kept.id.removeprefix('resp_')}")
        audit = (await http.get(f"{url}/v1/audit", params={"action": "run.delete"})).json()["data"]
    assert run.status_code == 404
    assert len(audit) == 1


async def test_items_are_referred_to_by_their_ids(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(says("Hello Ada.", to="completion"))) as url, sdk(url) as client:
        first = await client.responses.create(model="chat", input="I am Ada")
        asked = [item async for item in client.responses.input_items.list(first.id)]
        references: Any = [{"type": "item_reference", "id": asked[0].id}, {"id": first.output[0].id}]
        await client.responses.create(model="chat", input=[*references, {"role": "user", "content": "Who am I?"}])
        unstored = await client.responses.create(model="chat", input="I am Ada", store=False)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(
                model="chat", input=[{"type": "item_reference", "id": unstored.output[0].id or ""}]
            )
    assert model_server.requests()[1]["body"]["messages"] == [
        {"role": "user", "content": "I am Ada"},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "Who am I?"},
    ]
    assert caught.value.param == "input[0].id"


async def test_a_pipeline_conversation_is_a_chain(serve: Serve, model_server: ScriptedServer) -> None:
    model = script(says("Which folder?", to="skill", times=1), says("That one, then.", to="skill"))
    async with serve(model) as url, sdk(url) as client:
        first = await client.responses.create(model="pipelines", input="Read my papers on kelp")
        second = await client.responses.create(
            model="pipelines", input="the one named kelp", previous_response_id=first.id
        )
        read = await client.responses.retrieve(second.id)
    assert first.output_text == "Which folder?"
    assert read.output_text == "That one, then."
    assert (first.conversation and first.conversation.id) == (second.conversation and second.conversation.id)
    assert first.conversation is not None
    told = [m["content"] for m in model_server.requests()[-1]["body"]["messages"] if m["role"] != "system"]
    assert sum("Read my papers on kelp" in text for text in told) == 1
    assert any("Which folder?" in text for text in told)
