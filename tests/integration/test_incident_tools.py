"""The incident tools on the example company, in real collections on disk."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import ToolSetupError
from agent.core.events import RunFailed
from agent.core.models import JsonObject
from agent.runs.rooms import load_rooms
from agent.tools import ToolContext, ToolResult
from gateway.features.documents.engine.ingest.corpus import CorpusDocument
from gateway.features.documents.engine.ingest.corpus_index import CorpusIndexer
from gateway.features.documents.engine.ingest.corpus_mapping import load_mapping
from gateway.features.documents.engine.ingest.corpus_prepare import prepare
from gateway.features.documents.engine.search.severity import parse_severity
from gateway.features.incident.engine.collection_names import EXAMPLE_COLLECTIONS, OWN_COLLECTIONS
from gateway.features.incident.engine.evidence import choose_collections, extract_snippet
from gateway.features.incident.engine.text import remove_pasted_logs
from gateway.features.incident.tools.brief import BuildIncidentBriefOutput
from gateway.packaged_files import PACKAGE_ROOT
from tests.support.engine import Bench, engine_bench

PROMPT = "P1 incident: user profile picture errors causing latency and failures."
CONTEXT = ToolContext(run_id="run_1", owner="local")
EXAMPLE = PACKAGE_ROOT / "config" / "examples"
ROOM = load_rooms(PACKAGE_ROOT / "config" / "rooms", default="incident").get("incident", None)


async def build(bench: Bench, collection: str, *corpora: Path) -> None:
    report = await CorpusIndexer(bench.library.resources).build("local", collection, corpora)
    assert report.faults.count == 0


@asynccontextmanager
async def company(folder: Path) -> AsyncIterator[Bench]:
    async with engine_bench(folder / "data", None, room=ROOM) as bench:
        corpora = []
        for name in ("tickets", "incidents"):
            corpora.append(folder / f"{name}.jsonl")
            mapping = load_mapping(EXAMPLE / "mappings" / f"{name}.yaml")
            assert prepare(mapping, [EXAMPLE / "company" / f"{name}.csv"], corpora[-1]).faults.count == 0
        await bench.library.ingest("local", "company", EXAMPLE / "company" / "documents")
        await build(bench, "company", corpora[0])
        await build(bench, "issues", *corpora)
        yield bench


@asynccontextmanager
async def issues(folder: Path, *rows: tuple[str, str, JsonObject]) -> AsyncIterator[Bench]:
    corpus = folder / "issues.jsonl"
    documents = [CorpusDocument(doc_id=key, source="jira", text=text, metadata=said) for key, text, said in rows]
    corpus.write_text("".join(f"{document.to_json_line()}\n" for document in documents))
    async with engine_bench(folder / "data", None) as bench:
        await build(bench, "issues", corpus)
        yield bench


async def call(bench: Bench, tool: str, **args: str | int | bool) -> ToolResult:
    return await bench.engine.registry.get(tool).call({**args}, CONTEXT)


def results(result: ToolResult) -> list[JsonObject]:
    assert isinstance(result.value, dict)
    found = result.value["results"]
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, dict)]


@pytest.mark.row("S004-22", "S004-37", "S004-46")
async def test_knowledge_brings_a_runbook_documents_and_tickets_with_where_they_stand(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        found = await call(bench, "search_incident_knowledge", query=PROMPT, service="profile-media-api")
        listed = results(found)
        assert {one["source_type"] for one in listed} == {"runbook", "doc", "ticket"}
        assert "runbooks/profile-media.md" in {one["source_id"] for one in listed}
        for one in listed:
            assert set(one) >= {
                "title",
                "snippet",
                "source_type",
                "source_id",
                "score",
                "scores",
                "why_selected",
                "chunk_id",
            }
        assert [source.name for source in found.sources] == [one["source_id"] for one in listed]
        assert "[1]" in found.text


@pytest.mark.row("S004-37")
@pytest.mark.parametrize("query", ["avatars grey after upload", "voucher refused", "xylophone quartet", "!!!", "\x00"])
async def test_a_policy_or_runbook_is_there_whatever_is_asked(tmp_path: Path, query: str) -> None:
    async with company(tmp_path) as bench:
        for limit in (1, 10):
            found = results(await call(bench, "search_incident_knowledge", query=query, limit=limit))
            assert any(one["source_type"] in ("policy", "runbook") for one in found)
            assert len(found) <= limit


async def test_every_snippet_stands_in_its_passage(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        for tool in ("search_incident_knowledge", "search_previous_issues"):
            for one in results(await call(bench, tool, query=PROMPT, limit=10)):
                collection = "company" if tool == "search_incident_knowledge" else "issues"
                (passage,) = (
                    await bench.library._lexical.get_passages(collection, [str(one["chunk_id"])], owner="local")
                ).values()
                assert str(one["snippet"]) in passage.passage.text


@pytest.mark.row("S004-23", "S004-41")
async def test_previous_issues_bring_each_ticket_once_by_falling_relevance(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        found = results(await call(bench, "search_previous_issues", query="profile picture errors", limit=10))
        tickets = [one["ticket"] for one in found]
        assert len(set(tickets)) == len(tickets) == 10
        assert found[0]["match"] == "strict"
        for kind in ("strict", "relaxed"):
            relevances = [float(str(one["relevance"])) for one in found if one["match"] == kind]
            assert relevances == sorted(relevances, reverse=True)
            assert all(0 <= relevance <= 1 for relevance in relevances)
        (newest,) = [one for one in found if one["ticket"] == "INC0010042"]
        assert newest["source"] == "incident_event_log"
        assert newest["doc_id"] == "incident:INC0010042"


@pytest.mark.row("S004-38")
async def test_hits_with_every_word_come_first_and_others_fill_up(tmp_path: Path) -> None:
    async with issues(
        tmp_path,
        ("A-1", "cache cache cache cache cold", {"ticket": "A-1"}),
        (
            "A-2",
            "a very long story in which at some place the cache is purged by somebody, and more words",
            {"ticket": "A-2"},
        ),
    ) as bench:
        found = results(await call(bench, "search_previous_issues", query="cache purges"))
        assert [(one["ticket"], one["match"]) for one in found] == [("A-2", "strict"), ("A-1", "relaxed")]


@pytest.mark.row("S004-39", "S004-40")
@pytest.mark.parametrize(
    ("service", "severity", "tickets", "filters"),
    [
        ("profile-media-api", "SEV1", ["A-1"], "service+severity"),
        ("Profile Media API", "P1", ["A-1"], "service+severity"),
        ("MED", "", ["A-2"], "service"),
        ("media-cdn", "", ["A-3"], "service"),
        ("", "SEV3", ["A-3"], "severity"),
        ("", "purple", ["A-4"], "severity"),
        ("payments", "SEV1", ["A-4"], "service"),
        ("nobody", "", ["A-1", "A-2", "A-3", "A-4"], "none"),
        ("nobody", "SEV4", ["A-1", "A-2", "A-3", "A-4"], "none"),
        ("", "", ["A-1", "A-2", "A-3", "A-4"], "none"),
    ],
)
async def test_filters_match_fields_or_text_and_are_given_up_in_their_order(
    tmp_path: Path, service: str, severity: str, tickets: list[str], filters: str
) -> None:
    async with issues(
        tmp_path,
        ("a", "pictures are slow", {"ticket": "A-1", "service": "profile-media-api", "priority": "Critical"}),
        ("b", "pictures are slow", {"ticket": "A-2", "project": "MED", "priority": "2 - High"}),
        ("c", "pictures are slow behind media-cdn since P3 was said", {"ticket": "A-3"}),
        ("d", "pictures are slow, said purple", {"ticket": "A-4", "component": "Payments", "severity": "SEV2"}),
    ) as bench:
        found = await call(
            bench, "search_previous_issues", query="slow pictures", service=service, severity=severity, limit=10
        )
        others = [one for one in results(found) if "another severity" in str(one["why_selected"])]
        asked = [one for one in results(found) if one not in others]
        assert sorted(str(one["ticket"]) for one in asked) == tickets
        assert results(found) == [*asked, *others], "the severity asked for comes first"
        assert not others or "severity" in filters
        assert isinstance(found.value, dict)
        assert found.value["filters"] == filters
        if filters == "none" and (service or severity):
            assert all("nothing matched the filters" in str(one["why_selected"]) for one in results(found))


async def test_issues_of_other_severities_follow_marked_up_to_the_limit(tmp_path: Path) -> None:
    async with issues(
        tmp_path,
        ("a", "pictures are slow", {"ticket": "A-1", "priority": "Critical"}),
        ("b", "pictures are slow, slow pictures", {"ticket": "A-2", "priority": "High"}),
        ("c", "pictures are slow", {"ticket": "A-3", "priority": "Low"}),
    ) as bench:
        found = await call(bench, "search_previous_issues", query="slow pictures", severity="SEV1", limit=2)
        first, second = results(found)
        assert first["ticket"] == "A-1"
        assert "matches the severity" in str(first["why_selected"])
        assert "another severity" in str(second["why_selected"])


async def test_footnotes_of_a_ticket_are_not_taken_for_citations(tmp_path: Path) -> None:
    text = "Summary: grey pictures [7]\nRoot cause: the picture cache was cold [9]\nResolution: warmed the cache [12]"
    async with issues(tmp_path, ("a", text, {"ticket": "A-1", "title": "A-1: grey pictures [7]"})) as bench:
        await build(bench, "company", tmp_path / "issues.jsonl")
        found = await call(bench, "search_previous_issues", query="grey pictures")
        made = await call(bench, "build_incident_brief", query="grey pictures")
        for result in (found, made):
            assert not any(mark in result.text for mark in ("[7]", "[9]", "[12]"))
            assert "[1]" in result.text
        assert any("[9]" in quote for source in made.sources for quote in source.quotes)


async def test_tickets_that_are_plain_files_are_told_by_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "tickets"
    folder.mkdir()
    (folder / "OPS-101.md").write_text("# OPS-101: grey pictures\n\nPriority: Major. Pictures stay grey.\n")
    async with engine_bench(tmp_path / "data", None) as bench:
        await bench.library.ingest("local", "issues", folder)
        (found,) = results(await call(bench, "search_previous_issues", query="grey pictures", severity="SEV2"))
        assert (found["ticket"], found["summary"]) == ("OPS-101", "grey pictures")
        assert "matches the severity" in str(found["why_selected"])


@pytest.mark.row("S004-24")
async def test_every_line_of_a_brief_is_cited_to_what_was_found(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        made = await call(bench, "build_incident_brief", query=PROMPT)
        brief = BuildIncidentBriefOutput.model_validate(made.value)
        assert brief.summary
        assert brief.similar_incidents
        assert brief.escalation_recommendation is not None
        assert 0 < brief.confidence < 1
        citations = {one.id: one for one in brief.citations}
        lines = [*brief.probable_causes, *brief.recommended_actions]
        assert len(lines) >= 8
        cited = [line.citations for line in (*lines, brief.escalation_recommendation)]
        for numbers in (*cited, *(one.citations for one in brief.similar_incidents)):
            assert numbers
            assert set(numbers) <= set(citations)
        for line in lines:
            (number,) = line.citations
            said = line.text.split(": ", 1)[-1]
            assert any(said in " ".join(quote.split()) for quote in citations[number].quotes)
        assert "SEV1: page the primary on-call" in made.text
        assert "Turn on the flag `avatar-placeholder`" in made.text
        assert [source.id for source in made.sources] == list(range(1, len(made.sources) + 1))
        again = await call(bench, "build_incident_brief", query=PROMPT)
        assert again.value == made.value


async def test_without_evidence_the_brief_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "lunch.txt").write_text("Soup on Mondays.")
    async with engine_bench(tmp_path / "data", None) as bench:
        await bench.library.ingest("local", "company", tmp_path / "notes")
        await bench.library.ingest("local", "issues", tmp_path / "notes")
        made = await call(bench, "build_incident_brief", query="the database burns")
        assert made.text.startswith("No document or earlier issue is about this incident")
        assert made.sources == ()
        assert (await call(bench, "search_previous_issues", query="burning database")).text == (
            "No earlier issue is similar."
        )


@pytest.mark.parametrize("tool", ["search_incident_knowledge", "search_previous_issues", "build_incident_brief"])
async def test_without_collections_the_tools_say_which_command_makes_them(tmp_path: Path, tool: str) -> None:
    async with engine_bench(tmp_path, None) as bench:
        with pytest.raises(ToolSetupError, match="`stepgate corpus example` creates an example"):
            await call(bench, tool, query=PROMPT)


async def test_a_room_without_collections_fails_at_once_and_says_which_command_makes_them(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None, room=ROOM) as bench:
        events = await bench.events(PROMPT)
    body = events[-1].body
    assert isinstance(body, RunFailed)
    failure = body.failure
    assert (failure.error_code, failure.agent_id) == ("ERR_TOOL_SETUP", "search_incident_knowledge")
    assert failure.message.count("`stepgate corpus example`") == 1
    assert "`stepgate ingest FOLDER --collection company`" in failure.message
    assert [type(event.body).__name__ for event in events].count("PlanProposed") == 1, "another plan would fail too"
    assert not [event for event in events if type(event.body).__name__ == "GateChecked"]


async def test_the_incidents_of_others_are_not_found(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        other = ToolContext(run_id="run_1", owner="somebody else")
        with pytest.raises(ToolSetupError, match="there is no collection"):
            await bench.engine.registry.get("search_previous_issues").call({"query": PROMPT}, other)


async def test_asking_a_model_to_rerank_says_that_none_does(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        found = await call(bench, "search_previous_issues", query=PROMPT, use_llm_rerank=True)
        assert isinstance(found.value, dict)
        assert "no model to rerank with" in str(found.value["note"])


@pytest.mark.row("S004-45")
@pytest.mark.parametrize("tool", ["search_previous_issues", "search_incident_knowledge"])
async def test_limits_and_types_are_checked_before_the_call(tmp_path: Path, tool: str) -> None:
    async with company(tmp_path) as bench:
        for name, value in (("limit", 11), ("limit", 0), ("limit", "three"), ("query", "")):
            with pytest.raises(ValueError, match=name):
                await call(bench, tool, **{"query": PROMPT, name: value})
        assert len(results(await call(bench, tool, query=PROMPT))) == 3
        assert len(results(await call(bench, tool, query=PROMPT, limit=1))) == 1
        assert 3 < len(results(await call(bench, tool, query=PROMPT, limit=10))) <= 10


UNKNOWN = (
    "Incident: the coffee machine in the kitchen is broken",
    "Outage: quantum flux capacitor overheats on Mars colony",
    "Incident: Hauptdatenbank antwortet nicht mehr",
    "P1 incident: giraffe escaped from the zoo",
    "Error in the cafeteria menu, high priority",
)


@pytest.mark.parametrize("prompt", UNKNOWN)
async def test_an_incident_like_no_other_has_no_causes(tmp_path: Path, prompt: str) -> None:
    async with company(tmp_path) as bench:
        assert results(await call(bench, "search_previous_issues", query=prompt)) == []
        made = BuildIncidentBriefOutput.model_validate((await call(bench, "build_incident_brief", query=prompt)).value)
        assert (made.similar_incidents, made.probable_causes, made.recommended_actions) == ([], [], [])
        assert "No earlier issue is similar." in made.summary
        assert made.confidence <= 0.2
        response = await bench.run(prompt)
        assert response.metadata["status"] == "failed"
        assert "incident_evidence: search_previous_issues found nothing" in response.response


async def test_a_long_report_is_found_by_a_few_telling_words(tmp_path: Path) -> None:
    report = (
        "P1 incident: user profile pictures return errors and latency rises since the 14:00 deploy. Anna Berg from "
        "support reports 300 tickets; please page the on-call engineer within 15 minutes and tell the press office."
    )
    async with company(tmp_path) as bench:
        tickets = {one["ticket"] for one in results(await call(bench, "search_previous_issues", query=report))}
        assert "MED-101" in tickets


LINES = [
    f"2026-11-22T10:{at // 60:02}:{at % 60:02}.{at * 7 % 1000:03} {('INFO', 'WARN', 'ERROR')[at % 3]} [exec-{at % 16}] "
    f"com.larkfield.web.RequestFilter id={at * 2654435761 % 2**32:08x} path=/members/{at * 31} took={at * 13 % 5000}ms"
    for at in range(300)
]
FRAMES = [f"    at com.larkfield.pool.Handler{at % 7}.call(Handler.java:{at * 17})" for at in range(60)]


@pytest.mark.parametrize("log", [LINES, FRAMES], ids=["log", "stack"])
@pytest.mark.parametrize("first", [True, False], ids=["report-first", "report-last"])
async def test_a_log_that_is_pasted_into_a_report_does_not_hide_it(
    tmp_path: Path, log: list[str], *, first: bool
) -> None:
    parts = [PROMPT, "\n".join(log)]
    report = "\n\n".join(parts if first else parts[::-1])
    async with company(tmp_path) as bench:
        for tool in ("search_previous_issues", "search_incident_knowledge"):
            plain = results(await call(bench, tool, query=PROMPT, service="profile-media-api"))
            pasted = results(await call(bench, tool, query=report, service="profile-media-api"))
            names = "ticket" if tool == "search_previous_issues" else "source_id"
            assert [one[names] for one in pasted] == [one[names] for one in plain]


async def test_the_room_answers_the_sample_task_with_citations(tmp_path: Path) -> None:
    async with company(tmp_path) as bench:
        response = await bench.run(PROMPT)
        assert response.metadata["status"] == "complete", response.response
        assert "INC0010042" in response.response
        assert response.response.startswith("**Brief**")
        assert "**Named in the text**" in response.response
        assert "**Summary**" not in response.response, "a summary that only repeats the report is left out"
        assert "runbooks/profile-media.md" in {source["name"] for source in response.metadata["sources"]}


async def test_a_text_the_caller_gives_to_a_call_is_the_one_that_is_summarized(tmp_path: Path) -> None:
    calls = [{"tool": "summarize", "args": {"text": "The invoices went out. Anna is glad.", "max_words": 20}}]
    async with company(tmp_path) as bench:
        response = await bench.run("Shorten this for me.", metadata={"tool_calls": calls})
    (result,) = [one for one in response.metadata["tool_results"] if one["tool"] == "summarize"]
    assert result["output"]["summary"] == "The invoices went out. Anna is glad."


async def test_other_rooms_do_not_see_the_tools_unless_they_are_asked_for_by_name(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        listing = await bench.run("/tools")
        assert "classify_priority" not in listing.response
        calls = [{"tool": "classify_priority", "args": {"text": PROMPT}}]
        asked = await bench.run("", metadata={"tool_calls": calls})
        assert "Priority: critical" in asked.response


@pytest.mark.parametrize(
    ("said", "level"),
    [("P1", "critical"), ("sev-2", "high"), ("SEV 3", "medium"), ("Priority 4", "low"), ("1 - Critical", "critical"),
     ("3 - Moderate", "medium"), ("Major", "high"), ("Trivial", "low"), ("2", "high"), ("", None), ("P9", None),
     ("blue", None), ("x" * 10_000, None)],
)  # fmt: skip
def test_levels(said: str, level: str | None) -> None:
    assert parse_severity(said) == level


@settings(max_examples=100)
@given(st.text(max_size=2_000), st.text(max_size=50), st.integers(1, 500))
def test_a_snippet_is_a_part_of_its_text_within_its_length(text: str, query: str, limit: int) -> None:
    part = extract_snippet(text, query, limit)
    assert part in text
    assert len(part) <= limit


@pytest.mark.parametrize(
    ("report", "kept"),
    [
        ("14:05 the pictures turn grey for everybody\n14:20 the release is rolled back", None),
        ("Service: media-api\nStatus: 503\nP1", None),
        ("\n".join(LINES), None),
        ("\n".join(FRAMES), None),
        ("It fails.\nIt fails.\nIt fails.", "It fails."),
        ('It fails:\n  File "a/b.py", line 7, in get\n... 12 more\nSince noon.', "It fails:\nSince noon."),
        ("[P1] checkout-api eu-west-1 p95 4000ms err 12% since 10:02\n\n" + "\n".join(LINES),
         "[P1] checkout-api eu-west-1 p95 4000ms err 12% since 10:02"),
        ("P1: payments-db-01 CPU 98% disk 91% io 88%\nCustomers cannot pay.", None),
        ("Status: 503\n\u0938\u0930\u094d\u0935\u0930 \u0915\u093e\u092e \u0928\u0939\u0940\u0902 \u0915\u0930 "
         "\u0930\u0939\u093e \u0939\u0948", None),
        ("P1\n\u0627\u0644\u062e\u064e\u0627\u062f\u0650\u0645\u064f \u0644\u0627 "
         "\u064a\u064e\u0639\u0652\u0645\u064e\u0644\u064f \u0645\u064f\u0646\u0652\u0630\u064f "
         "\u0627\u0644\u0635\u0651\u064e\u0628\u064e\u0627\u062d\u0650 "
         "\u062c\u0650\u062f\u0651\u064b\u0627", None),
        ('Grey.\n10.0.0.1 - - [22/Nov/2026:10:00:01 +0000] "GET /avatars/7 HTTP/1.1" 503 12', "Grey."),
    ],
)  # fmt: skip
def test_what_people_wrote_of_a_report_is_searched_for(report: str, kept: str | None) -> None:
    assert remove_pasted_logs(report) == (report if kept is None else kept)


async def test_a_room_names_its_collections_and_the_example_stands_in_while_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "paging.md").write_text("# Paging policy\n\nPage the database team for replication lag.\n")
    async with engine_bench(tmp_path / "data", None, room=ROOM) as bench:
        library = bench.library
        assert await choose_collections(library, "local", None) == OWN_COLLECTIONS, "errors name what to create"
        await library.ingest("local", EXAMPLE_COLLECTIONS.knowledge, tmp_path / "notes")
        assert await choose_collections(library, "local", None) == OWN_COLLECTIONS, "half an example is none"
        await library.ingest("local", EXAMPLE_COLLECTIONS.issues, tmp_path / "notes")
        assert await choose_collections(library, "local", None) == EXAMPLE_COLLECTIONS
        assert await choose_collections(library, "anna", None) == OWN_COLLECTIONS, "the example is another owner's"
        await library.ingest("local", "issues", tmp_path / "notes")
        assert await choose_collections(library, "local", ()) == OWN_COLLECTIONS, "own documents stay apart from it"
        for named, expected in ((("a",), ("a", "a")), (("a", "b"), ("a", "b")), (("a", "b", "c"), ("a", "c"))):
            assert await choose_collections(library, "local", named) == expected
        await library.ingest("local", "handbook", tmp_path / "notes")
        context = replace(CONTEXT, collections=("handbook", "tickets"))
        tool = bench.engine.registry.get("search_incident_knowledge")
        found = await tool.call({"query": "replication lag of the database"}, context)
        assert "Page the database team" in found.text
        with pytest.raises(ToolSetupError, match=r"'tickets'.*`collections` of the room names others"):
            await bench.engine.registry.get("search_previous_issues").call({"query": "replication lag"}, context)
