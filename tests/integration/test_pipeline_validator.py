"""The `PipelineValidator` on real folders: what it counts, tries and recommends, with a scripted model and by rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.core.events import Event, ToolCalled, ToolReturned
from agent.core.models import JsonObject, Room
from gateway.features.documents.engine.ingest.dry_run_report import ValidationReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import check_pipeline
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.subagents.validation_session import ValidationSession
from tests.support.engine import Bench, engine_bench
from tests.support.script import Call, Rule, says, script
from tests.support.subagents import ended, ends

TEXT = "A paragraph that can be read.\n"
BINARY = b"\x89PNG\r\n\x1a\n" + bytes(200)
DEFAULT = from_template("documents")


def folder(place: Path, *, good: int, bad: int) -> Path:
    """So many texts, and files that are called texts and are none."""
    docs = place / "docs"
    docs.mkdir()
    for number in range(good):
        (docs / f"good{number}.txt").write_text(TEXT * (number + 1))
    for number in range(bad):
        (docs / f"bad{number}.txt").write_bytes(BINARY)
    return docs


async def validated(
    place: Path, docs: Path, pipeline: PipelineDAG = DEFAULT, model: Any = None, **task: Any
) -> list[Event]:
    """The log of a run that is one validation."""
    room = Room(id="test", tools=("spawn_pipeline_validator",))
    async with engine_bench(place / "data", model, room=room, file_roots=[docs]) as bench:
        return await run_in(bench, docs, pipeline, **task)


async def run_in(bench: Bench, docs: Path, pipeline: PipelineDAG = DEFAULT, **task: Any) -> list[Event]:
    args = {"source_id": str(docs), "pipeline": pipeline.model_dump(mode="json"), **task}
    call = {"tool": "spawn_pipeline_validator", "args": args}
    return await bench.events("validate", metadata={"tool_calls": [call]})


def report_of(events: Sequence[Event]) -> ValidationReport:
    (finished,) = ended(events)
    return ValidationReport.model_validate(finished.result.data)


def asks(*calls: tuple[str, JsonObject], about: str | None = None) -> Rule:
    made = tuple(Call(name, dict(args), id=f"{name}{number}") for number, (name, args) in enumerate(calls))
    return says("", to="subagent", about=about, calls=made)


def values(events: Sequence[Event], tool: str) -> list[Any]:
    return [event.body.output for event in events if isinstance(event.body, ToolReturned) and event.body.tool == tool]


@pytest.mark.row("S000-37", "S000-42", "S000-43")
@pytest.mark.parametrize(
    ("good", "bad", "assessment", "severity"),
    [
        (24, 1, "ready", None),
        (14, 1, "needs_adjustment", "notable"),
        (17, 3, "blocking_issues", "blocking"),
    ],
)
async def test_the_assessment_is_counted(
    tmp_path: Path, good: int, bad: int, assessment: str, severity: str | None
) -> None:
    report = report_of(events := await validated(tmp_path, folder(tmp_path, good=good, bad=bad)))
    assert (report.files_tested, report.files_succeeded, report.files_failed) == (good + bad, good, bad)
    assert report.success_rate == good / (good + bad)
    assert report.assessment == assessment
    (finished,) = ended(events)
    counted = [one.severity for one in finished.result.uncertainties if one.severity != "info"]
    assert counted == ([severity] if severity else [])
    assert report.failure_categories["unsupported"].count == bad
    assert report.stage_timings["parser"] > 0


@pytest.mark.row("S000-42")
@pytest.mark.parametrize("claimed", [{"success_rate": 1.0}, {"success_rate": 100}, {"assessment": "ready"}])
async def test_a_validator_that_lies_is_found_out(tmp_path: Path, claimed: dict[str, Any]) -> None:
    docs = folder(tmp_path, good=3, bad=3)
    model = script(
        ends(about="files_tested", summary="All perfect, apply it at once.", **claimed), asks(("run_dry_run", {}))
    )
    events = await validated(tmp_path, docs, model=model)
    report = report_of(events)
    assert (report.success_rate, report.assessment) == (0.5, "blocking_issues")
    (finished,) = ended(events)
    assert "All perfect" not in finished.result.summary
    doubts = [(one.severity, one.message) for one in finished.result.uncertainties]
    assert ("blocking", "3 of 6 files failed (50 %)") in doubts
    (lie,) = [message for severity, message in doubts if severity == "notable"]
    assert lie.startswith("the validator claimed ")
    assert "counted were 50% of 6 files, blocking_issues" in lie


async def test_a_validator_that_never_ran_anything_is_run_for(tmp_path: Path) -> None:
    docs = folder(tmp_path, good=3, bad=0)
    model = script(ends(summary="Looks fine.", success_rate=1.0, assessment="ready"))
    events = await validated(tmp_path, docs, model=model)
    assert report_of(events).files_tested == 3
    assert [event.body.tool for event in events if isinstance(event.body, ToolCalled)][1:] == ["run_dry_run"]
    assert ended(events)[0].result.summary.endswith("Looks fine.")


async def test_what_was_tried_is_not_tried_again_and_the_validator_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, tried = ValidationSession.dry_run, []

    async def counted(bench: ValidationSession, pipeline: PipelineDAG) -> ValidationReport:
        tried.append(pipeline)
        return await run(bench, pipeline)

    monkeypatch.setattr(ValidationSession, "dry_run", counted)
    smaller: JsonObject = {"changed": [{"node": "chunker", "field": "options.size", "before": 900, "after": 500}]}
    turns: list[JsonObject] = [{}, {"pipeline_diff": smaller}, {}, {"pipeline_diff": smaller}]
    asked = (
        says("", to="subagent", times=1, calls=(Call("run_dry_run", args, id=f"call{number}"),))
        for number, args in enumerate(turns)
    )
    model = script(*asked, ends(summary="It stays as it is."))
    events = await validated(tmp_path, folder(tmp_path, good=2, bad=1), model=model)
    first, other, again, other_again = values(events, "run_dry_run")
    assert len(tried) == 2
    assert tried[0] != tried[1]
    assert [again["report"], other_again["report"]] == [first["report"], other["report"]]
    assert [one["note"] for one in (first, other)] == ["", ""]
    assert all("nothing was run again" in one["note"] for one in (again, other_again))
    assert report_of(events).files_tested == 3


def short_of_breath() -> PipelineDAG:
    """A pipeline whose parser opens only small files."""
    return DEFAULT.with_options("parser", file_bytes=200)


@pytest.mark.row("S000-43")
@pytest.mark.parametrize("mode", ["rules", "model"])
async def test_applying_a_recommended_change_raises_the_rate(tmp_path: Path, mode: str) -> None:
    docs = folder(tmp_path, good=10, bad=0)
    model = None
    if mode == "model":
        change: JsonObject = {"file": "good9.txt", "parser_options": {"file_bytes": 5_000}}
        model = script(
            ends(about='"success":true', summary="Larger files have to be let in."),
            asks(("try_alternative_config", change), about="files_tested"),
            asks(("run_dry_run", {})),
        )
    room = Room(id="test", tools=("spawn_pipeline_validator",))
    async with engine_bench(tmp_path / "data", model, room=room, file_roots=[docs]) as bench:
        events = await run_in(bench, docs, short_of_breath())
        report = report_of(events)
        assert report.success_rate < 0.9
        assert report.recommended_fixes
        source = ConnectorInput(source_type="local", source_identifier=str(docs), recursive=True)
        for fix in report.recommended_fixes:
            better = check_pipeline(apply_diff(short_of_breath(), fix.pipeline_diff))
            again = await bench.library.dry_run(source, better)
            assert again.success_rate == 1.0 > report.success_rate
            assert "10 of 10 files are read then, not 6" in fix.description
    assert "are read then" in ended(events)[0].result.summary


async def test_a_change_that_does_not_help_is_not_recommended(tmp_path: Path) -> None:
    docs = folder(tmp_path, good=2, bad=2)
    change = {"changed": [{"node": "chunker", "field": "options.size", "before": 900, "after": 500}]}
    fixes = [{"description": "Smaller passages", "pipeline_diff": change}, {"description": "Pray", "pipeline_diff": {}}]
    model = script(ends(summary="Smaller passages will do.", recommended_fixes=fixes))
    events = await validated(tmp_path, docs, model=model)
    assert report_of(events).recommended_fixes == ()
    tried = [
        event.body.args for event in events if isinstance(event.body, ToolCalled) and event.body.tool == "run_dry_run"
    ]
    assert len(tried) == 2, "it was tried, though"


@pytest.mark.row("S000-38", "S000-39", "S000-40", "S000-41")
async def test_the_tools_look_into_single_files(tmp_path: Path) -> None:
    docs = folder(tmp_path, good=2, bad=1)
    (docs / "page.html").write_text("<h1>Title</h1><p>Words.</p><table><tr><td>a</td></tr><tr><td>b</td></tr></table>")
    model = script(
        ends(about="similarity", summary="Seen."),
        asks(
            ("get_failure_details", {"file": "bad0.txt"}),
            ("get_failure_details", {"file": "good0.txt"}),
            ("try_alternative_config", {"file": "bad0.txt", "parser": "plain"}),
            ("try_alternative_config", {"file": "bad0.txt", "parser": "liteparse"}),
            ("try_alternative_config", {"file": "nowhere.txt"}),
            ("compare_parser_output", {"file": "page.html", "parser_a": "lxml", "parser_b": "kreuzberg-second"}),
            ("inspect_chunks", {"file": "good1.txt", "limit": 1}),
            about="files_tested",
        ),
        asks(("run_dry_run", {})),
    )
    events = await validated(tmp_path, docs, model=model)
    details, none = values(events, "get_failure_details")
    assert (details["stage"], details["error_code"]) == ("parser", "ERR_PARSER_UNSUPPORTED")
    assert details["traceback_summary"].startswith("parser: ERR_PARSER_UNSUPPORTED: bad0.txt was given as txt")
    assert none is None, "a file that did not fail has no details"
    tried = [value for value in values(events, "try_alternative_config") if value is not None]
    assert [(one["success"], one["error_code"]) for one in tried] == [(False, "ERR_PARSER_UNSUPPORTED")]
    errors = [
        event.body.error
        for event in events
        if isinstance(event.body, ToolReturned) and event.body.tool == "try_alternative_config" and event.body.error
    ]
    assert any("does not read txt" in error for error in errors)
    assert any("there is no file 'nowhere.txt'" in error for error in errors)
    (compared,) = values(events, "compare_parser_output")
    assert (compared["a"]["parser"], compared["b"]["parser"]) == ("lxml", "kreuzberg-second")
    assert compared["a"]["tables"] == 1
    assert compared["characters_difference"] == compared["b"]["characters"] - compared["a"]["characters"]
    assert 0 < compared["similarity"] <= 1
    (chunks,) = values(events, "inspect_chunks")
    assert (chunks["count"], len(chunks["passages"])) == (1, 1)
    assert chunks["passages"][0]["preview"].startswith("A paragraph that can be read.")


async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    docs = folder(tmp_path, good=2, bad=0)
    room = Room(id="test", tools=("spawn_pipeline_validator",))
    async with engine_bench(tmp_path / "data", None, room=room, file_roots=[docs]) as bench:
        await run_in(bench, docs)
        assert await bench.library.list_collections("local") == {}
    assert list((tmp_path / "data" / "workspaces").iterdir()) == []


async def test_a_pipeline_that_cannot_be_carried_out_is_refused_with_the_reasons(tmp_path: Path) -> None:
    docs = folder(tmp_path, good=1, bad=0)
    room = Room(id="test", tools=("spawn_pipeline_validator",))
    async with engine_bench(tmp_path / "data", None, room=room, file_roots=[docs]) as bench:
        args = {"source_id": str(docs), "pipeline": {"nodes": [], "edges": []}}
        call = {"tool": "spawn_pipeline_validator", "args": args}
        events = await bench.events("validate", metadata={"tool_calls": [call]})
    (returned,) = [event.body for event in events if isinstance(event.body, ToolReturned)]
    assert returned.error_code == "ERR_TOOL_INPUT"
    assert "there is no parser" in (returned.error or "")
    assert ended(events) == []
