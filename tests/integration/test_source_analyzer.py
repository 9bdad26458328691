"""The `SourceAnalyzer` on real folders: what it counts, tries and doubts, with a scripted model and by rules."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from agent.core.events import Event, ToolCalled, ToolReturned
from agent.core.models import Room
from gateway.features.pipeline_builder.engine.subagents.source_analysis import (
    SourceAnalysis,
    SourceEvidence,
    build_analysis,
)
from tests.support.documents import Words, encrypted_pdf, pdf, scanned_pdf, word
from tests.support.engine import engine_bench
from tests.support.script import Call, says, script
from tests.support.subagents import ended, ends

ENGLISH = "Employees may take thirty days of paid holiday in each calendar year, after asking their manager in writing."
SWEDISH = (
    "Anställda har rätt till trettio dagars betald semester varje kalenderår efter att ha frågat sin närmaste chef."
)
GERMAN = "Die Mitarbeiter haben Anspruch auf dreißig Tage bezahlten Urlaub im Jahr, wenn sie ihren Vorgesetzten fragen."
CODE = "import os\n\ndef total(rows):\n    result = 0\n    for row in rows:\n        result += 1\n    return result\n"


def folder_of_everything(folder: Path) -> Path:
    """Prose in three languages, code, a scan, a file with a password, a damaged one, one nobody reads."""
    docs = folder / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "english.txt").write_text(f"{ENGLISH}\n\n{ENGLISH}\n")
    (docs / "deep" / "svenska.md").write_text(f"# Semester\n\n{SWEDISH}\n")
    (docs / "both.txt").write_text(f"{ENGLISH}\n\n{GERMAN}\n\n{ENGLISH}\n\n{GERMAN}")
    (docs / "script.txt").write_text(CODE * 3)
    (docs / "paper.pdf").write_bytes(pdf([Words(f"Abstract. Introduction [1] et al. {ENGLISH[:60]} References")]))
    (docs / "scan.pdf").write_bytes(scanned_pdf())
    (docs / "locked.pdf").write_bytes(encrypted_pdf())
    (docs / "broken.docx").write_bytes(word()[:400])
    (docs / "tool.py").write_text(CODE)
    (docs / ".hidden").write_text("not counted")
    return docs


async def analysed(folder: Path, docs: Path, model: Any = None, **settings: Any) -> list[Event]:
    """The log of a run that is one analysis."""
    room = Room(id="test", tools=("spawn_source_analyzer",))
    async with engine_bench(folder / "data", model, room=room, file_roots=[docs], **settings) as bench:
        call = {"tool": "spawn_source_analyzer", "args": {"source_id": str(docs), "user_intent": "ask about leave"}}
        return await bench.events("analyse", metadata={"tool_calls": [call]})


def data_of(events: Sequence[Event]) -> SourceAnalysis:
    (finished,) = ended(events)
    return SourceAnalysis.model_validate(finished.result.data)


def truth(docs: Path) -> dict[str, tuple[int, int]]:
    """Count and bytes by ending, counted another way."""
    found: dict[str, tuple[int, int]] = {}
    for path in docs.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            count, size = found.get(path.suffix, (0, 0))
            found[path.suffix] = (count + 1, size + path.stat().st_size)
    return found


@pytest.mark.row("S000-35", "S000-36", "S000-30")
async def test_by_rules_everything_is_counted_and_what_is_odd_is_told(tmp_path: Path) -> None:
    docs = folder_of_everything(tmp_path)
    made = data_of(await analysed(tmp_path, docs))
    expected = truth(docs)
    assert {ext: (one.count, one.total_size_bytes) for ext, one in made.by_extension.items()} == expected
    assert made.total_files == sum(count for count, _ in expected.values())
    assert made.total_size_bytes == sum(size for _, size in expected.values())
    content = made.content_characteristics
    assert {"scanned_pdfs", "encrypted_files", "corrupted_files", "mixed_languages", "code_and_prose"} <= set(
        content.quality_issues
    )
    assert set(content.languages) == {"en", "sv", "de"}
    assert {"academic", "code", "prose"} <= set(content.document_types)
    messages = " | ".join(f"{one.severity}: {one.message}" for one in made.uncertainties)
    assert "notable: 1 of 9 files tried hold scanned pages" in messages
    assert "open with a password only" in messages
    assert "several languages" in messages
    assert "no parser reads" not in messages, "source code is read as text"
    scans = next(one for one in made.uncertainties if "scanned" in one.message)
    assert scans.context == {"examples": ["scan.pdf"], "total": 1}
    advice = {one.extension: one for one in made.parser_recommendations}
    assert set(advice) == {".txt", ".md", ".pdf", ".docx", ".py"}
    assert advice[".txt"].confidence > advice[".pdf"].confidence > advice[".docx"].confidence
    assert "scanned" in (advice[".pdf"].notes or "")
    assert made.summary.startswith("9 files, ")
    (locked,) = [one for one in made.by_extension[".pdf"].sample_results if one["file"] == "locked.pdf"]
    assert str(locked["error"]).startswith("locked.pdf is protected"), "the file's own name, not that of its copy"


async def test_rules_make_the_same_analysis_twice(tmp_path: Path) -> None:
    docs = folder_of_everything(tmp_path)
    one, other = [data_of(await analysed(tmp_path / name, docs)) for name in ("a", "b")]
    assert one == other


def asks(*calls: tuple[str, dict[str, Any]], about: str | None = None) -> Any:
    made = tuple(Call(name, args, id=f"{name}{number}") for number, (name, args) in enumerate(calls))
    return says("", to="subagent", about=about, calls=made)


@pytest.mark.row("S000-35")
async def test_a_model_adds_what_it_understood_and_can_change_no_figure(tmp_path: Path) -> None:
    docs = folder_of_everything(tmp_path)
    final = {
        "total_files": 4_711,
        "by_extension": {".exe": {"count": 12}},
        "content_characteristics": {"languages": ["en", "klingon"], "document_types": ["policy"]},
        "parser_recommendations": [
            {"extension": ".pdf", "parser_id": "liteparse", "confidence": 1.0, "notes": "OCR"},
            {"extension": ".md", "parser_id": "openpyxl", "confidence": 1.0},
            {"extension": ".exe", "parser_id": "plain", "confidence": 1.0},
        ],
        "uncertainties": [{"severity": "blocking", "message": "Which language will be asked in?"}],
        "summary": "Holiday policies.",
    }
    model = script(
        ends(about="dreißig", **final),
        asks(
            ("try_parser", {"file": "paper.pdf"}),
            ("try_parser", {"file": "scan.pdf"}),
            ("try_parser", {"file": "../../etc/passwd"}),
            ("detect_language", {"file": "deep/svenska.md"}),
            ("detect_language", {"text": GERMAN}),
            ("get_file_content_preview", {"file": "both.txt", "max_bytes": 400}),
            about="english.txt",
        ),
        asks(("sample_files", {"count": 9})),
    )
    events = await analysed(tmp_path, docs, model)
    made = data_of(events)
    assert made.total_files == 9, "counted, though the model never asked for it"
    assert ".exe" not in made.by_extension
    assert made.content_characteristics.languages == ("sv", "en"), "no such language is left out"
    assert "policy" in made.content_characteristics.document_types
    advice = {one.extension: (one.parser_id, one.confidence) for one in made.parser_recommendations}
    assert advice[".pdf"] == ("liteparse", 0.67), "one of two was read"
    assert advice[".md"][0] != "openpyxl", "it does not read Markdown"
    assert ".exe" not in advice
    assert [one.message for one in made.uncertainties if one.severity == "blocking"] == [
        "Which language will be asked in?"
    ]
    assert made.summary.startswith("9 files, ")
    assert made.summary.endswith("Holiday policies.")
    returned = {event.body.call_id: event.body for event in events if isinstance(event.body, ToolReturned)}
    refused = [one for one in returned.values() if one.error_code == "ERR_TOOL_INPUT"]
    assert ["there is no file '../../etc/passwd'" in (one.error or "") for one in refused] == [True]


@pytest.mark.row("S000-30", "S000-31", "S000-32", "S000-33", "S000-34")
async def test_what_the_analyzers_tools_return_to_its_model(tmp_path: Path) -> None:
    docs = folder_of_everything(tmp_path)
    sizes = {path.name: path.stat().st_size for path in docs.rglob("*") if path.is_file()}
    model = script(
        ends(about="tool_calls", summary="Seen."),
        asks(
            ("enumerate_files", {}),
            ("sample_files", {"extension": ".md", "count": 5}),
            ("sample_files", {"pick": "largest", "count": 1}),
            ("sample_files", {"min_size": sizes["tool.py"], "max_size": sizes["tool.py"]}),
            ("sample_files", {"count": 4, "seed": 3}),
            ("sample_files", {"count": 4, "seed": 3}),
            ("sample_files", {"count": 4, "seed": 8}),
            ("try_parser", {"file": "paper.pdf"}),
            ("try_parser", {"file": "broken.docx"}),
            ("detect_language", {"text": GERMAN}),
            ("detect_language", {"file": "both.txt"}),
            ("get_file_content_preview", {"file": "english.txt", "max_bytes": 20}),
        ),
    )
    events = await analysed(tmp_path, docs, model)
    counted = find_output(events, "enumerate_files")
    assert counted["total_files"] == 9
    sample = partial(find_output, events, "sample_files")
    assert name_files(sample(extension=".md")) == ["deep/svenska.md"]
    seen = {name: size for name, size in sizes.items() if name != ".hidden"}
    assert name_files(sample(pick="largest")) == [max(seen, key=lambda name: seen[name])]
    assert {sizes[Path(name).name] for name in name_files(sample(max_size=sizes["tool.py"]))} == {sizes["tool.py"]}
    first, again = (name_files(sample(seed=3, at=place)) for place in (0, 1))
    assert first == again, "the same seed picks the same files"
    assert first != name_files(sample(seed=8))
    paper, broken = (find_output(events, "try_parser", file=name) for name in ("paper.pdf", "broken.docx"))
    assert (paper["success"], paper["pages"]) == (True, 1)
    assert paper["characters"] > 40
    assert (broken["success"], broken["error_code"]) == (False, "ERR_PARSER_CORRUPT")
    assert find_output(events, "detect_language", text=GERMAN)["language"] == "de"
    assert find_output(events, "detect_language", file="both.txt")["mixed"] is True
    assert ENGLISH[:10] in str(find_output(events, "get_file_content_preview"))


def find_output(events: Sequence[Event], tool: str, *, at: int = 0, **args: Any) -> dict[str, Any]:
    """The result of the call of this tool with these arguments; of several, the one `at` this place."""
    called = [event.body for event in events if isinstance(event.body, ToolCalled) and event.body.tool == tool]
    made = [one.call_id for one in called if args.items() <= one.args.items()]
    bodies = (event.body for event in events)
    (output,) = [one.output for one in bodies if isinstance(one, ToolReturned) and one.call_id == made[at]]
    assert isinstance(output, dict)
    return output


def name_files(sample: Any) -> list[str]:
    return [one["file"] for one in sample["files"]]


@pytest.mark.row("S000-30")
async def test_ten_thousand_files_are_sampled_within_the_budget(tmp_path: Path) -> None:
    docs = tmp_path / "many"
    for number in range(10_000):
        folder = docs / f"f{number % 50}"
        if number < 50:
            folder.mkdir(parents=True)
        ending = (".txt", ".md", ".csv", ".log", ".py")[number % 5]
        (folder / f"n{number}{ending}").write_text(f"{ENGLISH} {number}\n")
    started = monotonic()
    events = await analysed(tmp_path, docs)
    seconds = monotonic() - started
    made = data_of(events)
    (finished,) = ended(events)
    assert made.total_files == 10_000
    assert {ext: one.count for ext, one in made.by_extension.items()} == dict.fromkeys(
        (".csv", ".log", ".md", ".py", ".txt"), 2_000
    )
    parsed = [event for event in events if isinstance(event.body, ToolCalled) and event.body.tool == "try_parser"]
    assert len(parsed) <= 20, "a few of each kind"
    print(f"10,000 files: {finished.duration:.2f} s in the sub-agent, {len(parsed)} parsed, {seconds:.2f} s in all")
    assert finished.duration < 60


@pytest.mark.parametrize("source", ["/etc", "no-such-folder", "  "])
async def test_a_source_that_may_not_be_read_is_refused_and_told(tmp_path: Path, source: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    room = Room(id="test", tools=("spawn_source_analyzer",))
    async with engine_bench(tmp_path / "data", None, room=room, file_roots=[docs]) as bench:
        call = {"tool": "spawn_source_analyzer", "args": {"source_id": source}}
        events = await bench.events("analyse", metadata={"tool_calls": [call]})
    assert ended(events) == []
    (returned,) = [event.body for event in events if isinstance(event.body, ToolReturned)]
    assert returned.error_code == "ERR_TOOL_INPUT"


async def test_an_empty_folder_is_blocking(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    made = data_of(await analysed(tmp_path, docs))
    assert made.total_files == 0
    assert [(one.severity, one.message) for one in made.uncertainties] == [("blocking", "this source has no files")]


async def test_a_single_file_is_a_source_too(tmp_path: Path) -> None:
    file = tmp_path / "only.txt"
    file.write_text(ENGLISH)
    made = data_of(await analysed(tmp_path, file))
    assert (made.total_files, made.sampled, made.content_characteristics.languages) == (1, 1, ("en",))


def test_what_nobody_counted_is_not_said_to_be_none() -> None:
    found = build_analysis(SourceEvidence())
    assert found.summary.startswith("The files were not counted.")
    assert "0 files" not in found.summary
    assert [one.severity for one in found.uncertainties] == ["notable"], "it is no empty folder"
