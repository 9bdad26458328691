"""Conversations that rules carry: what is doubtful is settled in words, and a short reply answers what was asked."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.documents import encrypted_pdf, scanned_pdf
from tests.support.talks import Talk, kinds, papers, said, talk

INDEX = "Help me index these research papers"


@contextlib.asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    options = {"conversations_require_llm": False, **options}
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def doubtful(data_dir: Path) -> Path:
    """A folder with something that blocks, and something in another language."""
    folder = papers(data_dir, 3)
    for number in range(2):
        (folder / f"locked{number}.pdf").write_bytes(encrypted_pdf())
    (folder / "brief.md").write_text(
        "Das ist ein langer Brief an die Verwaltung der Stadt, die ihn nicht lesen wird.\n" * 9
    )
    return folder


async def doubts(mine: Talk) -> dict[str, dict[str, Any]]:
    """What is doubtful, by its words."""
    return {one["message"]: one for one in (await mine.look())["uncertainties"]}


@pytest.mark.row("S000-09", "S000-12")
async def test_what_blocks_is_settled_by_who_means_it_and_is_written_down(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        mine = await talk(client, doubtful(tmp_path / "data"))
        told = said(await mine.say(INDEX))
        (line,) = [one for one in told.splitlines() if "blocking:" in one and one.startswith("- #")]
        number = line.removeprefix("- #").split()[0]
        assert f"`doubt {number} is fine`" in told
        vague = await mine.say("that is fine")
        assert "blocking issue is open" in said(vague)
        everything = await mine.say("all doubts are fine")
        assert "subagent" not in kinds(everything), "what is known is not found out again"
        assert f"- #{number} blocking" in said(everything).partition("Still doubtful")[2]
        assert (await mine.apply("kelp")).status_code == 400
        refused = said(await mine.say("apply kelp"))
        assert "Blocking issues unresolved" in refused
        assert "`doubt NUMBER is fine`" in refused
        settled = await mine.say(f"doubt {number} is fine, and sort them by author")
        assert "What I understand" in said(settled), "half of it is not taken for the whole"
        settled = await mine.say(f"Okay, doubt {number} is fine with me.")
        assert line in said(settled).partition("Still doubtful")[0]
        (blocking,) = [one for one in (await doubts(mine)).values() if one["severity"] == "blocking"]
        assert (blocking["resolved_by"], blocking["resolver"]) == ("user_confirmed", "local")
        assert blocking["note"] == f"Okay, doubt {number} is fine with me."
        again = said(await mine.say("make the chunks smaller"))
        assert "blocking:" not in again, "a person's word stands"
        assert "Approval needed" in said(await mine.say("apply kelp"))
        done = said(await mine.say("approve"))
        assert "being read now" in done
        assert "room `knowledge`" in done
        assert "/v1/" not in done, "nobody calls an API from a chat"
        await client.get(f"/v1/jobs/{(await mine.look())['job_id']}", params={"wait_s": 30})
        audit = (await client.get("/v1/audit", params={"action": "conversation.resolve"})).json()["data"]
        assert audit[0]["target"] == mine.id


async def test_a_wish_and_a_doubt_in_one_message_and_numbers_that_stay(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        mine = await talk(client, doubtful(tmp_path / "data"))
        await mine.say(INDEX)
        told = said(await mine.say("use sentences, and never mind the languages"))
        assert "cut by the chunker sentence" in told
        assert "several languages" not in told.partition("**Doubtful**")[2]
        assert "#1 " in told, "the others have the numbers they had"
        settled = [message for message, one in (await doubts(mine)).items() if one["resolved_by"] == "user_confirmed"]
        assert len(settled) == 1
        assert "several languages" in settled[0]
        assert "open: the documents are" not in said(await mine.say("status"))


async def test_who_wants_ocr_has_settled_that_there_are_scans(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder / "scan.pdf").write_bytes(scanned_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        assert "scanned pages" in said(await mine.say(INDEX)).partition("**Doubtful**")[2]
        told = said(await mine.say("OCR them"))
        assert "every page of PDFs by OCR" in told
        assert "scanned pages" not in told.partition("**Doubtful**")[2]
        (scans,) = [one for message, one in (await doubts(mine)).items() if "scanned pages" in message]
        assert (scans["resolved_by"], scans["resolver"], scans["note"]) == ("pipeline_adjusted", "local", "OCR them")


async def test_a_short_reply_answers_what_was_asked(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        assert "What I understand" in said(await mine.say("use the second one")), "nothing was listed"
        listed = said(await mine.say("which templates are there?")).splitlines()
        assert listed[-1].startswith("- windows:")
        await mine.say("use the last one")
        assert (await mine.look())["current_pipeline"]["template"] == "windows"
        await mine.say("the notes one, please")
        assert (await mine.look())["current_pipeline"]["template"] == "notes"
        assert "What I understand" in said(await mine.say("kelp")), "nobody had asked for a name"
        assert "`apply NAME`" in said(await mine.say("looks good, do it"))
        assert "say `apply kelp`" in said(await mine.say("kelp"))


async def test_a_word_that_is_a_wish_or_a_refusal_is_no_name(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        mine = await talk(client, papers(tmp_path / "data", 2))
        await mine.say(INDEX)
        for word in ("validate", "OCR", "reset", "undo", "never", "abort"):
            assert "`apply NAME`" in said(await mine.say("looks good, do it")), word
            answer = said(await mine.say(word))
            assert f"`apply {word}" not in answer, word
