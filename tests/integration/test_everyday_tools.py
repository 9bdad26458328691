"""Twenty everyday tools, from the request to a call: made by a scripted model, tested in the sandbox, applied, called.

The replies are written by hand as a capable model writes them; what is tested is everything around them.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.integration.conftest import Serve
from tests.integration.test_generated_tools import call_tool, client_of
from tests.support.everyday_tools import EVERYDAY
from tests.support.sandboxes import requires_sandbox
from tests.support.script import Script, script
from tests.support.scripted_server import ScriptedServer

pytestmark = requires_sandbox


@asynccontextmanager
async def stock_server() -> AsyncIterator[str]:
    """The address of a server that knows the stock of the article A1."""

    async def answer(request: web.Request) -> web.Response:
        if request.match_info["article"] != "A1":
            raise web.HTTPNotFound
        return web.json_response({"pieces": 7})

    app = web.Application()
    app.router.add_get("/stock/{article}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def with_host(made: Script, host: str) -> Script:
    return Script.loads(made.dumps().replace("HOST", host))


@pytest.mark.row("S002-11", "S002-18", "S002-19")
async def test_everyday_tools_are_made_and_work(serve: Serve, tmp_path: Path, model_server: ScriptedServer) -> None:
    assert len(EVERYDAY) == 20
    notes = tmp_path / "files" / "notes"
    notes.mkdir(parents=True)
    (notes / "a.txt").write_text("colour = red\n")
    options: dict[str, Any] = {"file_roots": str(tmp_path / "files")}
    tiers: dict[str, str] = {}
    async with (
        stock_server() as host,
        serve(script(), fetch_allow_hosts=host, **options) as url,
        client_of(url) as client,
    ):
        for name, (request, made, args, expected) in EVERYDAY.items():
            model_server.load(with_host(script(*made.rules()), host))
            staged = await client.post("/v1/studio/tools", json={"description": request})
            assert staged.status_code == 201, (name, staged.text)
            assert (staged.json()["name"], staged.json()["state"]) == (name, "staged")
            tiers[name] = staged.json()["sandbox"]
            applied = await client.post(f"/v1/studio/tools/{name}/apply", json={"sha256": staged.json()["sha256"]})
            assert applied.status_code == 200, (name, applied.text)
            model_server.load(script())
            called = await call_tool(client, name, **args)
            result = called["metadata"]["tool_results"][0]
            assert result["ok"], (name, result)
            value = json.loads(called["response"]) if called["response"].startswith("{") else result
            assert {key: value[key] for key in expected if key in value} == expected, (name, called["response"])
        assert sorted(tool["name"] for tool in (await client.get("/v1/studio/tools")).json()["data"]) == sorted(
            EVERYDAY
        )
    assert tiers["flatten_json"] == "process", "a generator function needs CPython"
    assert tiers["check_iban"] == "interpreter"
