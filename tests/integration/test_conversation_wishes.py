"""Wishes in a user's own words go to the model, in any language; files of any kind are read, listed or left out."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_conversations import calls
from tests.support.documents import encrypted_pdf
from tests.support.script import Script, says
from tests.support.script import script as script_of
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import papers, read_answer, talk


@contextlib.asynccontextmanager
async def client_of(serve: Serve, model: Script | None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def test_source_code_and_plain_text_of_any_extension_are_read(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    (folder / "main.rs").write_text('fn main() { println!("kelp harvester"); }\n')
    (folder / "Makefile").write_text("all:\n\techo kelp\n")
    (folder / "notes.weird").write_text("The pump of the kelp farm is blue.\n")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    async with client_of(serve, None, conversations_require_llm=False) as client:
        mine = await talk(client, folder)
        told = read_answer(await mine.say("analyse"))
        assert "1 file (.png 1) is of a kind that no parser reads" in told
        validation = (await mine.look())["validation"]
        assert (validation["files_tested"], validation["success_rate"]) == (4, 1.0)
        applied = await mine.apply("farm")
        assert applied.status_code == 200, applied.text
        job = (await client.get(f"/v1/jobs/{applied.json()['job_id']}", params={"wait_s": 30})).json()
        assert (job["status"], job["report"]["read"]) == ("done", 4), job
        for query, name in (("kelp harvester", "main.rs"), ("blue pump", "notes.weird")):
            body = {"collection": "farm", "query_text": query, "min_relevance_score": 0.1}
            found = (await client.post("/v1/search", json=body)).json()["results"]
            assert found[0]["metadata"]["source"] == name


@pytest.mark.parametrize(
    "wish",
    [
        "Gör styckena mindre, tack",
        "段落をもっと短くしてください",
        "Haz los fragmentos más pequeños y deja fuera los borradores",
    ],
)
async def test_wishes_in_any_language_go_to_the_model_as_they_were_said(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path, wish: str
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, Script()) as client:
        mine = await talk(client, folder)
        model_server.load(
            script_of(
                calls("build_pipeline", template="reports", parameters={"chunk_size": 300}),
                says("Det är gjort.", to="skill"),
            )
        )
        answer = read_answer(await mine.say(wish))
        assert answer == "Det är gjort.\n\nThe proposed pipeline was not validated yet."
        sizes = {node["options"].get("size") for node in (await mine.look())["current_pipeline"]["nodes"]}
        assert 300 in sizes
        assert wish in str(model_server.requests()[0]["body"]["messages"])


async def test_a_refused_application_reads_as_a_refusal_with_its_reasons(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve, None, conversations_require_llm=False) as client:
        mine = await talk(client, folder)
        await mine.say("analyse")
        found = await mine.say("apply kelp")
        told = read_answer(found)
        assert told.startswith("This was refused: Blocking issues unresolved: 1 of 3 files failed")
        assert "`resolve NUMBER`" in told
        assert not [one for one in found if one["type"] == "error"]
        for word in ("Traceback", "could not finish", "ERR_", "What is missing"):
            assert word not in told
        refused = await mine.apply("kelp")
        assert (refused.status_code, refused.json()["error"]["error_code"]) == (400, "ERR_BLOCKING_UNCERTAINTY")
        assert "1 of 3 files failed" in str(refused.json())
