"""From a folder to an answer whose claims point at the words they rest on, with and without a model."""

import json
from pathlib import Path

import pytest

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import AgentResponse
from agent.runs.rooms import load_rooms
from agent.tools import ToolContext
from gateway.features.documents.engine.ingest.library import FoundDocument, IngestReport
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.packaged_files import PACKAGE_ROOT
from tests.support.engine import Bench, engine_bench
from tests.support.script import Script, entails, says, script

ROOM = load_rooms(PACKAGE_ROOT / "config" / "rooms", default="knowledge").get("knowledge", None)
HANDBOOK = """# Staff handbook

## Holidays

Every employee has 28 days of paid holiday a year. Holidays are approved by the head of the department.

## Travel

Train tickets are booked by the travel desk. Flights under 600 kilometres are not paid for.
"""


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_md", ".md").replace("_txt", ".txt").replace("_pdf", ".pdf")).write_text(text)
    return folder


async def read(bench: Bench, folder: Path, collection: str = "work", owner: str = "local") -> IngestReport:
    return await bench.library.ingest(owner, collection, folder)


async def ask_question(tmp_path: Path, question: str, model: Script | None = None) -> tuple[AgentResponse, Bench]:
    async with engine_bench(tmp_path / "data", model, room=ROOM) as bench:
        await read(bench, folder_with(tmp_path, handbook_md=HANDBOOK, menu_txt="Lunch is soup on Mondays."))
        return await bench.run(question), bench


@pytest.mark.row("S003-22", "S003-28")
async def test_without_a_model_the_passages_themselves_are_the_answer(tmp_path: Path) -> None:
    response, _ = await ask_question(tmp_path, "How many days of paid holiday does an employee have?")
    assert response.metadata["status"] == "complete"
    assert "28 days of paid holiday" in response.response
    assert "[1]" in response.response
    source = response.metadata["sources"][0]
    assert source["name"].startswith("handbook.md")
    assert "28 days of paid holiday" in source["quotes"][0]


async def test_footnotes_of_a_document_are_not_taken_for_citations(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        await read(bench, folder_with(tmp_path, ducks_md="# Ducks\n\nDucks eat grasses.[24] They swim.[3]", b_md="# B"))
        response = await bench.run("what do ducks eat?")
    assert response.response == "**ducks.md \u203a Ducks**\n\n> Ducks eat grasses. They swim. [1]"
    assert response.metadata["status"] == "complete"
    assert "grasses.[24]" in response.metadata["sources"][0]["quotes"][0]


@pytest.mark.row("S003-29", "S003-47")
async def test_what_is_not_there_is_not_guessed_and_no_model_writes_an_answer(tmp_path: Path) -> None:
    model = script(says("Zinédine Zidane, of course.", to="completion"))
    response, bench = await ask_question(tmp_path, "Who won the football world cup in France?", model)
    assert response.response == "The documents don't say."
    assert response.metadata["status"] == "complete"
    assert response.metadata["sources"] == []
    assert bench.client.purposes() == ["planner"], "searches are planned, no answer is written"


async def test_a_model_answers_from_the_passages_and_cites_them(tmp_path: Path) -> None:
    model = script(
        says("An employee has 28 days [1].", to="completion", about="28 days of paid holiday"),
        entails(("supported", "28 days of paid holiday")),
    )
    response, bench = await ask_question(tmp_path, "How many days of paid holiday does an employee have?", model)
    assert response.response == "An employee has 28 days [1]."
    assert response.metadata["citations"][0]["source_id"] == 1
    assert bench.client.purposes() == ["completion", "entailment"], "its own words have a clear hit"
    assert "never guess" in json.dumps(bench.client.requests[0]["body"]["messages"][0])


async def test_reading_again_skips_replaces_and_removes(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        folder = folder_with(tmp_path, a_md="# Apples\n\nApples are red.", b_md="# Pears\n\nPears are green.")
        first = await read(bench, folder)
        assert (first.read, first.unchanged, first.removed) == (2, 0, 0)
        assert (await read(bench, folder)).unchanged == 2
        (folder / "a.md").write_text("# Apples\n\nApples are blue.")
        (folder / "b.md").unlink()
        again = await read(bench, folder)
        assert (again.read, again.unchanged, again.removed) == (1, 0, 1)
        found = await bench.library.search("local", "work", MemoryQuery(query_text="apples", min_relevance_score=0))
        assert [result.content for result in found.results] == ["# Apples\n\nApples are blue."]
        with pytest.raises(MemoryNoResultsError):
            await bench.library.search("local", "work", MemoryQuery(query_text="pears", min_relevance_score=0))
        assert [document.name for document in await bench.library.list_documents("local", "work")] == ["a.md"]


async def test_two_folders_share_a_collection_without_removing_each_other(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        one = folder_with(tmp_path / "x", a_md="# A\n\nOne.")
        other = folder_with(tmp_path / "y", a_md="# A\n\nTwo.")
        await read(bench, one)
        await read(bench, other)
        assert (await read(bench, one)).unchanged == 1
        assert len(await bench.library.list_documents("local", "work")) == 2


async def test_a_file_that_cannot_be_read_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, good_md="# Good\n\nAll is well.", bad_pdf="%PDF-1.4 no more of it", empty_txt="")
    (folder / "program.exe").write_bytes(b"MZ\x00")
    (folder / ".secret.md").write_text("not to be read")
    (folder / "link.md").symlink_to(folder / "good.md")
    async with engine_bench(tmp_path / "data", None) as bench:
        report = await read(bench, folder)
    assert report.read == 1
    assert {one.source: one.code for one in report.skipped} == {
        "bad.pdf": "ERR_PARSER_CORRUPT",
        "empty.txt": "ERR_PARSER_EMPTY",
        "program.exe": "ERR_PARSER_UNSUPPORTED",
        "link.md": "ERR_PARSER_UNSUPPORTED",
    }


@pytest.mark.parametrize(
    "question", ["What documents do you have?", "list all documents", "Which collections are there?"]
)
async def test_who_asks_what_there_is_gets_the_names(tmp_path: Path, question: str) -> None:
    response, _ = await ask_question(tmp_path, question)
    assert response.metadata["status"] == "complete"
    assert response.response == "**work**: 2 documents\n\n- handbook.md\n- menu.txt"


async def test_a_document_in_two_collections_says_a_thing_once(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        folder = folder_with(tmp_path, handbook_md=HANDBOOK)
        await read(bench, folder, "work")
        await read(bench, folder, "copy")
        found = await bench.engine.registry.get("search_knowledge").call(
            {"query": "paid holiday"}, ToolContext(run_id="run_1", owner="local")
        )
        assert isinstance(found.value, dict)
        results = found.value["results"]
        assert isinstance(results, list)
        texts = [one["text"] for one in results if isinstance(one, dict)]
        assert texts
        assert len(set(map(str, texts))) == len(texts)
        (passage,) = [one for one in results if isinstance(one, dict) and "28 days" in str(one["text"])]
        assert isinstance(passage["metadata"], dict)
        assert passage["metadata"]["title"] == "Staff handbook / Holidays"


async def test_collections_belong_to_their_owner_and_are_dropped_whole(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        await read(bench, folder_with(tmp_path, a_md="# A\n\nApples."), owner="ann")
        assert await bench.library.list_collections("bob") == {}
        with pytest.raises(NotFoundError, match="none yet"):
            await bench.library.list_documents("bob", "work")
        assert await bench.library.drop_collection("ann", "work") == 1
        assert await bench.library.list_collections("ann") == {}


async def test_two_do_not_read_into_one_collection_at_a_time(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, a_md="# A\n\nApples.")
    async with engine_bench(tmp_path / "data", None) as bench:
        await bench.library._documents.acquire_lock("local", "work", "somebody", 60)
        with pytest.raises(ConflictError, match="another process"):
            await read(bench, folder)
        await bench.library._documents.release_lock("local", "work", "somebody")
        assert (await read(bench, folder)).read == 1


async def test_without_documents_the_tool_says_how_to_get_some(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        response = await bench.run("How many days of paid holiday does an employee have?")
    assert "stepgate ingest" in response.response


async def test_a_document_that_was_read_again_while_its_removal_waited_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        folder = folder_with(tmp_path, menu_txt="Lunch is soup on Mondays.")
        await read(bench, folder)
        (before,) = await bench.library.list_documents("local", "work")
        looked_up = await bench.library.get_document("local", before.document_id)
        await read(bench, folder_with(tmp_path, menu_txt="Lunch is fish on Fridays."))
        (after,) = await bench.library.list_documents("local", "work")
        assert after.document_id != before.document_id

        async def look_up_earlier(*_: object) -> FoundDocument:
            return looked_up

        monkeypatch.setattr(bench.library, "get_document", look_up_earlier)
        await bench.library.remove_document("local", before.document_id)
        assert await bench.library.list_documents("local", "work") == []
        assert await bench.library._lexical.sample("work", owner="local", limit=10) == []


async def test_a_document_that_came_while_a_drop_waited_is_dropped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        await read(bench, folder_with(tmp_path, menu_txt="Lunch is soup on Mondays."))

        async def list_earlier(*_: object) -> list[Document]:
            return []

        monkeypatch.setattr(bench.library, "list_documents", list_earlier)
        assert await bench.library.drop_collection("local", "work") == 1
        assert await bench.library.list_collections("local") == {}
