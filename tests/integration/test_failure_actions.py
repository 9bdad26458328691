"""What is done about a failure of a source, a file or a search: asked for, skipped, searched once more, told."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.runs.response import build_response
from agent.runs.rooms import load_rooms
from agent.storage.credentials import CredentialError
from gateway.features.documents.engine.ingest.connectors.port import MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError
from gateway.features.documents.engine.ingest.jobs import report_to_json
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.packaged_files import PACKAGE_ROOT
from tests.integration.test_knowledge_doors import stepgate
from tests.support import documents
from tests.support.documents import Words
from tests.support.engine import engine_bench
from tests.support.reading import library, read
from tests.support.sources import Site, page

ROOM = load_rooms(PACKAGE_ROOT / "config" / "rooms", default="knowledge").get("knowledge", None)
PASSWORD = "open sesame 4711"


def protected(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "secret.pdf").write_bytes(documents.protected_pdf([Words("The vault is in the cellar.")], PASSWORD))
    return folder


def source(folder: Path, **options: Any) -> ConnectorInput:
    return ConnectorInput(source_type="local", source_identifier=str(folder), **options)


@pytest.mark.row("S003-45")
async def test_a_protected_file_asks_for_its_password_and_is_read_with_it(tmp_path: Path) -> None:
    folder = protected(tmp_path)
    async with library(tmp_path) as bench:
        report = await bench.library.ingest("local", "work", source(folder))
        (skipped,) = report.skipped
        assert (skipped.code, skipped.remedy) == (
            "ERR_PARSER_ENCRYPTED",
            "give the password of a PDF (password_id, --password-file), or leave it out",
        )
        store = tmp_path / "data" / "credentials.json"
        store.write_text(json.dumps({"vault": {"type": "document_password", "password": PASSWORD}}))
        store.chmod(0o600)
        report = await bench.library.ingest("local", "work", source(folder, password_id="vault"))
        assert (report.read, report.skipped) == (1, [])
        told = json.dumps(report_to_json(report))
        sources = (await bench.library.get_collection("local", "work")).sources
        assert PASSWORD not in told + str(sources)
        assert sources[-1].password_id == "vault"
        (document,) = await bench.library.list_documents("local", "work")
        found = await bench.library.get_document("local", document.document_id)
        assert "The vault is in the cellar." in (await bench.library.list_passages("local", found))[0].text
        with pytest.raises(CredentialError, match="there is no credential 'other'"):
            await bench.library.ingest("local", "work", source(folder, password_id="other"))


@pytest.mark.row("S003-45")
async def test_the_command_line_takes_the_password_from_a_file_only_its_owner_may_read(tmp_path: Path) -> None:
    folder = protected(tmp_path)
    given = tmp_path / "password"
    given.write_text("wrong\n")
    code, output = stepgate(tmp_path, "ingest", str(folder), "--password-file", str(given))
    assert code != 0
    assert "others may read or change" in output
    given.chmod(0o600)
    _, output = stepgate(tmp_path, "ingest", str(folder), "--password-file", str(given))
    assert "secret.pdf does not open with the password given" in output
    given.write_text(f"{PASSWORD}\n")
    code, output = stepgate(tmp_path, "ingest", str(folder), "--password-file", str(given))
    assert (code, "1 read" in output, PASSWORD in output) == (0, True, False)


@pytest.mark.row("S003-43")
async def test_a_document_that_is_refused_asks_for_another_credential(tmp_path: Path) -> None:
    refused = MissedDocument(page("b.md"), "b.md", ConnectorAuthError("b.md is not shared with us"))
    site = Site({page("a.md"): "# A\n\nText.", page("b.md"): ""}, missing={page("b.md"): refused})
    async with library(tmp_path, site) as bench:
        report = await read(bench)
    (skipped,) = report.skipped
    assert (skipped.code, report.read) == ("ERR_CONNECTOR_AUTH", 1)
    assert skipped.remedy.startswith("give another credential that may read it")
    assert report_to_json(report)["asks"] == {"ERR_CONNECTOR_AUTH": skipped.remedy}


async def test_in_a_run_the_trace_shows_the_code_of_a_source_that_failed(tmp_path: Path) -> None:
    site = Site({page("a.md"): ""}, breaks_after=0, error=ConnectorError("the site is away"))
    async with library(tmp_path, site) as bench:
        calls = [{"tool": "ingest", "args": {"source": "https://docs.example/"}}]
        response = build_response(await bench.events("go", metadata={"tool_calls": calls}))
    (result, *_) = response.metadata["tool_results"]
    assert (result["ok"], result["error"]) == (False, "the site is away (ERR_CONNECTOR_FAILED)")


HANDBOOK = "# Handbook\n\n## Parking permits\n\nPermits for parking are given by the reception on the ground floor."


@pytest.mark.row("S003-47")
@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which floor has the telescope with the purple lens cap?", " The nearest they have is about"),
        ("Who won the football world cup in 1998?", ""),
    ],
)
async def test_what_is_not_found_is_searched_once_more_broadly_and_then_asked_about(
    tmp_path: Path, question: str, asked: str
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "handbook.md").write_text(HANDBOOK)
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        await bench.library.ingest("local", "work", folder)
        events = await bench.events(question)
    response = build_response(events)
    assert response.response.startswith(f"The documents don't say.{asked}")
    assert (response.response == "The documents don't say.") == (not asked)
    output: Any = next(event.body.output for event in events if isinstance(event.body, ev.ToolReturned))
    assert "ERR_MEMORY_NO_RESULTS" in output["note"]
    assert "a broader search followed" in output["note"]
    assert response.metadata["status"] == "complete"
    assert response.metadata["sources"] == []


@pytest.mark.row("S003-47")
async def test_what_a_filter_keeps_out_is_asked_about_and_never_given(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "handbook.md").write_text(HANDBOOK)
    async with library(tmp_path) as bench:
        await bench.library.ingest("local", "work", folder)
        args = {"query": "parking permits", "filters": {"source_type": "web"}}
        events = await bench.events("go", metadata={"tool_calls": [{"tool": "search_knowledge", "args": args}]})
    output: Any = next(event.body.output for event in events if isinstance(event.body, ev.ToolReturned))
    assert output["results"] == []
    assert output["clarify"] == "The nearest they have is about \u201cParking permits\u201d: is that meant?"


@pytest.mark.row("S003-47")
@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Vem ger ut parking permits till oss?", "N\u00e4rmast handlar de om \u201cParking permits\u201d: menas det?"),
        (
            "Wer vergibt die parking permits?",
            "Am n\u00e4chsten kommt \u201cParking permits\u201d: ist das gemeint?",
        ),
    ],
)
async def test_it_is_asked_in_the_language_of_the_question(tmp_path: Path, query: str, asked: str) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "handbook.md").write_text(HANDBOOK)
    async with library(tmp_path) as bench:
        await bench.library.ingest("local", "work", folder)
        args = {"query": query, "filters": {"source_type": "web"}}
        events = await bench.events("go", metadata={"tool_calls": [{"tool": "search_knowledge", "args": args}]})
    output: Any = next(event.body.output for event in events if isinstance(event.body, ev.ToolReturned))
    assert output["clarify"] == asked
