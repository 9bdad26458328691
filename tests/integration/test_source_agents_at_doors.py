"""The sub-agents for sources and pipelines over HTTP: what their tools return, and how they end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.features.documents.engine.ingest.dry_run_report import PipelineFix
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.pipeline_builder.engine.subagents.source_analyzer import SourceAnalyzer
from tests.integration.test_cli import stepgate
from tests.integration.test_pipeline_validator import folder as folder_of_texts
from tests.integration.test_source_analyzer import ENGLISH, GERMAN, asks, folder_of_everything, truth
from tests.support.door_bench import Door, door_bench
from tests.support.script import Rule, says
from tests.support.scripted_server import ScriptedServer
from tests.support.subagents import ends

ROOM = "name: Test\ntools: [spawn_source_analyzer, spawn_pipeline_validator]\n"
JSON = {"accept": "application/json"}
DEFAULT = from_template("documents").model_dump(mode="json")


@asynccontextmanager
async def door_to(folder: Path, docs: Path, server: ScriptedServer, *rules: Rule) -> AsyncIterator[Door]:
    """A gateway that may read a folder, and whose room starts both sub-agents."""
    async with door_bench(folder, server, *rules, room=ROOM, file_roots=[docs]) as door:
        yield door


async def spawn(door: Door, agent: str, docs: Path, **task: Any) -> list[dict[str, Any]]:
    """The log of a run that is one sub-agent."""
    call = {"tool": f"spawn_{agent}", "args": {"source_id": str(docs), **task}}
    return await door.list_events(await door.ask("go", metadata={"tool_calls": [call]}))


def end_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """How the one sub-agent of a run ended."""
    (ended,) = [event["data"] for event in events if event["type"] == "subagent.finished"]
    found: dict[str, Any] = ended
    return found


def returned(events: list[dict[str, Any]], tool: str, *, at: int = 0, **args: Any) -> dict[str, Any]:
    """What a call of this tool with these arguments returned; of several the one `at` this place."""
    called = [event["data"] for event in events if event["type"] == "tool.called" and event["data"]["tool"] == tool]
    ids = [one["call_id"] for one in called if args.items() <= one["args"].items()]
    (found,) = [
        event["data"] for event in events if event["type"] == "tool.returned" and event["data"]["call_id"] == ids[at]
    ]
    result: dict[str, Any] = found
    return result


@pytest.mark.row("S000-23", "S000-30", "S000-35", "S000-36")
async def test_a_folder_is_counted_tried_and_doubted(tmp_path: Path, model_server: ScriptedServer) -> None:
    docs = folder_of_everything(tmp_path)
    async with door_to(tmp_path, docs, model_server) as door:
        ended = end_of(await spawn(door, "source_analyzer", docs, user_intent="ask about leave"))
    result = ended["result"]
    assert set(result) >= {"success", "data", "uncertainties", "summary"}
    assert result["success"] is True
    analysis, expected = result["data"], truth(docs)
    counted = {name: (one["count"], one["total_size_bytes"]) for name, one in analysis["by_extension"].items()}
    assert counted == expected
    assert analysis["total_files"] == sum(count for count, _ in expected.values())
    assert analysis["total_size_bytes"] == sum(size for _, size in expected.values())
    content = analysis["content_characteristics"]
    assert {"scanned_pdfs", "mixed_languages", "code_and_prose"} <= set(content["quality_issues"])
    assert set(content["languages"]) == {"en", "sv", "de"}
    assert all(0 <= one["confidence"] <= 1 for one in analysis["parser_recommendations"])
    assert {one["extension"] for one in analysis["parser_recommendations"]} >= {".txt", ".md", ".pdf"}
    assert any("scanned" in one["message"] for one in result["uncertainties"])
    assert result["summary"].startswith("9 files, ")


@pytest.mark.row("S000-31", "S000-32", "S000-33", "S000-34", "S000-44")
async def test_the_analyzers_tools_answer_its_model_and_errors_are_told(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    docs = folder_of_everything(tmp_path)
    rules = (
        ends(about="tool_calls", summary="Seen."),
        asks(
            ("sample_files", {"extension": ".md", "count": 5}),
            ("sample_files", {"min_size": 1000, "count": 50}),
            ("sample_files", {"count": 4, "seed": 3}),
            ("sample_files", {"count": 4, "seed": 3}),
            ("sample_files", {"count": 4, "seed": 8}),
            ("try_parser", {"file": "paper.pdf"}),
            ("try_parser", {"file": "broken.docx"}),
            ("try_parser", {"file": "../../etc/passwd"}),
            ("detect_language", {"text": GERMAN}),
            ("get_file_content_preview", {"file": "english.txt", "max_bytes": 20}),
        ),
    )
    async with door_to(tmp_path, docs, model_server, *rules) as door:
        events = await spawn(door, "source_analyzer", docs)
        told = [str(message) for message in door.bodies("subagent")[-1]["messages"]]
    sample = partial(returned, events, "sample_files")
    assert [one["file"] for one in sample(extension=".md")["output"]["files"]] == ["deep/svenska.md"]
    large = {str(one.relative_to(docs)) for one in docs.rglob("*") if one.is_file() and one.stat().st_size >= 1000}
    assert large
    assert {one["file"] for one in sample(min_size=1000)["output"]["files"]} == large
    picked = [
        [one["file"] for one in sample(seed=seed, at=at)["output"]["files"]] for seed, at in ((3, 0), (3, 1), (8, 0))
    ]
    assert picked[0] == picked[1], "the same seed picks the same files"
    assert picked[0] != picked[2]
    paper, broken = (returned(events, "try_parser", file=name)["output"] for name in ("paper.pdf", "broken.docx"))
    assert (paper["success"], paper["pages"]) == (True, 1)
    assert (broken["success"], broken["error_code"]) == (False, "ERR_PARSER_CORRUPT")
    outside = returned(events, "try_parser", file="../../etc/passwd")
    assert outside["error_code"] == "ERR_TOOL_INPUT"
    assert any("there is no file '../../etc/passwd'" in one for one in told), "its model reads the error and goes on"
    assert returned(events, "detect_language")["output"]["language"] == "de"
    preview = returned(events, "get_file_content_preview")["output"]
    assert (preview["text"], preview["more"]) == (ENGLISH[:20], True), "only so many bytes"
    assert end_of(events)["result"]["success"] is True


@pytest.mark.row("S000-38", "S000-39", "S000-40", "S000-41")
async def test_the_validators_tools_look_into_single_files(tmp_path: Path, model_server: ScriptedServer) -> None:
    docs = folder_of_texts(tmp_path, good=2, bad=1)
    table = "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"
    (docs / "page.html").write_text(f"<h1>Title</h1><p>Words.</p><div>{table}and words that follow it</div>")
    rules = (
        ends(about="similarity", summary="Seen."),
        asks(
            ("get_failure_details", {"file": "bad0.txt"}),
            ("try_alternative_config", {"file": "bad0.txt", "parser": "plain"}),
            ("compare_parser_output", {"file": "page.html", "parser_a": "lxml", "parser_b": "kreuzberg-second"}),
            ("inspect_chunks", {"file": "good1.txt", "limit": 1}),
            about="files_tested",
        ),
        asks(("run_dry_run", {})),
    )
    async with door_to(tmp_path, docs, model_server, *rules) as door:
        events = await spawn(door, "pipeline_validator", docs, pipeline=DEFAULT)
        collections = (await door.client.get("/v1/collections")).json()["data"]
    details = returned(events, "get_failure_details")["output"]
    assert (details["stage"], details["error_code"]) == ("parser", "ERR_PARSER_UNSUPPORTED")
    assert details["traceback_summary"]
    tried = returned(events, "try_alternative_config")["output"]
    assert (tried["success"], tried["error_code"]) == (False, "ERR_PARSER_UNSUPPORTED")
    compared = returned(events, "compare_parser_output")["output"]
    assert (compared["a"]["parser"], compared["b"]["parser"]) == ("lxml", "kreuzberg-second")
    assert compared["a"]["tables"] == 1
    assert 0 < compared["similarity"] < 1, "one of the two loses what follows a table"
    chunks = returned(events, "inspect_chunks")["output"]
    assert chunks["count"] == 1
    assert chunks["passages"][0]["preview"].startswith("A paragraph that can be read.")
    assert collections == [], "nothing is indexed"


@pytest.mark.row("S000-27")
async def test_fifty_files_are_tried_unless_another_number_is_said(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    docs = folder_of_texts(tmp_path, good=60, bad=0)
    async with door_to(tmp_path, docs, model_server) as door:
        tried = [
            end_of(await spawn(door, "pipeline_validator", docs, pipeline=DEFAULT, **said))["result"]["data"]
            for said in ({}, {"sample_count": 3})
        ]
    assert [one["files_tested"] for one in tried] == [50, 3]


@pytest.mark.row("S000-42", "S000-43", "S000-39")
async def test_a_report_recommends_a_change_that_raises_the_rate(tmp_path: Path, model_server: ScriptedServer) -> None:
    docs = folder_of_texts(tmp_path, good=10, bad=0)
    narrow = PipelineDAG.model_validate(DEFAULT).with_options("parser", file_bytes=200)
    async with door_to(tmp_path, docs, model_server) as door:
        report = end_of(await spawn(door, "pipeline_validator", docs, pipeline=narrow.model_dump(mode="json")))[
            "result"
        ]["data"]
        assert report["assessment"] == "blocking_issues"
        assert (report["files_tested"], report["files_succeeded"], report["files_failed"]) == (10, 6, 4)
        assert sum(one["count"] for one in report["failure_categories"].values()) == 4
        assert all(one["examples"] for one in report["failure_categories"].values())
        assert {"success_rate", "chunk_stats", "stage_timings", "summary"} <= set(report)
        (fix, *_) = report["recommended_fixes"]
        assert fix["description"]
        mended = apply_diff(narrow, PipelineFix.model_validate(fix).pipeline_diff)
        again = end_of(await spawn(door, "pipeline_validator", docs, pipeline=mended.model_dump(mode="json")))[
            "result"
        ]["data"]
    assert again["success_rate"] > report["success_rate"]


@pytest.mark.row("S000-19", "S000-22")
async def test_what_a_sub_agent_found_before_its_time_was_over_is_kept(
    tmp_path: Path, model_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SourceAnalyzer, "TIMEOUT_SECONDS", 2)
    docs = folder_of_everything(tmp_path)
    rules = (
        says("", to="subagent", about="total_size_bytes", fault="hang"),
        asks(("enumerate_files", {})),
    )
    async with door_to(tmp_path, docs, model_server, *rules) as door:
        events = await spawn(door, "source_analyzer", docs)
    ended = end_of(events)
    assert (ended["outcome"], ended["result"]["success"]) == ("timeout", False)
    assert ended["result"]["summary"] == "Timed out after 2 s."
    assert ended["result"]["data"]["total_files"] == 9, "counted by then"


@pytest.mark.row("S000-19")
async def test_what_a_sub_agent_found_is_kept_as_long_as_its_run(tmp_path: Path, model_server: ScriptedServer) -> None:
    docs = folder_of_everything(tmp_path)
    call = {"tool": "spawn_source_analyzer", "args": {"source_id": str(docs)}}
    async with door_bench(tmp_path, model_server, room=ROOM, file_roots=[docs]) as door:
        answer = await door.ask("go", metadata={"tool_calls": [call]})
        assert end_of(await door.list_events(answer))["result"]["data"]["total_files"] == 9, "read again later"
        address = f"/v1/runs/{answer['metadata']['run_id']}/events"
        code, printed = await asyncio.to_thread(stepgate, tmp_path, "prune", "--days", "30")
        assert (code, (await door.client.get(address, headers=JSON)).status_code) == (0, 200), printed
        code, printed = await asyncio.to_thread(stepgate, tmp_path, "prune", "--days", "0.000001")
        assert (code, (await door.client.get(address, headers=JSON)).status_code) == (0, 404), printed
