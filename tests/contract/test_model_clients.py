"""One suite for every model client, from one script: the doubles must behave like the real clients."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from agent.core.errors import (
    ModelAuthError,
    ModelContextError,
    ModelDownError,
    ModelError,
    ModelOutputError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
)
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelChunk, ModelClient, ModelReply, ModelRequest, ResponseSchema
from agent.llm.sdk import LiteLLMClient
from tests.support.script import Call, Script, says, script
from tests.support.scripted_client import ScriptedClient
from tests.support.scripted_server import ScriptedServer

ASK = ModelRequest(
    model="scripted",
    messages=({"role": "user", "content": "hello"},),
    purpose="skill",
    temperature=0.0,
    max_tokens=50,
    timeout_s=10,
)

Load = Callable[[Script], ModelClient]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script()) as running:
        yield running


@pytest.fixture(params=["http", "litellm", "scripted"])
async def load(request: pytest.FixtureRequest, server: ScriptedServer) -> AsyncIterator[Load]:
    """Puts a script behind the client under test."""
    opened: list[ModelClient] = []

    def open_client(rules: Script) -> ModelClient:
        server.load(rules)
        client: ModelClient
        match request.param:
            case "http":
                client = HttpModelClient(server.url, "key")
            case "litellm":
                client = _Named(LiteLLMClient(api_key="key", base_url=server.url))
            case _:
                client = ScriptedClient(rules)
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        await client.aclose()


class _Named:
    """Adds the provider to the model's name, as LiteLLM does."""

    def __init__(self, inner: LiteLLMClient) -> None:
        self._inner = inner

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await self._inner.complete(_openai(request))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        return self._inner.stream(_openai(request))

    async def check(self) -> None:
        await self._inner.check()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _openai(request: ModelRequest) -> ModelRequest:
    from dataclasses import replace

    return replace(request, model=f"openai/{request.model}")


@pytest.mark.row("S001-02")
async def test_a_completion_carries_text_usage_and_its_end(load: Load) -> None:
    client = load(script(says("Hello back.", to="skill", prompt_tokens=7, completion_tokens=3, reasoning="hm")))
    reply = await client.complete(ASK)
    assert (reply.text, reply.finish_reason, reply.reasoning) == ("Hello back.", "stop", "hm")
    assert (reply.usage.model_calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 7, 3)


async def test_tool_calls_come_with_their_arguments_as_text(load: Load) -> None:
    client = load(script(says("", calls=(Call("add", {"a": 1}, id="c1"), Call("sub", {}, id="c2")))))
    reply = await client.complete(ASK)
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [("c1", "add", '{"a": 1}'), ("c2", "sub", "{}")]
    assert reply.finish_reason == "tool_calls"


async def test_a_stream_is_the_completion_in_pieces(load: Load) -> None:
    client = load(script(says("Some words in pieces.", chunk=5, reasoning="hm", prompt_tokens=7, completion_tokens=3)))
    chunks = [chunk async for chunk in client.stream(ASK)]
    assert "".join(c.text for c in chunks) == "Some words in pieces."
    assert "".join(c.reasoning for c in chunks) == "hm"
    assert [c.finish_reason for c in chunks if c.finish_reason] == ["stop"]
    usage = next(c.usage for c in reversed(chunks) if c.usage)
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)


async def test_half_a_stream_gives_its_half_and_then_fails(load: Load) -> None:
    client = load(script(says("0123456789", fault="half_stream", chunk=5)))
    seen: list[str] = []

    async def read() -> None:
        async for chunk in client.stream(ASK):
            seen.append(chunk.text)  # noqa: PERF401 - what came before the error is what is looked at

    with pytest.raises(ModelOutputError):
        await read()
    assert "".join(seen) == "01234"


@pytest.mark.row("S001-03")
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status_401", ModelAuthError),
        ("status_429", ModelRateLimitError),
        ("status_400", ModelRequestError),
        ("context", ModelContextError),
        ("status_500", ModelDownError),
        ("status_503", ModelDownError),
        ("empty", ModelError),
        ("garbage", ModelError),
    ],
)
async def test_every_fault_is_its_own_error(load: Load, fault: str, error: type[ModelError]) -> None:
    client = load(script(says("", fault=fault)))
    with pytest.raises(error):
        await client.complete(ASK)


async def test_a_rate_limit_tells_how_long_to_wait(load: Load) -> None:
    client = load(script(says("", fault="status_429", retry_after=7)))
    with pytest.raises(ModelRateLimitError) as caught:
        await client.complete(ASK)
    assert caught.value.retry_after_s == 7


async def test_a_silent_endpoint_times_out(load: Load) -> None:
    from dataclasses import replace

    client = load(script(says("", fault="hang")))
    with pytest.raises(ModelTimeoutError):
        await client.complete(replace(ASK, timeout_s=0.2))


async def test_an_endpoint_that_refuses_schemas_is_asked_without_one(load: Load) -> None:
    from dataclasses import replace

    client = load(script(says("", fault="refuse_schema", times=1), says("{}"), says("again")))
    asked = replace(ASK, response_schema=ResponseSchema("s", {"type": "object"}))
    assert (await client.complete(asked)).text == "{}"


async def test_the_endpoint_can_be_checked(load: Load) -> None:
    await load(script()).check()


async def test_an_endpoint_that_is_not_there_is_down() -> None:
    client = HttpModelClient("http://127.0.0.1:9/v1")
    with pytest.raises(ModelDownError, match="cannot be reached"):
        await client.complete(ASK)
    with pytest.raises(ModelDownError, match="cannot be reached"):
        await client.check()
    await client.aclose()


async def test_each_call_says_what_it_is_for_and_sends_nothing_unasked(server: ScriptedServer) -> None:
    server.load(script(says("ok")))
    client = HttpModelClient(server.url, "key")
    await client.complete(ASK)
    await client.aclose()
    (request,) = server.requests()
    assert request["purpose"] == "skill"
    assert set(request["body"]) == {"model", "messages", "temperature", "max_tokens"}
