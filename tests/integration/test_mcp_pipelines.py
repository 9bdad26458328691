"""A pipeline is built and applied by single calls over MCP: each names the conversation, or the session has one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.conftest import Serve
from tests.support.keys import bearer, created_key
from tests.support.talks import API, papers

ERAS = ("2026-07-28", "legacy")
NAME = "conversation_id"


@asynccontextmanager
async def connected(serve: Serve, era: str, view: str = "all") -> AsyncIterator[tuple[Client, httpx.AsyncClient]]:
    """An MCP client of a gateway without a model, and an HTTP client of the same one."""
    async with (
        serve(None, conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
        Client(f"{url}/mcp/{view}" if view else f"{url}/mcp", mode=era) as client,
    ):
        yield client, http


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The JSON of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refuse(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    return "".join(getattr(block, "text", "") for block in result.content)


async def wait_for_index(http: httpx.AsyncClient, job_id: str) -> str:
    """The end of an indexing job."""
    job = await http.get(f"/v1/jobs/{job_id}", params={"wait_s": 30})
    status: str = job.json()["status"]
    return status


@pytest.mark.row("S000-26", "S000-27", "S000-28", "S000-29")
@pytest.mark.parametrize("era", ERAS)
async def test_the_calls_of_the_document_meet_in_the_conversation_they_name(
    serve: Serve, tmp_path: Path, era: str
) -> None:
    folder = papers(tmp_path / "data", 3)
    async with connected(serve, era) as (client, http):
        analysed = await call(client, "spawn_source_analyzer", source_id=str(folder), user_intent="index them")
        name = analysed[NAME]
        assert analysed["data"]["total_files"] == 3
        built = await call(client, "build_pipeline", template="reports", conversation_id=name)
        assert built[NAME] == name
        checked = await call(
            client, "spawn_pipeline_validator", pipeline=built["pipeline"], sample_count=3, conversation_id=name
        )
        assert (checked[NAME], checked["data"]["assessment"]) == (name, "ready")
        state = await call(client, "get_pipeline_state", conversation_id=name)
        assert (state["status"], state["pipeline"]["template"]) == ("active", "reports")
        seen = (await http.get(f"{API}/{name}")).json()
        assert seen["source_analysis"]["total_files"] == 3
        assert seen["current_pipeline"] == built["pipeline"]
        applied = await call(client, "apply_pipeline", collection_name="kelp", force=False, conversation_id=name)
        assert (applied["collection_name"], applied["status"], applied[NAME]) == ("kelp", "indexing", name)
        assert await wait_for_index(http, applied["job_id"]) == "done"
        assert (await http.get(f"{API}/{name}")).json()["status"] == "applied"
        assert len((await http.get(API)).json()["data"]) == 1, "all calls met in one"
        over = await refuse(client, "build_pipeline", template="reports", conversation_id=name)
        assert "under a new conversation_id" in over
        other = await call(client, "build_pipeline", template="notes", conversation_id="my next one")
        assert other[NAME] != name


async def test_without_a_session_a_call_that_continues_must_name_its_conversation(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with connected(serve, "2026-07-28") as (client, http):
        built = await call(client, "build_pipeline", template="reports", source_id=str(folder))
        for tool, arguments in (("apply_pipeline", {"collection_name": "kelp"}), ("get_pipeline_state", {})):
            assert f"{NAME}: name the conversation" in await refuse(client, tool, **arguments)
        unknown = {"collection_name": "kelp", NAME: "conv_of_nobody"}
        assert "there is no conversation 'conv_of_nobody'" in await refuse(client, "apply_pipeline", **unknown)
        assert "this must be text" in await refuse(client, "build_pipeline", template="reports", conversation_id=7)
        assert len((await http.get(API)).json()["data"]) == 1, "what was refused began none"
        applied = await call(client, "apply_pipeline", collection_name="kelp", conversation_id=built[NAME])
        assert await wait_for_index(http, applied["job_id"]) == "done"


async def test_in_a_session_the_calls_meet_without_a_name(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with connected(serve, "legacy") as (client, http):
        assert f"{NAME}: name the conversation" in await refuse(client, "apply_pipeline", collection_name="kelp")
        built = await call(client, "build_pipeline", template="reports", source_id=str(folder))
        state = await call(client, "get_pipeline_state")
        assert state[NAME] == built[NAME]
        async with Client(f"{http.base_url}/mcp/all", mode="legacy") as other:
            assert f"{NAME}: name the conversation" in await refuse(other, "get_pipeline_state")
        applied = await call(client, "apply_pipeline", collection_name="kelp")
        assert applied[NAME] == built[NAME]
        assert await wait_for_index(http, applied["job_id"]) == "done"


async def test_a_conversation_without_a_source_says_how_to_name_one(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder.parent / "others").mkdir()
    async with connected(serve, "2026-07-28") as (client, _):
        name = (await call(client, "build_pipeline", template="reports"))[NAME]
        refused = await refuse(client, "apply_pipeline", collection_name="kelp", conversation_id=name)
        assert "Name it by source_id" in refused
        named = {"template": "reports", NAME: name}
        await call(client, "build_pipeline", **named, source_id=str(folder))
        await call(client, "build_pipeline", **named, source_id=str(folder))
        other = await refuse(client, "build_pipeline", **named, source_id=str(folder.parent / "others"))
        assert "begin another one for another source" in other
        assert (await call(client, "apply_pipeline", collection_name="kelp", conversation_id=name))["job_id"]


async def test_a_conversation_of_http_goes_on_over_mcp(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with connected(serve, "2026-07-28", view="") as (client, http):
        source = (
            await http.post("/v1/sources", json={"source_identifier": str(folder), "source_type": "local"})
        ).json()
        begun = (await http.post(API, json={"source_id": source["id"]})).json()
        listed = await client.call_tool("tools_find", {"query": "build_pipeline"})
        assert listed.structured_content is not None
        schemas = {tool["name"]: tool["input_schema"] for tool in listed.structured_content["tools"]}
        assert NAME in schemas["build_pipeline"]["properties"]
        built = await call(client, "tools_call", name="build_pipeline", args={"template": "reports", NAME: begun["id"]})
        assert built[NAME] == begun["id"]
        shown = (await http.get(f"{API}/{begun['id']}")).json()
        assert shown["current_pipeline"]["template"] == "reports"
        assert shown["messages"] == [], "a single call is no message"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert not any(NAME in tool.input_schema["properties"] for tool in tools.values()), "only what needs one"


async def test_a_client_that_reads_only_the_text_learns_the_conversation(serve: Serve) -> None:
    async with connected(serve, "2026-07-28") as (client, _):
        result = await client.call_tool("build_pipeline", {"template": "reports"})
        assert result.structured_content is not None
        (*_, last) = result.content
        assert getattr(last, "text", "") == f"{NAME}: {result.structured_content[NAME]}"


async def test_another_owners_conversation_is_not_there(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with serve(require_key="always", conversations_require_llm=False) as url:
        keys = [
            await created_key(tmp_path / "data", owner, owner=owner, scopes="mcp,ingest") for owner in ("anna", "bob")
        ]
        async with with_key(url, keys[0]) as anna, with_key(url, keys[1]) as bob:
            built = await call(anna, "build_pipeline", template="reports", source_id=str(folder))
            stolen = {"collection_name": "kelp", NAME: built[NAME]}
            assert "there is no conversation" in await refuse(bob, "apply_pipeline", **stolen)
            assert "there is no conversation" in await refuse(
                bob, "build_pipeline", template="notes", **{NAME: built[NAME]}
            )
            assert (await call(anna, "get_pipeline_state", conversation_id=built[NAME]))["status"] == "active"


@asynccontextmanager
async def with_key(url: str, key: str) -> AsyncIterator[Client]:
    """An MCP client with an API key."""
    async with (
        httpx2.AsyncClient(headers=bearer(key), timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp/all", http_client=http)) as client,
    ):
        yield client
