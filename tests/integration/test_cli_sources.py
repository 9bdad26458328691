"""`stepgate sources`: what is registered in the terminal is there over HTTP, and the other way round."""

import asyncio
import json
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.talks import API, papers

RULES = {"conversations_require_llm": "false"}


async def test_a_source_of_the_terminal_is_one_of_the_doors(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    code, output = await asyncio.to_thread(stepgate, tmp_path, "sources", "list")
    assert (code, "sources add" in output) == (0, True), output
    code, output = await asyncio.to_thread(stepgate, tmp_path, "sources", "add", str(folder), "--name", "Kelp")
    assert code == 0, output
    source_id = output.split()[0]
    assert source_id.startswith("src_")
    code, again = await asyncio.to_thread(stepgate, tmp_path, "sources", "add", "papers")
    assert (code, again.split()[0]) == (0, source_id), "below a root, it is the same"
    async with (
        serve(None, conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        (known,) = (await client.get("/v1/sources")).json()["data"]
        assert (known["id"], known["name"], known["source_identifier"]) == (source_id, "Kelp", str(folder))
        assert (await client.post(API, json={"source_id": source_id})).status_code == 201
        site = {"source_type": "web", "source_identifier": "https://docs.example.org"}
        other = (await client.post("/v1/sources", json=site)).json()["id"]
        code, listed = await asyncio.to_thread(stepgate, tmp_path, "sources", "list", "--json")
        assert code == 0, listed
        assert {one["id"] for one in json.loads(listed)} == {source_id, other}
        code, output = await asyncio.to_thread(stepgate, tmp_path, "sources", "delete", source_id)
        assert (code, "deleted" in output) == (0, True), output
        assert (await client.get(f"/v1/sources/{source_id}")).status_code == 404
        audit = (await client.get("/v1/audit", params={"action": "source.delete"})).json()["data"]
        assert [(one["target"], "command line" in one["principal"]) for one in audit] == [(source_id, True)]


async def test_what_cannot_be_a_source_is_said(tmp_path: Path) -> None:
    papers(tmp_path / "data", 1)
    cases = {
        ("add", "/etc"): "may be read",
        ("add", "nowhere"): "there is no 'nowhere'",
        ("add", "ftp://x.example"): "are not read",
        ("delete", "src_00"): "no source 'src_00'",
    }
    for words, expected in cases.items():
        code, output = await asyncio.to_thread(stepgate, tmp_path, "sources", *words)
        assert (code, expected in output) == (1, True), output
        assert "Traceback" not in output


async def test_another_owner_s_sources_are_theirs(tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    code, output = await asyncio.to_thread(stepgate, tmp_path, "sources", "add", str(folder), "--owner", "anna")
    assert code == 0, output
    source_id = output.split()[0]
    _, mine = await asyncio.to_thread(stepgate, tmp_path, "sources", "list")
    assert source_id not in mine
    _, hers = await asyncio.to_thread(stepgate, tmp_path, "sources", "list", "--owner", "anna")
    assert source_id in hers
