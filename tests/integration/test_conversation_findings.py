"""What sub-agents find becomes a conversation's: of its own source only, and of an unfinished one only what it saw."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.features.documents.engine.ingest.templates import from_template
from tests.integration.conftest import Serve
from tests.support.documents import encrypted_pdf
from tests.support.script import Call, Rule, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import papers, read_answer, talk

REPORTS = from_template("reports").model_dump(mode="json")


@contextlib.asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(script(), **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def calls(tool: str, /, **args: Any) -> Rule:
    """The next turn of the skill asks for this call."""
    return says(to="skill", times=1, calls=(Call(tool, args, id=f"call_{tool}"),))


def ends(about: str) -> Rule:
    """Sub-agents of this task end at once, with a summary."""
    return says(json.dumps({"summary": "Looked."}), to="subagent", about=about)


ANALYSES, VALIDATES, DONE = (
    ends("Analyse the source"),
    ends("Validate this pipeline"),
    says("Done.", to="skill", times=1),
)


def loops(about: str, tool: str, **args: Any) -> Rule:
    """Sub-agents of this task never end by themselves."""
    return says(to="subagent", about=about, calls=(Call(tool, args, id="again"),))


def open_ones(known: dict[str, Any], severity: str) -> list[str]:
    """The doubts of this severity that nobody has settled."""
    return [one["message"] for one in known["uncertainties"] if one["severity"] == severity and not one["resolved"]]


async def with_a_bad_folder(
    client: httpx.AsyncClient, model_server: ScriptedServer, tmp_path: Path
) -> tuple[Any, Path, str]:
    """A conversation about a folder that is half unreadable, validated; the folder; another, clean source."""
    clean = papers(tmp_path / "data", 4)
    bad = clean.parent / "bad"
    bad.mkdir()
    for number in range(2):
        (bad / f"fine{number}.md").write_text("# Kelp\n\nKelp grows in cold water.\n")
        (bad / f"locked{number}.pdf").write_bytes(encrypted_pdf())
    other = (await client.post("/v1/sources", json={"source_identifier": str(clean)})).json()["id"]
    mine = await talk(client, bad)
    model_server.load(
        script(
            ANALYSES,
            VALIDATES,
            calls("spawn_source_analyzer", source_id=mine.source_id),
            calls("build_pipeline", template="reports"),
            calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=mine.source_id),
            DONE,
        )
    )
    await mine.say("Index the folder")
    return mine, bad, other


@pytest.mark.row("S000-09", "S000-12")
@pytest.mark.parametrize("by", ["id", "path"])
async def test_only_the_own_source_settles_doubts(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path, by: str
) -> None:
    async with client_of(serve) as client:
        mine, bad, other = await with_a_bad_folder(client, model_server, tmp_path)
        before = await mine.look()
        assert open_ones(before, "blocking")
        elsewhere = other if by == "id" else str(bad.parent / "papers")
        model_server.load(
            script(
                ANALYSES,
                VALIDATES,
                calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=elsewhere),
                calls("spawn_source_analyzer", source_id=elsewhere),
                DONE,
            )
        )
        await mine.say("Try the other folder")
        sent = json.dumps(model_server.requests()[-1]["body"])
        assert f"Not kept: this is of another source than the conversation's, which is {mine.source_id}" in sent
        after = await mine.look()
        assert after["source_analysis"] == before["source_analysis"]
        assert after["validation"] == before["validation"]
        assert open_ones(after, "blocking") == open_ones(before, "blocking")
        assert (await mine.apply("kelp")).status_code == 400
        of = after["validation"]["of"]
        assert (of["source_id"], of["sample_count"]) == (mine.source_id, 50)


@pytest.mark.parametrize("by", ["id", "path", "nothing"])
async def test_the_own_source_does_whatever_it_is_called(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path, by: str
) -> None:
    async with client_of(serve) as client:
        mine, bad, _ = await with_a_bad_folder(client, model_server, tmp_path)
        for number in range(2):
            (bad / f"locked{number}.pdf").unlink()
        own = {"id": mine.source_id, "path": str(bad), "nothing": ""}[by]
        call = calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=own, sample_count=7)
        model_server.load(script(VALIDATES, call, DONE))
        await mine.say("Try again")
        known = await mine.look()
        assert open_ones(known, "blocking") == []
        assert known["validation"]["of"]["sample_count"] == 7
        assert known["validation"]["success"] is True


@pytest.mark.row("S000-21", "S000-24")
async def test_an_analyzer_without_an_end_leaves_its_doubt(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        looping = loops("Analyse the source", "enumerate_files")
        model_server.load(script(looping, calls("spawn_source_analyzer", source_id=mine.source_id), DONE))
        await mine.say("Index the folder")
        assert model_server.purposes().count("subagent") == 30
        known = await mine.look()
        assert any("did not finish" in one for one in open_ones(known, "notable")), known["uncertainties"]
        assert (known["source_analysis"]["success"], known["source_analysis"]["total_files"]) == (False, 2)
        assert "Analysis (not finished)" in known["summary"]
        model_server.load(script(ANALYSES, calls("spawn_source_analyzer", source_id=mine.source_id), DONE))
        await mine.say("Look again")
        assert open_ones(await mine.look(), "notable") == [], "the one that came to its end has settled it"


@pytest.mark.row("S000-21", "S000-24")
async def test_a_validator_without_an_end_settles_nothing_and_says_so(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    async with client_of(serve) as client:
        mine, bad, _ = await with_a_bad_folder(client, model_server, tmp_path)
        blocking = open_ones(await mine.look(), "blocking")
        for number in range(2):
            (bad / f"locked{number}.pdf").unlink()
        looping = loops("Validate this pipeline", "run_dry_run")
        call = calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=mine.source_id)
        model_server.load(script(looping, call, DONE))
        assert read_answer(await mine.say("Try again")).startswith("Done.")
        assert model_server.purposes().count("subagent") == 25
        known = await mine.look()
        assert open_ones(known, "blocking") == blocking
        assert any("did not finish" in one for one in open_ones(known, "notable"))
        assert (known["validation"]["success"], known["validation"]["success_rate"]) == (False, 1.0)
        assert "Validation (not finished)" in known["summary"]
        forced = await mine.apply("kelp", force=True)
        assert forced.status_code == 200
        known = await mine.look()
        assert known["applied"]["validated"] is False
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})


async def test_a_validator_that_had_seen_failures_says_them(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 2)
    for number in range(2):
        (folder / f"locked{number}.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        looping = loops("Validate this pipeline", "run_dry_run")
        build = calls("build_pipeline", template="reports")
        call = calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=mine.source_id)
        model_server.load(script(looping, build, call, DONE))
        await mine.say("Index the folder")
        assert open_ones(await mine.look(), "blocking"), "half of the files were seen to fail"
        assert (await mine.apply("kelp")).status_code == 400


@pytest.mark.row("S000-09", "S000-42")
async def test_a_smaller_sample_settles_no_doubt_of_a_larger_one(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    async with client_of(serve) as client:
        mine, bad, _ = await with_a_bad_folder(client, model_server, tmp_path)
        before = open_ones(await mine.look(), "blocking")
        assert before == ["2 of 4 files failed (50 %)"]
        lucky = [
            calls("spawn_pipeline_validator", pipeline=REPORTS, source_id="", sample_count=1, seed=seed)
            for seed in range(4)
        ]
        model_server.load(script(VALIDATES, *lucky, DONE))
        await mine.say("Try it with one file only, until it works")
        assert before[0] in open_ones(await mine.look(), "blocking")
        told = [str(request["body"]["messages"]) for request in model_server.requests()]
        assert any("resolves no uncertainty" in one for one in told), "the model is told why"
        assert (await mine.apply("kelp")).status_code == 400
        for locked in bad.glob("locked*"):
            locked.unlink()
        model_server.load(script(VALIDATES, calls("spawn_pipeline_validator", pipeline=REPORTS, sample_count=2), DONE))
        await mine.say("I have taken the locked ones away; try all there are")
        assert open_ones(await mine.look(), "blocking") == [], "a sample that is everything is as good"


async def test_an_analysis_of_no_source_by_name_is_of_the_conversations_own(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    async with client_of(serve) as client:
        mine = await talk(client, papers(tmp_path / "data", 3))
        for args in ({}, {"source_id": ""}):
            model_server.load(script(ANALYSES, calls("spawn_source_analyzer", **args, user_intent=str(args)), DONE))
            await mine.say("What is in it?")
            sent = json.dumps(model_server.requests()[-1]["body"])
            assert "3 files" in sent
            assert "ERR_TOOL_INPUT" not in sent
        assert (await mine.look())["source_analysis"]["total_files"] == 3


@pytest.mark.row("S000-11", "S000-22")
async def test_an_analysis_without_an_end_does_not_replace_a_complete_one(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    async with client_of(serve) as client:
        mine, _, _ = await with_a_bad_folder(client, model_server, tmp_path)
        before = await mine.look()
        model_server.load(
            script(
                says("no JSON", to="subagent", about="Analyse the source"),
                calls("spawn_source_analyzer", source_id=mine.source_id),
                DONE,
            )
        )
        await mine.say("Look once more")
        after = await mine.look()
    assert before["source_analysis"]["total_files"] == 4
    assert after["source_analysis"] == before["source_analysis"]
    assert after["validation"] == before["validation"]
    assert open_ones(after, "blocking") == open_ones(before, "blocking")


@pytest.mark.row("S000-17", "S000-27")
async def test_a_report_on_another_pipeline_is_not_told_as_the_proposed_ones(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    async with client_of(serve) as client:
        mine, _, _ = await with_a_bad_folder(client, model_server, tmp_path)
        assert "\nValidation: " in (await mine.look())["summary"]
        model_server.load(
            script(
                VALIDATES,
                calls("build_pipeline", template="notes"),
                calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=mine.source_id),
                DONE,
            )
        )
        await mine.say("Take the template notes, and try reports")
        summary = (await mine.look())["summary"]
    assert "Proposed pipeline: template 'notes'" in summary
    assert "Validation of another pipeline than the proposed one: " in summary
    assert "The proposed pipeline was not validated yet." in summary


@pytest.mark.row("S000-27", "S000-60")
async def test_validators_side_by_side_report_each_on_its_own_pipeline(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    without_pdf = from_template("reports").model_dump(mode="json")
    for node in without_pdf["nodes"]:
        if node["kind"] == "source":
            node["options"]["exclude"] = ["*.pdf"]
    async with client_of(serve) as client:
        mine, _, _ = await with_a_bad_folder(client, model_server, tmp_path)
        both = tuple(
            Call("spawn_pipeline_validator", {"pipeline": one, "source_id": mine.source_id}, id=name)
            for name, one in (("good", without_pdf), ("bad", REPORTS))
        )
        model_server.load(script(VALIDATES, says(to="skill", times=1, calls=both), DONE))
        streamed = await mine.say("Try it with and without the PDF files")
        messages = model_server.requests()[-1]["body"]["messages"]
    ends = [one["status"] for one in streamed if one["type"] == "subagent" and one["status"] != "working"]
    assert ends[:2] == ["started", "started"], "both are at work before one of them ends"
    told = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    assert "100 % of 2 files are read" in told["good"]
    assert "50 % of 4 files are read" in told["bad"]
