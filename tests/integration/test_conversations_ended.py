"""A conversation that has ended says where its way goes on, and another one goes on from its pipeline."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import Serve, client_of
from tests.support.documents import encrypted_pdf
from tests.support.talks import API, Talk, papers, read_answer, talk

INDEX = "Help me index these research papers"


async def applied(client: httpx.AsyncClient, folder: Path, name: str) -> Talk:
    """A conversation whose pipeline fills a collection."""
    mine = await talk(client, folder)
    await mine.say(INDEX)
    done = await mine.apply(name)
    assert done.status_code == 200, done.text
    await client.get(f"/v1/jobs/{done.json()['job_id']}", params={"wait_s": 30})
    return mine


async def test_it_says_what_can_be_done_next(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await applied(client, folder, "kelp")
        late = await mine.ask("make the chunks smaller")
        told = late.json()["error"]
        assert (late.status_code, told["error_code"]) == (400, "ERR_CONVERSATION_NOT_ACTIVE")
        assert (told["details"]["status"], told["details"]["collection"]) == ("applied", "kelp")
        for words in ("Conversation is not active", "ask the collection 'kelp'", f'"from_conversation": "{mine.id}"'):
            assert words in told["message"]
        chat = {"model": "pipelines", "messages": [{"role": "user", "content": "smaller chunks"}]}
        other = await client.post("/v1/chat/completions", json=chat, headers={"X-OpenWebUI-Chat-Id": mine.id})
        assert (other.status_code, "new chat" in other.json()["error"]["message"]) == (400, True), other.text
        over = await talk(client, folder)
        await client.post(f"{API}/{over.id}/abandon")
        message = (await over.ask("go on")).json()["error"]["message"]
        assert "was abandoned" in message
        assert "ask the collection" not in message
        await client.delete("/v1/collections/kelp")
        message = (await mine.ask("go on")).json()["error"]["message"]
        assert "was applied to the collection 'kelp', which is deleted. What you can do: begin another" in message


async def test_another_one_goes_on_from_its_pipeline(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        first = await applied(client, folder, "kelp")
        before = await first.look()
        made = await client.post(API, json={"from_conversation": first.id})
        assert made.status_code == 201, made.text
        second = Talk(client, made.json()["id"], made.json()["source_id"])
        known = await second.look()
        assert (known["status"], known["source_id"]) == ("active", first.source_id)
        assert known["current_pipeline"] == before["current_pipeline"]
        assert known["source_analysis"] == before["source_analysis"]
        assert (known["validation"], known["messages"], known["messages_note"]) == (None, [], "")
        assert "Proposed pipeline: template 'reports'" in known["summary"]
        smaller = read_answer(await second.say("set chunk_size 800"))
        assert "chunk size 800" in smaller
        again = await second.apply("kelp")
        assert (again.status_code, "choose another name" in again.text) == (409, True)
        done = await second.apply("kelp-fine")
        assert done.status_code == 200, done.text
        await client.get(f"/v1/jobs/{done.json()['job_id']}", params={"wait_s": 30})
        assert (await first.look())["current_pipeline"] == before["current_pipeline"], "the first one is as it was"


@pytest.mark.row("S000-09", "S000-12")
async def test_what_is_doubtful_is_no_less_so_in_another_one(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    for number in range(2):
        (folder / f"locked{number}.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve) as client:
        first = await talk(client, folder)
        await first.say(INDEX)
        assert (await first.apply("kelp")).status_code == 400
        second = Talk(client, (await client.post(API, json={"from_conversation": first.id})).json()["id"], "")
        carried = (await second.look())["uncertainties"]
        assert [(one["severity"], one["message"], one["resolved"]) for one in carried] == [
            (one["severity"], one["message"], one["resolved"]) for one in (await first.look())["uncertainties"]
        ]
        blocked = await second.apply("kelp")
        assert (blocked.status_code, blocked.json()["error"]["error_code"]) == (400, "ERR_BLOCKING_UNCERTAINTY")
        (doubt,) = [one for one in carried if one["severity"] == "blocking"]
        path = f"{API}/{second.id}/uncertainties/{doubt['id']}/resolve"
        assert (await client.post(path, json={"note": "nobody needs them"})).status_code == 200
        third = Talk(client, (await client.post(API, json={"from_conversation": second.id})).json()["id"], "")
        (settled,) = [one for one in (await third.look())["uncertainties"] if one["severity"] == "blocking"]
        assert (settled["resolved_by"], settled["resolver"]) == ("user_confirmed", "local")
        assert settled["note"] == "nobody needs them"
        await third.say("validate")
        assert (await third.apply("kelp")).status_code == 200, "a person's word stands"


async def test_it_may_go_on_with_another_source_and_needs_one(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    letters = folder.parent / "letters"
    letters.mkdir()
    (letters / "one.txt").write_text("Dear kelp.")
    async with client_of(serve) as client:
        first = await talk(client, folder)
        await first.say(INDEX)
        source = (await client.post("/v1/sources", json={"source_identifier": str(letters)})).json()["id"]
        made = await client.post(API, json={"from_conversation": first.id, "source_id": source})
        known = (await client.get(f"{API}/{made.json()['id']}")).json()
        assert (known["source_id"], known["source_analysis"]) == (source, None), "that was of other files"
        assert known["current_pipeline"]["template"] == "reports"
        assert (await client.post(API, json={"from_conversation": "conv_00"})).status_code == 404
        nothing = await client.post(API, json={})
        assert (nothing.status_code, nothing.json()["error"]["details"]["param"]) == (400, "source_id")
        await client.delete(f"/v1/sources/{first.source_id}")
        gone = await client.post(API, json={"from_conversation": first.id})
        assert (gone.status_code, "no longer has one" in gone.json()["error"]["message"]) == (400, True), gone.text


async def test_another_source_in_the_place_of_a_removed_one_is_looked_into(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    letters = folder.parent / "letters"
    letters.mkdir()
    (letters / "one.txt").write_text("Dear kelp.")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        assert "4 files" in read_answer(await mine.say(INDEX))
        assert (await client.delete(f"/v1/sources/{mine.source_id}")).status_code == 204
        assert "Which documents" in read_answer(await mine.say("go on"))
        told = read_answer(await mine.say("index letters"))
        assert "**Found**: 1 file," in told
        known = await mine.look()
        assert (known["source_analysis"]["total_files"], known["validation"]["files_found"]) == (1, 1)
        open_ones = [one["message"] for one in known["uncertainties"] if not one["resolved"]]
        assert not [one for one in open_ones if "password" in one or "failed" in one], open_ones


async def test_whoever_comes_second_is_told_what_happens(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        names = ("kelp", "other", "third", "kelp")
        tried = await asyncio.gather(*(mine.apply(name) for name in names))
        done = [name for name, one in zip(names, tried, strict=True) if one.status_code == 200]
        assert len(set(done)) == 1, [one.text for one in tried]
        for one in tried:
            if one.status_code != 200:
                assert one.status_code in (400, 409), one.text
                assert "{run_id}" not in one.text
        known = await mine.look()
        assert known["collection_id"] == done[0]
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})
        assert [one["name"] for one in (await client.get("/v1/collections")).json()["data"]] == [done[0]]


async def test_applying_and_abandoning_at_once_ends_in_one_of_both(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        one, other = await asyncio.gather(mine.apply("kelp"), client.post(f"{API}/{mine.id}/abandon"))
        assert 200 in (one.status_code, other.status_code), (one.text, other.text)
        known = await mine.look()
        there = (await client.get("/v1/collections/kelp")).status_code
        assert (known["status"], there) in (("applied", 200), ("abandoned", 404))
        if known["job_id"]:
            await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})


async def test_messages_that_are_gone_are_told_also_where_later_ones_are_there(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say("which parsers are there?")
        assert (await mine.look())["messages_note"] == ""
    async with client_of(serve) as client:
        mine = Talk(client, mine.id, mine.source_id)
        note = (await mine.look())["messages_note"]
        assert "Nothing else is lost" in note
        assert "AGENT_REDIS_URL" in note
        await mine.say("which chunkers are there?")
        known = await mine.look()
        assert [one["content"] for one in known["messages"] if one["role"] == "user"] == ["which chunkers are there?"]
        assert "Earlier messages have expired" in known["messages_note"]


async def test_a_message_that_is_too_long_says_how_long_it_is(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        long = await mine.ask("x" * 1_000_000)
        assert (long.status_code, "1,000,000" in long.json()["error"]["message"]) == (400, True), long.text
        empty = await mine.ask("  ")
        assert (empty.status_code, "is empty" in empty.json()["error"]["message"]) == (400, True), empty.text
        assert (await mine.look())["messages"] == []
