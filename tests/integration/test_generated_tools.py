"""`/v1/studio/tools`: a model writes a tool over real HTTP; a person applies it; it is a tool like any other."""

from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import script
from tests.support.tool_scripts import CODE, ToolScript

REQUEST = {"description": "Convert our part numbers: A-12 becomes 12A."}


def client_of(url: str, **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=120, **options)


async def call_tool(client: httpx.AsyncClient, name: str, **args: Any) -> dict[str, Any]:
    """The response of a run that calls one tool, in a room that names it."""
    body = {"prompt": "", "metadata": {"tool_calls": [{"tool": name, "args": args}]}}
    response = await client.post("/v1/agent", json=body)
    return {"status": response.status_code, **response.json()}


@pytest.mark.row("S002-10", "S002-11", "S002-18")
async def test_a_tool_is_made_applied_and_called(serve: Serve) -> None:
    async with serve(script(*ToolScript().rules())) as url, client_of(url) as client:
        made = await client.post("/v1/studio/tools", json=REQUEST)
        assert made.status_code == 201, made.text
        staged = made.json()
        assert (staged["name"], staged["version"], staged["state"], staged["is_active"]) == (
            "convert_part_number", 1, "staged", False,
        )  # fmt: skip
        assert (staged["code"], len(staged["tests"]), staged["review"]["approved"]) == (CODE, 3, True)
        assert (await call_tool(client, "convert_part_number", number="A-12"))["status"] == 400, "it is only staged"
        applied = await client.post(
            "/v1/studio/tools/convert_part_number/apply", json={"sha256": staged["sha256"], "version": 1}
        )
        assert applied.status_code == 200, applied.text
        assert (applied.json()["state"], applied.json()["approved_by"]) == ("applied", "local")
        called = await call_tool(client, "convert_part_number", number="A-12")
        assert '"12A"' in called["response"], called
        listed = {tool["name"]: tool for tool in (await client.get("/v1/tools")).json()["data"]}
        assert listed["convert_part_number"]["origin"] == "generated"
        assert listed["convert_part_number"]["description"].startswith("Convert a part number of the old form")
