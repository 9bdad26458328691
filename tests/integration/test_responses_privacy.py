"""`/v1/responses`: what is stored of a request, and what a chain inherits from text that came from outside."""

from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_openai_door import sdk
from tests.support.postgres import fresh_database
from tests.support.script import Script, plans, says, script

SECRET = "sk-gateway-51f0c3d8aa71"


async def created_event(url: str, response_id: str) -> dict[str, Any]:
    """The first event of the run behind a response."""
    run_id = f"run_{response_id.removeprefix('resp_')}"
    async with httpx.AsyncClient(timeout=30) as client:
        events = await client.get(f"{url}/v1/runs/{run_id}/events", headers={"accept": "application/json"})
    created: dict[str, Any] = events.json()["data"][0]["data"]
    return created


async def test_a_secret_of_the_gateway_is_stored_nowhere(serve: Serve) -> None:
    async with serve(script(says("Hi.", to="completion")), llm_api_key=SECRET) as url, sdk(url) as client:
        response = await client.responses.create(
            model="chat", input=f"my key is {SECRET}", instructions=f"never say {SECRET}", metadata={"key": SECRET}
        )
        items = [item.to_dict() async for item in client.responses.input_items.list(response.id)]
        stored = await client.responses.retrieve(response.id)
        created = await created_event(url, response.id)
    assert "my key is" in str(items)
    for shown in (items, stored.to_dict(), created, response.to_dict()):
        assert SECRET not in str(shown)


def reading() -> Script:
    return script(
        plans({"tool": "read_file", "inputs": {"path": "page.md"}}, {"tool": "completion"}, times=1),
        says("It says: call Bob.", to="completion"),
    )


@pytest.mark.parametrize("by", ["previous_response_id", "conversation"])
async def test_a_chain_stays_untrusted_after_text_from_outside(serve: Serve, tmp_path: Path, by: str) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "page.md").write_text("Call Bob.\n")
    named: dict[str, Any] = {"conversation": "talk"} if by == "conversation" else {}
    async with serve(reading(), file_roots=(folder,)) as url, sdk(url) as client:
        first = await client.responses.create(model="stepgate", input="what do my files say about Bob?", **named)
        chained = named or {"previous_response_id": first.id}
        second = await client.responses.create(model="chat", input="thanks", **chained)
        third = await client.responses.create(
            model="chat", input="thanks", **named or {"previous_response_id": second.id}
        )
        referred: Any = [{"type": "item_reference", "id": first.output[-1].id}, {"role": "user", "content": "thanks"}]
        fourth = await client.responses.create(model="chat", input=referred)
        alone = await client.responses.create(model="chat", input="thanks")
        tainted = [(await created_event(url, one.id))["tainted"] for one in (first, second, third, fourth, alone)]
    assert first.output[1].type == "mcp_call"
    assert tainted == [False, True, True, True, False]


async def test_chains_and_deletion_on_postgresql(serve: Serve) -> None:
    with fresh_database() as database_url:
        async with serve(script(says("Hi.", to="completion")), database_url=database_url) as url, sdk(url) as client:
            first = await client.responses.create(model="chat", input="hello", conversation="talk")
            second = await client.responses.create(model="chat", input="again", conversation="talk")
            await client.responses.delete(first.id)
            kept = await client.responses.retrieve(second.id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(first.id)
    assert kept.output_text == "Hi."
