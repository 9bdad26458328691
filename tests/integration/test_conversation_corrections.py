"""Conversations that rules carry, message after message: what a person has said stays said."""

from pathlib import Path

import pytest

from tests.integration.conftest import Serve, client_of
from tests.support.documents import encrypted_pdf
from tests.support.talks import API, Talk, papers, read_answer, talk

INDEX = "Help me index these research papers"


async def proposed(mine: Talk, message: str) -> tuple[str, int]:
    """The template and the size of its passages once this was said."""
    await mine.say(message)
    pipeline = (await mine.look())["current_pipeline"]
    (chunker,) = [node for node in pipeline["nodes"] if node["kind"] == "chunker"]
    return pipeline["template"], chunker["options"]["size"]


@pytest.mark.row("S000-11")
async def test_what_was_corrected_stays_corrected(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        assert await proposed(mine, INDEX) == ("reports", 1600)
        assert await proposed(mine, "template notes") == ("notes", 700)
        assert await proposed(mine, "set chunk_size 500") == ("notes", 500)
        assert await proposed(mine, "what about the tables in it?") == ("notes", 500)
        assert await proposed(mine, "analyse") == ("notes", 500)
        assert await proposed(mine, "template windows") == ("windows", 500)
        refused = await mine.say("set chunk_size 3")
        assert "cannot be done" in read_answer(refused)
        assert await proposed(mine, "go on") == ("windows", 500)


async def test_an_empty_folder_is_looked_at_again_once_files_are_there(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 0)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        found = await mine.say(INDEX)
        assert "`analyse`" in read_answer(found)
        known = await mine.look()
        assert (known["current_pipeline"], known["validation"]) == (None, None)
        papers(tmp_path / "data", 7)
        (folder / "locked.pdf").write_bytes(encrypted_pdf())
        found = await mine.say(f"I have put the papers there now; {INDEX}")
        assert "8 files" in read_answer(found)
        known = await mine.look()
        assert known["source_analysis"]["total_files"] == known["validation"]["files_found"] == 8
        blocking = [one for one in known["uncertainties"] if one["severity"] == "blocking" and not one["resolved"]]
        assert all("no file" not in one["message"] for one in blocking), blocking
        (folder / "locked.pdf").unlink()
        await mine.say("analyse")
        known = await mine.look()
        assert (known["validation"]["files_found"], known["validation"]["success_rate"]) == (7, 1.0), "validated again"
        assert (await mine.apply("papers")).status_code == 200
        await client.get(f"/v1/jobs/{(await mine.look())['job_id']}", params={"wait_s": 30})


async def test_one_doubt_of_two_sub_agents_is_told_once_and_not_settled_by_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        assert read_answer(await mine.say(INDEX)).count("made by rules") == 1
        assert read_answer(await mine.say("validate")).count("made by rules") == 1
        assert not any(one["resolved"] for one in (await mine.look())["uncertainties"])


@pytest.mark.parametrize("way", ["words", "id", "quoted"])
async def test_a_chat_names_its_source_in_words(serve: Serve, tmp_path: Path, way: str) -> None:
    folder = papers(tmp_path / "data", 3)
    async with client_of(serve) as client:
        headers = {"X-OpenWebUI-Chat-Id": "chat-1"}

        async def ask(text: str) -> str:
            sent = {"model": "pipelines", "messages": [{"role": "user", "content": text}]}
            response = await client.post("/v1/chat/completions", json=sent, headers=headers)
            assert response.status_code == 200, response.text
            content: str = response.json()["choices"][0]["message"]["content"]
            return content

        asked = await ask("Help me index my research papers in nowhere")
        assert "Which documents" in asked
        assert str(folder.parent) in asked
        assert "no source 'src_00'" in await ask("the source is src_00")
        assert "may be read" in await ask("index /etc/passwd")
        source = (await client.post("/v1/sources", json={"source_identifier": str(folder)})).json()
        text = {
            "words": "index papers",
            "id": f"the source is {source['id']}",
            "quoted": f'index "{folder}", please',
        }[way]
        assert "3 files" in await ask(text)
        known = (await client.get(f"{API}/chat-1")).json()
        assert (known["source_id"], known["current_pipeline"]["template"]) == (source["id"], "reports")


async def test_a_question_about_a_call_is_answered_and_a_change_of_it_is_taken(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        first = read_answer(await mine.say("apply papers"))
        assert "Approval needed" in first
        again = read_answer(await mine.say("what will this do?"))
        assert "Approval needed" in again
        assert "start reading the source" in again
        assert "`papers`" in again
        assert "use the name" in again
        renamed = read_answer(await mine.say("Use the collection name kelp-papers instead"))
        assert "`kelp-papers`" in renamed
        assert "`papers`" not in renamed
        done = await mine.say("yes")
        assert done[-1]["status"] == "complete", done
        known = await mine.look()
        assert (known["status"], known["collection_id"]) == ("applied", "kelp-papers")
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})


async def test_a_no_is_one_sentence(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        await mine.say("apply papers")
        assert read_answer(await mine.say("no")) == "You did not allow `apply_pipeline`, so it was not done."
        assert (await mine.look())["status"] == "active"


async def test_nobody_is_asked_to_allow_what_must_fail(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        early = read_answer(await mine.say("apply papers"))
        assert early.startswith("This was refused: No pipeline configured")
        (folder / "locked.pdf").write_bytes(encrypted_pdf())
        await mine.say(INDEX)
        refused = read_answer(await mine.say("apply papers"))
        assert refused.startswith("This was refused: Blocking issues unresolved: 1 of 3 files failed (33 %).")
        assert "`resolve NUMBER`" in refused
        assert "What is missing" not in refused, "a refusal is no crash"
        assert "Approval needed" not in refused
        assert "{" not in refused, "what a turn begins with is no result"
        assert "Approval needed" in read_answer(await mine.say("apply papers anyway"))
        assert (await mine.say("yes"))[-1]["status"] == "complete"
        await client.get(f"/v1/jobs/{(await mine.look())['job_id']}", params={"wait_s": 30})
        (folder / "locked.pdf").unlink()
        other = await talk(client, folder)
        await other.say(INDEX)
        taken = read_answer(await other.say("apply papers"))
        assert "already; choose another name" in taken
        assert "Approval needed" not in taken
