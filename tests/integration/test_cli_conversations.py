"""`stepgate ask` in a builder's conversation: its messages are the conversation's, and what it applies is read."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import API, papers, talk

RULES = {"conversations_require_llm": "false"}
ROOM = ("--room", "pipelines", "--conversation")


async def test_a_message_of_the_terminal_belongs_to_the_conversation(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    slow, quick = says("The first.", to="skill", times=1, delay_s=6), says("The second.", to="skill", times=1)
    model = {"llm_base_url": model_server.url, "model_fast": "small", "model_high": "large"}
    async with serve(script(slow, quick)) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, folder)
        first = asyncio.create_task(mine.ask("one"))
        while (await mine.look())["run_id"] is None:  # noqa: ASYNC110 - another process must be seen to begin
            await asyncio.sleep(0.05)
        code, output = await asyncio.to_thread(stepgate, tmp_path, "ask", *ROOM, mine.id, "two", **model)
        assert (code, "is being answered" in output) == (1, True), output
        assert (await first).json()["response"] == "The first."
        code, output = await asyncio.to_thread(stepgate, tmp_path, "ask", *ROOM, mine.id, "two", **model)
        assert (code, "The second." in output) == (0, True), output
        known = await mine.look()
    said = [(one["role"], one["content"]) for one in known["messages"] if one["role"] != "tool"]
    assert said == [("user", "one"), ("assistant", "The first."), ("user", "two"), ("assistant", "The second.")]
    assert "two" in known["summary"]
    assert known["run_id"] is None


@pytest.mark.row("S000-26")
async def test_what_is_approved_in_the_terminal_is_read_to_its_end(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    async with (
        serve(None, conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        mine = await talk(client, folder)
        await mine.say("Help me index these research papers")

    def rest() -> None:
        """Nobody serves."""
        code, output = stepgate(tmp_path, "ask", *ROOM, mine.id, "apply kelp", **RULES)
        assert (code, "Approval needed" in output) == (2, True), output
        run_id = re.findall(r"run_[0-9a-f]{32}", output)[0]
        code, output = stepgate(tmp_path, "runs", "approve", run_id, **RULES)
        assert (code, "kelp: 3 documents read" in output) == (0, True), output
        assert re.search(r"kelp\s+3\s+reports\s+ready", stepgate(tmp_path, "collections", "list", **RULES)[1])

    await asyncio.to_thread(rest)
    async with (
        serve(None, conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        known = (await client.get(f"{API}/{mine.id}")).json()
        assert known["status"] == "applied"
        assert known["run_id"] is None
        assert ("user", "apply kelp") in [(one["role"], one["content"]) for one in known["messages"]]
        assert "apply kelp" in known["summary"]
