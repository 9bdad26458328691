"""Memories over HTTP and on the command line."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.support.processes import start


async def test_memories_are_listed_found_and_forgotten_over_http(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/v1/agent", json={"prompt": "remember that my dog is called Fido"})
        listed = (await client.get("/v1/memories")).json()["data"]
        assert [entry["text"] for entry in listed] == ["my dog is called Fido"]
        found = (await client.get("/v1/memories", params={"query": "the name of my dog"})).json()["data"]
        assert [entry["id"] for entry in found] == [listed[0]["id"]]
        assert 0 < found[0]["score"] <= 1
        assert (await client.delete(f"/v1/memories/{found[0]['id']}")).status_code == 204
        again = await client.delete(f"/v1/memories/{found[0]['id']}")
        assert (again.status_code, again.json()["error"]["error_code"]) == (404, "ERR_NOT_FOUND")
        assert (await client.get("/v1/memories")).json()["data"] == []
        assert (await client.get("/ready")).json()["components"]["memory"]["ok"] is True


def stepgate(folder: Path, words: Sequence[str]) -> tuple[int, str]:
    environment = {"AGENT_DATA_DIR": str(folder / "data"), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "200"}
    process = start([sys.executable, "-m", "gateway.cli", "memory", *words], environment=environment)
    return process.wait(60), "\n".join(process.output)


async def test_the_command_line_shares_the_memories_of_a_running_gateway(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        assert "No memories yet" in stepgate(tmp_path, ["list"])[1]
        await client.post("/v1/agent", json={"prompt": "remember that my dog is called Fido"})
        code, output = stepgate(tmp_path, ["list", "--json"])
        assert code == 0
        (memory,) = json.loads(output)
        assert memory["text"] == "my dog is called Fido"
        assert stepgate(tmp_path, ["delete", memory["id"]]) == (0, f"forgot {memory['id']}")
        assert (await client.get("/v1/memories", params={"query": "my dog"})).json()["data"] == []
    code, output = stepgate(tmp_path, ["delete", memory["id"]])
    assert (code, output) == (1, f"stepgate: there is no memory {memory['id']!r}")
    assert "always up to date" in stepgate(tmp_path, ["reindex"])[1]
