"""The text of a conversation's answer comes as the model writes it; a remark before a tool call is no part of it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import Call, says, script
from tests.support.talks import API, papers, read_answer, talk

ANSWER = "There are three chunkers: by sentence, by structure and by size."


async def streamed(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    async with client.stream("POST", path, json=body) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line.removeprefix("data: "))


@pytest.mark.row("S000-07", "S000-53")
async def test_the_answer_comes_in_pieces_while_it_is_written(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    model = script(says(ANSWER, to="skill", chunk=8, pause_s=0.05))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, folder)
        found = [one async for one in streamed(client, f"{API}/{mine.id}/messages", {"message": "What chunkers?"})]
        pieces = [one["content"] for one in found if one["type"] == "text"]
        assert len(pieces) >= 5
        assert "".join(pieces) == ANSWER
        known = await mine.look()
        assert known["messages"][-1]["content"] == ANSWER
        chat = {"model": "pipelines", "stream": True, "messages": [{"role": "user", "content": "What chunkers?"}]}
        chunks = [one async for one in streamed(client, "/v1/chat/completions", chat)]
        parts = [one["choices"][0]["delta"].get("content") for one in chunks if one.get("choices")]
        assert "".join(part for part in parts if part) == ANSWER
        assert len([part for part in parts if part]) >= 5


async def test_a_remark_before_a_tool_call_is_told_and_is_not_the_answer(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    model = script(
        says("Let me look.", to="skill", times=1, calls=(Call("list_plugins", {"kind": "chunker"}),)),
        says(ANSWER, to="skill"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, folder)
        found = await mine.say("What chunkers?")
        assert read_answer(found) == f"Let me look.\n\n{ANSWER}"
        assert any(one["type"] == "tool" and one["tool"] == "list_plugins" for one in found)
        known = await mine.look()
        assert known["messages"][-1]["content"] == ANSWER, "what is kept is the answer"


async def test_a_call_written_as_text_is_not_shown(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    written = json.dumps({"name": "list_plugins", "arguments": {"kind": "chunker"}})
    model = script(says(written, to="skill", times=1), says(ANSWER, to="skill"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, folder)
        assert read_answer(await mine.say("What chunkers?")) == ANSWER


async def test_a_stream_that_breaks_is_told_again_from_its_beginning(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    model = script(says(ANSWER, to="skill", times=1, fault="half_stream"), says(ANSWER, to="skill"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, folder)
        found = await mine.say("What chunkers?")
        assert read_answer(found).endswith(f"\n\n{ANSWER}"), found
        assert found[-1]["status"] == "complete"
        assert (await mine.look())["messages"][-1]["content"] == ANSWER
