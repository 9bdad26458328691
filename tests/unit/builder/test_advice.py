"""What rules can do of a model's part in a conversation: which template fits, what is a plain question."""

import pytest

from agent.builder.advice import fitting, knobs
from agent.builder.questions import asks_state, plain_answer, wants_again
from agent.core.models import JsonObject
from agent.knowledge.templates import template
from agent.planning.rules import tool_calls_for
from agent.tools import ToolSpec
from mcp_tools.builtin.calculator import CalculatorTool
from mcp_tools.builtin.pipelines import ListPluginsTool


def found(kinds: dict[str, int], types: list[str] | None = None, issues: list[str] | None = None) -> JsonObject:
    """An analysis that counted these endings."""
    return {
        "by_extension": {ending: {"count": count} for ending, count in kinds.items()},
        "content_characteristics": {"document_types": [*(types or [])], "quality_issues": [*(issues or [])]},
    }


@pytest.mark.parametrize(
    ("analysis", "request_text", "source", "expected"),
    [
        (found({".md": 9}), "index this with the template windows", "local", "windows"),
        (found({".md": 9}), "use the notes template, please", "local", "notes"),
        (found({".md": 9}), "use the template nonsense", "local", "documents"),
        (found({".xlsx": 8, ".md": 2}), "index these papers", "local", "tables"),
        (found({".pdf": 9}, issues=["scanned_pdfs"]), "index these papers", "local", "scans"),
        (found({".html": 9}), "index these papers", "web", "website"),
        (found({".pdf": 9}), "Help me index these research papers", "local", "reports"),
        (found({".pdf": 9}, ["academic"]), "index this", "local", "reports"),
        (found({".eml": 5, ".txt": 5}), "index this", "local", "notes"),
        (found({".txt": 9}, ["log"]), "index this", "local", "windows"),
        (found({".pdf": 3, ".md": 3, ".xlsx": 3}, ["prose"]), "index this", "local", "documents"),
        ({}, "", "local", "documents"),
        ({"by_extension": 3, "content_characteristics": [1]}, "index", "local", "documents"),
    ],
)
def test_the_template_that_fits(analysis: JsonObject, request_text: str, source: str, expected: str) -> None:
    name, why = fitting(analysis, request_text, source)
    assert name == expected
    assert why


def test_one_scan_among_many_is_no_folder_of_scans() -> None:
    def looked(pdfs: int, *scanned: bool) -> JsonObject:
        stats: JsonObject = {
            "count": pdfs,
            "sample_results": [{"file": f"{n}", "scanned": one} for n, one in enumerate(scanned)],
        }
        texts: JsonObject = {"count": 10, "sample_results": [{"file": "a.md"}]}
        said: JsonObject = {"document_types": [], "quality_issues": ["scanned_pdfs"]}
        return {"by_extension": {".pdf": stats, ".md": texts}, "content_characteristics": said}

    assert fitting(looked(9, True, False, False), "index these papers", "local")[0] == "reports"
    assert fitting(looked(9, True, True, True), "index these papers", "local")[0] == "reports", "half is not most"
    assert fitting(looked(90, True, True, False), "index these papers", "local")[0] == "scans"


def test_parameters_that_the_user_names_are_set() -> None:
    reports = template("reports")
    assert knobs(reports, "with a chunk size of 1200, and table-size 5000") == {"chunk_size": 1200, "table_size": 5000}
    assert knobs(reports, "index 900 papers") == {}


@pytest.mark.row("S000-49")
def test_plain_questions_are_answered_at_once() -> None:
    chunkers = plain_answer("What chunkers exist?") or ""
    assert "sentence (chunker)" in chunkers
    assert "(parser)" not in chunkers
    assert "scans" in (plain_answer("list the templates") or "")
    assert "liteparse" in (plain_answer("which parsers are there?") or "")
    assert plain_answer("Help me index these research papers") is None
    assert plain_answer("use the template reports") is None


def test_what_else_rules_read() -> None:
    assert asks_state("status?")
    assert asks_state("show the pipeline")
    assert not asks_state("show me how to index the 500 papers of my group, and make it quick please")
    assert wants_again("please analyse it again")
    assert not wants_again("index it")


def specs() -> list[ToolSpec]:
    """The tools of a room that builds pipelines, as far as the rules ask for their names."""
    base = ListPluginsTool().spec
    names = ("apply_pipeline", "suggest_pipeline")
    return [ToolSpec(name, "d", base.input_schema, None, base.annotations, tainted=False) for name in names]


@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        ("apply papers", "apply_pipeline", {"collection_name": "papers"}),
        ("Apply it to the collection my-papers.", "apply_pipeline", {"collection_name": "my-papers"}),
        ("apply as 'kelp'", "apply_pipeline", {"collection_name": "kelp"}),
        ("apply papers anyway", "apply_pipeline", {"collection_name": "papers", "force": True}),
        ("do not apply papers", "suggest_pipeline", {"request": "do not apply papers"}),
        ("apply the template reports to them all", "suggest_pipeline", None),
        ("apply it", "suggest_pipeline", {"request": "apply it"}),
        ("Apply this, please", "suggest_pipeline", None),
        ("apply anyway", "suggest_pipeline", {"request": "apply anyway"}),
        ("what is 2 + 2?", "suggest_pipeline", {"request": "what is 2 + 2?"}),
    ],
)
def test_applying_is_read_off_exact_words_only(text: str, tool: str, args: JsonObject | None) -> None:
    (call,) = tool_calls_for(text, specs())
    assert call.tool == tool
    assert args is None or call.args == args


def test_other_rooms_are_not_touched_by_these_rules() -> None:
    assert tool_calls_for("apply papers", [CalculatorTool().spec]) == []
