"""Conversations that rules carry: what a person wishes in their own words happens, and is seen in the next dry run."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from tests.integration.conftest import Serve
from tests.support.documents import encrypted_pdf, word
from tests.support.talks import Talk, kinds, papers, said, talk

INDEX = "Help me index these research papers"


@contextlib.asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    options = {"conversations_require_llm": False, **options}
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def chunker(mine: Talk) -> tuple[str, dict[str, Any]]:
    """The chunker that is proposed, and its options."""
    (node,) = [one for one in (await mine.look())["current_pipeline"]["nodes"] if one["kind"] == "chunker"]
    return node["plugin"], node["options"]


async def test_wishes_in_a_persons_words_are_fulfilled(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        smaller = said(await mine.say("make the chunks smaller"))
        assert "chunk size 800 instead of 1600" in smaller
        assert await chunker(mine) == ("structure", {"size": 800, "table_size": 3200})
        sentences = said(await mine.say("Use sentences, please."))
        assert "cut by the chunker sentence" in sentences
        assert (await chunker(mine))[1]["size"] == 800
        assert "cut by the chunker sentence" in said(await mine.say("status")), "it is said for as long as it is so"
        half = said(await mine.say("use bigger chunks and sort them by author"))
        assert "\u201csort them by author\u201d" in half
        assert "Nothing was changed" in half
        assert (await chunker(mine))[1]["size"] == 800


async def test_files_that_are_left_out_are_no_failures(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 4)
    for number in range(3):
        (folder / f"minutes{number}.docx").write_bytes(word())
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        failing = said(await mine.say("which files fail, and why?"))
        assert "locked.pdf" in failing
        assert "encrypted" in failing
        assert "What blocks" in failing
        told = await mine.say("skip the docx and pdf files")
        assert "without pdf, docx files" in said(told)
        assert "4 files are left out, as the pipeline says (docx, pdf)" in said(told)
        known = await mine.look()
        assert (known["validation"]["files_tested"], known["validation"]["success_rate"]) == (4, 1.0)
        assert not [one for one in known["uncertainties"] if one["severity"] == "blocking" and not one["resolved"]]
        assert "No file of the sample failed" in said(await mine.say("which files fail?"))
        applied = await mine.apply("kelp")
        assert applied.status_code == 200, applied.text
        job = (await client.get(f"/v1/jobs/{applied.json()['job_id']}", params={"wait_s": 30})).json()
        assert (job["status"], job["report"]["read"], job["report"]["left_out"]) == ("done", 4, 4), job
        assert job["report"]["skipped"] == []


async def test_a_name_is_remembered_until_it_is_needed(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        nameless = await mine.say("Looks good, apply it")
        assert "`apply NAME`" in said(nameless)
        assert "subagent" not in kinds(nameless)
        assert "`apply NAME`" in said(await mine.say("apply it")), "no collection is called 'it'"
        assert "`apply kelp`" in said(await mine.say("call it kelp"))
        assert "`apply kelp`" in said(await mine.say("ok, do it")), "the name was said before"
        assert "`apply kelp`" in said(await mine.say("smaller chunks"))
        assert "Approval needed" in said(await mine.say("apply kelp"))


async def test_starting_over_drops_what_was_changed(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        before = (await mine.look())["current_pipeline"]
        assert "only md files" in said(await mine.say("use sentences, smaller chunks, and only the markdown files"))
        assert (await mine.look())["current_pipeline"] != before
        assert "because you speak of" in said(await mine.say("Start over, please"))
        assert (await mine.look())["current_pipeline"] == before


async def test_wishes_of_the_first_message_count(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder / "notes.txt").write_text("Kelp.\n")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        told = said(await mine.say(f"{INDEX} with smaller chunks, and skip the txt files"))
        assert "because you speak of papers" in told or "because you speak of research" in told
        assert "chunk size 800 instead of 1600" in told
        assert (await mine.look())["validation"]["files_tested"] == 2
