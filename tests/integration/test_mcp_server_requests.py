"""What a foreign server asks in the middle of a call reaches the user of the MCP client that waits for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)

from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.mcp_client import until_async
from tests.support.script import Script, plans, says, script


class Person:
    """A person at a client, and the client's model: what they were asked, and what they answer."""

    def __init__(self, answer: ElicitResult | None = None) -> None:
        self.answer = answer or ElicitResult(action="accept", content={"name": "Ada"})
        self.questions: list[ElicitRequestFormParams] = []
        self.prompts: list[CreateMessageRequestParams] = []

    async def elicit(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.questions.append(params)
        return self.answer

    async def sample(self, _: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
        self.prompts.append(params)
        reply = TextContent(type="text", text="hello yourself")
        return CreateMessageResult(role="assistant", content=reply, model="theirs")

    @property
    def callbacks(self) -> dict[str, Any]:
        return {"elicitation_callback": self.elicit, "sampling_callback": self.sample}


@asynccontextmanager
async def connected(
    serve: Serve,
    folder: Path,
    era: str,
    rules: Script | None = None,
    *,
    trusted: bool = True,
    question: dict[str, Any] | None = None,
    **callbacks: Any,
) -> AsyncIterator[Client]:
    program = warm.server("tests.support.mcp_server_requests", str(folder / "diary"), json.dumps(question or {}))
    process = {**program, "trusted": trusted, "timeout": 20}
    servers = folder / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"srv": process}}))
    async with (
        serve(rules, mcp_servers=servers) as url,
        Client(f"{url}/mcp/all", mode=era, **callbacks) as client,
    ):

        async def is_listed() -> bool:
            tools = (await client.list_tools(cache_mode="bypass")).tools
            return any(tool.name == "srv__ask_person" for tool in tools)

        await until_async(is_listed)
        yield client


async def call(client: Client, name: str, **arguments: Any) -> str:
    async with asyncio.timeout(15):
        result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    (text,) = result.content
    assert isinstance(text, TextContent)
    return text.text


def list_texts(block: Any) -> list[Any]:
    return block.content if block.type == "tool_result" else [block]


HIDES, LEADS = "its schema hides characters", "its form has a link or an image"
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


@ERAS
async def test_a_question_reaches_the_user_and_the_answer_the_server(serve: Serve, tmp_path: Path, era: str) -> None:
    person = Person()
    async with connected(serve, tmp_path, era, **person.callbacks) as client:
        answer = json.loads(await call(client, "srv__ask_person"))
    assert answer == {"action": "accept", "content": {"name": "Ada"}}
    assert [one.message for one in person.questions] == ["The MCP server 'srv' asks: who?"]


@ERAS
async def test_nothing_in_the_question_of_a_server_is_live(serve: Serve, tmp_path: Path, era: str) -> None:
    person = Person()
    live = "who? ![](https://evil.example/p.png) [Sign in](https://evil.example) <img src=x>"
    choice = {"type": "string", "oneOf": [{"const": "Status: <none>", "title": live}], "default": live}
    pattern = "[A-Z](?:[0-9])"
    form = {
        "type": "object",
        "properties": {"name": {**choice, "title": live, "description": live, "pattern": pattern}},
    }
    asks = {"message": live, "requestedSchema": form}
    async with connected(serve, tmp_path, era, question=asks, **person.callbacks) as client:
        await call(client, "srv__ask_person")
    (asked,) = person.questions
    assert asked.message.startswith("The MCP server 'srv' asks: who?")
    shown = (asked.message + json.dumps(asked.requested_schema)).replace(pattern, "")
    assert not any(mark in shown for mark in ("![", "](", "<img"))
    assert shown.count("who?") == 5
    assert '"Status: <none>"' in shown


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"na\u200bme": {"type": "string"}}, HIDES),
        ({"name": {"type": "string", "enum": ["no", "n\u202eo"]}}, HIDES),
        ({"name": {"type": "string", "enum": ["n\u00ado"]}}, HIDES),
        ({"n[ame](https://evil.example)": {"type": "string"}}, LEADS),
        ({"name": {"type": "string", "enum": ["n![](//evil.example/p.png)"]}}, LEADS),
        ({"name": {"type": "string", "enum": ["a"], "enumNames": ["n<a href=https://evil.example>"]}}, LEADS),
    ],
    ids=["a name", "a value", "a soft hyphen", "a link as a name", "a picture as a value", "a link as a shown name"],
)
async def test_a_form_whose_names_hide_or_lead_somewhere_is_declined_with_the_reason(
    serve: Serve, tmp_path: Path, properties: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    person = Person()
    asks = {"requestedSchema": {"type": "object", "properties": properties}}
    lines: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")

    async with connected(serve, tmp_path, "legacy", question=asks, **person.callbacks) as client, asyncio.timeout(15):
        result = await client.call_tool("srv__ask_person", {}, progress_callback=note)
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text) == {"action": "decline"}
    assert person.questions == []
    assert any(f"was declined: {reason} in the name or value 'n" in line for line in lines), lines
    assert f"a question of the MCP server 'srv' was declined: {reason}" in caplog.text


@ERAS
async def test_a_user_may_decline(serve: Serve, tmp_path: Path, era: str) -> None:
    person = Person(ElicitResult(action="decline"))
    async with connected(serve, tmp_path, era, **person.callbacks) as client:
        assert json.loads(await call(client, "srv__ask_person")) == {"action": "decline"}


@ERAS
async def test_a_prompt_reaches_the_model_of_the_client(serve: Serve, tmp_path: Path, era: str) -> None:
    person = Person()
    async with connected(serve, tmp_path, era, **person.callbacks) as client:
        answer = json.loads(await call(client, "srv__ask_model"))
    assert answer["content"]["text"] == "hello yourself"
    assert [prompt.max_tokens for prompt in person.prompts] == [9]
    (prompt,) = person.prompts
    texts = [
        part.text for message in prompt.messages for block in message.content_as_list for part in list_texts(block)
    ]
    assert texts == ["hi", "ok"]
    assert [prompt.include_context for prompt in person.prompts] == [None], "the client's other servers stay its own"
    assert person.prompts[0].system_prompt == "The MCP server 'srv' asks this, not the user.\n\nBe brief."


@ERAS
async def test_a_server_that_is_not_trusted_may_not_use_the_clients_model(
    serve: Serve, tmp_path: Path, era: str
) -> None:
    person = Person()
    async with connected(serve, tmp_path, era, trusted=False, **person.callbacks) as client:
        result = await client.call_tool("srv__ask_model", {})
    assert person.prompts == []
    assert "hello yourself" not in str(result.content)
    messages = map(json.loads, (tmp_path / "diary").read_text().splitlines())
    hello = next(message for message in messages if message.get("method") == "initialize")
    assert "sampling" not in hello["params"]["capabilities"]


@ERAS
async def test_a_tool_of_a_plan_may_ask_too(serve: Serve, tmp_path: Path, era: str) -> None:
    person = Person()
    rules = script(
        plans({"tool": "srv__ask_person"}, {"tool": "completion"}), says("Her name is Ada.", to="completion")
    )
    async with connected(serve, tmp_path, era, rules, **person.callbacks) as client:
        assert await call(client, "agent_run", task="find out who it is and report") == "Her name is Ada."
    assert len(person.questions) == 1


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_cannot_ask_leaves_the_question_unanswered(serve: Serve, tmp_path: Path, era: str) -> None:
    async with connected(serve, tmp_path, era) as client:
        assert json.loads(await call(client, "srv__ask_person")) == {"action": "cancel"}
        assert "not supported" in json.loads(await call(client, "srv__ask_model"))["message"]
