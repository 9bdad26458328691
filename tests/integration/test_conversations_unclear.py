"""What a conversation does with a message that does not say what is wanted: it asks one question, and nothing else."""

from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import kinds, papers, read_answer, talk

UNCLEAR = "Can you do something with it?"


@pytest.mark.row("S000-50")
async def test_rules_ask_one_question_and_start_nothing(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with (
        serve(None, conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        mine = await talk(client, folder)
        found = await mine.say(UNCLEAR)
        assert read_answer(found).count("?") == 1
        assert not {"subagent", "pipeline", "uncertainty"} & kinds(found)
        # What a turn begins with, and what speaks for the rules: they look into nothing and change nothing.
        assert {one["tool"] for one in found if one["type"] == "tool"} == {"get_pipeline_state", "suggest_pipeline"}
        known = await mine.look()
        assert (known["source_analysis"], known["current_pipeline"]) == (None, None)


@pytest.mark.row("S000-50")
async def test_a_model_that_asks_is_heard_and_no_tool_is_called(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    question = "What would you like to find in these papers?"
    async with (
        serve(script(says(question, to="skill", about="ask one question, and do nothing else"))) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        mine = await talk(client, folder)
        found = await mine.say(UNCLEAR)
        assert read_answer(found) == question
        assert {one["tool"] for one in found if one["type"] == "tool"} == {"get_pipeline_state"}, "the briefing only"
        assert [one["purpose"] for one in model_server.requests()] == ["skill"]
