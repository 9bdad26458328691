"""Conversations without a model: uncertainties are resolved by their numbers."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Serve, client_of
from tests.support.documents import encrypted_pdf
from tests.support.talks import Talk, kinds, papers, read_answer, talk

INDEX = "Help me index these research papers"


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
        told = read_answer(await mine.say(INDEX))
        (line,) = [one for one in told.splitlines() if "blocking:" in one and one.startswith("- #")]
        number = line.removeprefix("- #").split()[0]
        assert f"`resolve {number}`" in told
        vague = await mine.say("that is fine")
        assert "Nothing was changed" in read_answer(vague)
        everything = await mine.say("resolve all")
        assert "subagent" not in kinds(everything), "what is known is not found out again"
        assert f"- #{number} blocking" in read_answer(everything).partition("Still uncertain")[2]
        assert (await mine.apply("kelp")).status_code == 400
        refused = read_answer(await mine.say("apply kelp"))
        assert "Blocking issues unresolved" in refused
        assert "`resolve NUMBER`" in refused
        settled = await mine.say(f"resolve {number}\nsort them by author")
        assert "Nothing was changed" in read_answer(settled), "half of it is not taken for the whole"
        settled = await mine.say(f"resolve {number}")
        assert line in read_answer(settled).partition("Still uncertain")[0]
        (blocking,) = [one for one in (await doubts(mine)).values() if one["severity"] == "blocking"]
        assert (blocking["resolved_by"], blocking["resolver"]) == ("user_confirmed", "local")
        assert blocking["note"] == f"resolve {number}"
        again = read_answer(await mine.say("set chunk_size 800"))
        assert "blocking:" not in again, "a person's word stands"
        assert "Approval needed" in read_answer(await mine.say("apply kelp"))
        done = read_answer(await mine.say("approve"))
        assert "being read now" in done
        assert "room `knowledge`" in done
        assert "/v1/" not in done, "nobody calls an API from a chat"
        await client.get(f"/v1/jobs/{(await mine.look())['job_id']}", params={"wait_s": 30})
        audit = (await client.get("/v1/audit", params={"action": "conversation.resolve"})).json()["data"]
        assert audit[0]["target"] == mine.id


async def test_an_edit_and_a_resolution_in_one_message_and_numbers_that_stay(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        mine = await talk(client, doubtful(tmp_path / "data"))
        told = read_answer(await mine.say(INDEX))
        (line,) = [one for one in told.splitlines() if "several languages" in one and one.startswith("- #")]
        number = line.removeprefix("- #").split()[0]
        others = [one for one in told.splitlines() if one.startswith("- #") and one != line and "notable" in one]
        told = read_answer(await mine.say(f"chunker sentence\nresolve {number}"))
        assert "split by the chunker sentence" in told
        assert "several languages" not in told.partition("**Uncertain**")[2]
        assert all(one in told for one in others), "the others keep their numbers"
        settled = [message for message, one in (await doubts(mine)).items() if one["resolved_by"] == "user_confirmed"]
        assert len(settled) == 1
        assert "several languages" in settled[0]
        assert "open: the documents are" not in read_answer(await mine.say("status"))
        assert "no open uncertainty 77" in read_answer(await mine.say("resolve 77"))
