"""Clients of a plain room, by the official SDK, before providers that refuse what the real ones refuse."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from tests.integration.conftest import Serve
from tests.support.providers import ProviderServer, provider, rules

QUESTION: Any = {"role": "user", "content": "What is the weather in Lund?"}
FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOL: Any = {"type": "function", "function": FUNCTION}
SIGNED = {"google": {"thought_signature": "c2lnbmF0dXJl"}}


def call(call_id: str = "abcdefgh1", **extra: Any) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Lund"}'},
        **extra,
    }


def result(call_id: str = "abcdefgh1", content: Any = "12 degrees") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@asynccontextmanager
async def before(
    serve: Serve, of: rules.Rules, **options: Any
) -> AsyncIterator[tuple[openai.AsyncOpenAI, ProviderServer]]:
    """The SDK's client of a gateway, and the provider behind it."""
    async with (
        provider(of) as server,
        serve(llm_base_url=server.url, model_fast="model", **options) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2) as client,
    ):
        yield client, server


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


def sent_back(message: Any) -> dict[str, Any]:
    """A message of the SDK as a client adds it to its history."""
    data: dict[str, Any] = message.model_dump(exclude_none=True)
    data.pop("metadata", None)
    return data


async def streamed(client: openai.AsyncOpenAI, **body: Any) -> dict[str, Any]:
    """A streamed message, joined as the SDK's users join it."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning_content": "", "refusal": ""}
    calls: dict[int, dict[str, Any]] = {}
    async for chunk in await client.chat.completions.create(stream=True, **body):
        for choice in chunk.choices:
            extra = choice.delta.model_extra or {}
            message["content"] += choice.delta.content or ""
            message["refusal"] += choice.delta.refusal or ""
            message["reasoning_content"] += extra.get("reasoning_content") or ""
            message |= {key: value for key, value in extra.items() if key in ("reasoning_details", "extra_content")}
            for one in choice.delta.tool_calls or ():
                calls[one.index] = {key: value for key, value in one.model_dump().items() if key != "index"}
    return {**message, "tool_calls": list(calls.values())}


PROVIDERS = [rules.gpt_4, rules.gpt_5, rules.mistral, rules.anthropic, rules.openrouter(rules.mistral), rules.vllm]


@pytest.mark.parametrize("of", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_loop_of_a_clients_tools_keeps_its_order(serve: Serve, of: rules.Rules, stream: bool) -> None:
    async with before(serve, of) as (client, server):
        server.load({"tool_calls": [call(), call("abcdefgh2")]}, "It is 12 degrees.")
        body: dict[str, Any] = {"model": "chat", "tools": [TOOL], "temperature": 0.2}
        if stream:
            first = await streamed(client, messages=[QUESTION], **body)
            message = {"role": "assistant", "content": None, "tool_calls": first["tool_calls"]}
            history: Any = [QUESTION, message, result(), result("abcdefgh2")]
            text = (await streamed(client, messages=history, **body))["content"]
        else:
            first_whole = await client.chat.completions.create(messages=[QUESTION], **body)
            history = [QUESTION, sent_back(first_whole.choices[0].message), result(), result("abcdefgh2")]
            done = await client.chat.completions.create(messages=history, **body)
            text = done.choices[0].message.content or ""
    assert text == "It is 12 degrees."
    assert [role for role in roles(server.accepted[-1]) if role != "system"] == ["user", "assistant", "tool", "tool"]


async def test_a_prefilled_answer_stays_last(serve: Serve) -> None:
    async with before(serve, rules.anthropic) as (client, server):
        await client.chat.completions.create(
            model="chat", messages=[QUESTION, {"role": "assistant", "content": "It is"}]
        )
    assert roles(server.accepted[-1])[-2:] == ["user", "assistant"]


async def test_a_reasoning_model_is_asked_without_what_it_refuses(serve: Serve) -> None:
    async with before(serve, rules.gpt_5, llm_max_tokens=500) as (client, server):
        body: dict[str, Any] = {"model": "chat", "messages": [QUESTION], "temperature": 0.3, "top_p": 0.5}
        first = await client.chat.completions.create(**body)
        tried = len(server.bodies)
        again = await client.chat.completions.create(**body)
        last = await streamed(client, **body)
        planned = await client.chat.completions.create(
            model="stepgate", messages=[{"role": "user", "content": "fetch and compare the newest prices, please"}]
        )
    assert [first.choices[0].message.content, again.choices[0].message.content, last["content"]] == ["OK"] * 3
    assert tried == 4, "max_tokens, temperature and top_p were refused one after the other"
    assert len(server.bodies) == 4 + len(server.accepted) - 1, "what was learnt holds"
    assert {body["max_completion_tokens"] for body in server.accepted} == {500}
    assert planned.choices[0].message.content


async def test_calls_at_the_same_time_learn_together(serve: Serve) -> None:
    async with before(serve, rules.gpt_5, llm_max_tokens=500) as (client, server):
        server.meet = asyncio.Barrier(3)
        body: dict[str, Any] = {"model": "chat", "messages": [QUESTION], "temperature": 0.3}
        answers = await asyncio.gather(*(client.chat.completions.create(**body) for _ in range(3)))
    assert [answer.choices[0].message.content for answer in answers] == ["OK"] * 3


async def test_no_limit_is_sent_where_none_is_set(serve: Serve) -> None:
    async with before(serve, rules.gpt_4) as (client, server):
        await client.chat.completions.create(model="chat", messages=[QUESTION])
        await client.chat.completions.create(
            model="chat",
            messages=[QUESTION],
            max_completion_tokens=77,
            reasoning_effort="low",
            verbosity="low",
        )
        await client.chat.completions.create(model="chat", messages=[QUESTION], max_tokens=78)
    assert "max_tokens" not in server.accepted[0]
    assert "max_completion_tokens" not in server.accepted[0]
    asked = server.accepted[1]
    assert (asked["max_completion_tokens"], asked["reasoning_effort"], asked["verbosity"]) == (77, "low", "low")
    assert "max_tokens" not in asked
    assert server.accepted[2]["max_tokens"] == 78


async def test_the_new_name_of_the_limit_becomes_the_old_one_where_it_is_unknown(serve: Serve) -> None:
    async with before(serve, rules.mistral) as (client, server):
        await client.chat.completions.create(model="chat", messages=[QUESTION], max_completion_tokens=77, seed=3)
    assert server.accepted[-1]["max_tokens"] == 77
    assert "seed" not in server.accepted[-1]


async def test_a_parameter_that_decides_the_answer_is_not_dropped(serve: Serve) -> None:
    async with before(serve, rules.gpt_5) as (client, server):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="chat", messages=[QUESTION], stop=["x"])
    assert caught.value.param == "stop"
    assert len(server.bodies) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("of", [rules.gemini, rules.openrouter(rules.gemini)])
async def test_signatures_of_calls_come_back(serve: Serve, of: rules.Rules, stream: bool) -> None:
    parallel = [call("call_1", extra_content=SIGNED, index=0), call("call_2", index=0)]
    async with before(serve, of) as (client, server):
        server.load({"tool_calls": parallel}, "It is 12 degrees.")
        body: dict[str, Any] = {"model": "chat", "tools": [TOOL]}
        if stream:
            got = await streamed(client, messages=[QUESTION], **body)
            message: Any = {"role": "assistant", "content": None, "tool_calls": got["tool_calls"]}
        else:
            done = await client.chat.completions.create(messages=[QUESTION], **body)
            message = sent_back(done.choices[0].message)
        history: Any = [QUESTION, message, result("call_1"), result("call_2")]
        answer = await client.chat.completions.create(messages=history, **body)
    assert [one["id"] for one in message["tool_calls"]] == ["call_1", "call_2"]
    assert all(json.loads(one["function"]["arguments"]) == {"city": "Lund"} for one in message["tool_calls"])
    assert answer.choices[0].message.content == "It is 12 degrees."


@pytest.mark.parametrize(("of", "name"), [(rules.deepseek, "reasoning_content"), (rules.groq, "reasoning")])
@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_reaches_the_client_and_comes_back(
    serve: Serve, of: rules.Rules, name: str, stream: bool
) -> None:
    async with before(serve, of) as (client, server):
        server.load({name: "I must look it up.", "tool_calls": [call()]}, "It is 12 degrees.")
        body: dict[str, Any] = {"model": "chat", "tools": [TOOL]}
        if stream:
            message = await streamed(client, messages=[QUESTION], **body)
        else:
            done = await client.chat.completions.create(messages=[QUESTION], **body)
            message = sent_back(done.choices[0].message)
        history: Any = [QUESTION, {**message, "content": None}, result()]
        answer = await client.chat.completions.create(messages=history, **body)
    assert message["reasoning_content"] == "I must look it up."
    assert answer.choices[0].message.content == "It is 12 degrees."


@pytest.mark.parametrize("stream", [False, True])
async def test_blocks_of_reasoning_are_joined_and_come_back(serve: Serve, stream: bool) -> None:
    block = {"type": "reasoning.encrypted", "data": "b3BhcXVl", "index": 0, "id": "r1"}
    async with before(serve, rules.gpt_4) as (client, server):
        server.load({"reasoning_details": [block], "tool_calls": [call()]})
        if stream:
            message = await streamed(client, model="chat", messages=[QUESTION], tools=[TOOL])
        else:
            done = await client.chat.completions.create(model="chat", messages=[QUESTION], tools=[TOOL])
            message = sent_back(done.choices[0].message)
        history: Any = [QUESTION, {**message, "content": None}, result()]
        await client.chat.completions.create(model="chat", messages=history)
    assert message["reasoning_details"] == [block]
    assert server.accepted[-1]["messages"][-2]["reasoning_details"] == [block]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_one_for_the_client_too(serve: Serve, stream: bool) -> None:
    async with before(serve, rules.gpt_4) as (client, server):
        server.load({"content": None, "refusal": "I cannot help with that."})
        if stream:
            message = await streamed(client, model="chat", messages=[QUESTION])
        else:
            done = await client.chat.completions.create(model="chat", messages=[QUESTION])
            message = {"content": "", **sent_back(done.choices[0].message)}
    assert (message["refusal"], message["content"]) == ("I cannot help with that.", "")


async def test_a_refused_request_is_a_400_with_the_providers_words_and_asked_once(serve: Serve) -> None:
    async with before(serve, rules.gpt_4) as (client, server):
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message") as caught:
                await client.chat.completions.create(model="chat", messages=[QUESTION, result()], stream=stream)
            assert caught.value.param == "messages.[1].role"
            assert caught.value.response.headers["x-should-retry"] == "false"
            assert caught.value.type == "invalid_request_error"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("of", [rules.gpt_4, rules.mistral])
async def test_a_conversation_with_calls_of_another_model_goes_on(serve: Serve, of: rules.Rules) -> None:
    long_id = "call_" + "x" * 60
    history: Any = [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call(long_id)]}, result(long_id)]
    async with before(serve, of) as (client, server):
        server.load({"content": "It rains."})
        done = await client.chat.completions.create(model="chat", messages=history)
        sent = len(server.bodies)
        again = await client.chat.completions.create(model="chat", messages=history)
    assert done.choices[0].message.content == "It rains."
    assert again.choices[0].message.content
    assert len(server.bodies) == sent + 1, "what was refused once is not sent again"


@pytest.mark.parametrize(
    ("of", "told"),
    [(rules.ollama, "does not support tools"), (rules.openrouter(rules.ollama), "does not support tools")],
)
async def test_what_a_model_cannot_do_is_told(serve: Serve, of: rules.Rules, told: str) -> None:
    async with before(serve, of) as (client, server):
        with pytest.raises(openai.BadRequestError, match=told):
            await client.chat.completions.create(model="chat", messages=[QUESTION], tools=[TOOL])
    assert len(server.bodies) == 1


async def test_mistrals_order_is_told_by_its_code(serve: Serve) -> None:
    history: Any = [QUESTION, {"role": "assistant", "tool_calls": [call()]}, result(), QUESTION]
    async with before(serve, rules.mistral) as (client, _):
        with pytest.raises(openai.BadRequestError, match="Unexpected role 'user' after role 'tool'") as caught:
            await client.chat.completions.create(model="chat", messages=history)
    assert caught.value.code == "3230"


async def test_instructions_alone_names_and_images_of_tools_go_out(serve: Serve) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    history: Any = [
        {"role": "developer", "content": "Be brief."},
        {**QUESTION, "name": "ada"},
        {"role": "assistant", "content": None, "tool_calls": [call()]},
        result(content=[{"type": "text", "text": "a picture"}, image]),
    ]
    async with before(serve, rules.gpt_4) as (client, server):
        alone = await client.chat.completions.create(model="chat", messages=[{"role": "system", "content": "Say OK."}])
        planning = await client.chat.completions.create(
            model="stepgate", messages=[{"role": "developer", "content": "Say hello to everybody who reads this"}]
        )
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="chat", messages=history)
        history[-1] = result()
        await client.chat.completions.create(model="chat", messages=history)
    assert alone.choices[0].message.content == "OK"
    assert server.accepted[0]["messages"] == [{"role": "system", "content": "Say OK."}]
    assert planning.choices[0].message.content
    assert server.accepted[-1]["messages"][1]["name"] == "ada"
