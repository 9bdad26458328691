"""Which template fits a source by its files, and how a proposal starts."""

from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from agent.core.errors import NotFoundError, ToolError
from agent.core.models import JsonObject
from agent.planning.rules import find_tool_calls
from agent.tools import ToolContext, ToolSpec, TypedTool
from gateway.features.documents.engine.ingest.pipeline_check import list_included_types
from gateway.features.pipeline_builder.engine.proposals import choose_template, propose_pipeline
from gateway.features.pipeline_builder.tools.pipelines import ApplyPipelineTool, ListPluginsTool
from gateway.features.pipeline_builder.tools.pipelines_by_rule import SuggestPipelineTool
from mcp_tools.builtin.calculator import CalculatorTool


def analysis_of(kinds: dict[str, int], types: list[str] | None = None, issues: list[str] | None = None) -> JsonObject:
    """An analysis that counted these endings."""
    return {
        "by_extension": {ending: {"count": count} for ending, count in kinds.items()},
        "content_characteristics": {"document_types": [*(types or [])], "quality_issues": [*(issues or [])]},
    }


@pytest.mark.parametrize(
    ("analysis", "source", "expected"),
    [
        (analysis_of({".xlsx": 8, ".md": 2}), "local", "tables"),
        (analysis_of({".pdf": 9}, issues=["scanned_pdfs"]), "local", "scans"),
        (analysis_of({".html": 9}), "web", "website"),
        (analysis_of({".pdf": 9}, ["academic"]), "local", "reports"),
        (analysis_of({".eml": 5, ".txt": 5}), "local", "notes"),
        (analysis_of({".txt": 9}, ["log"]), "local", "windows"),
        (analysis_of({".pdf": 3, ".md": 3, ".xlsx": 3}, ["prose"]), "local", "documents"),
        ({}, "local", "documents"),
        ({"by_extension": 3, "content_characteristics": [1]}, "local", "documents"),
    ],
)
def test_the_template_that_fits(analysis: JsonObject, source: str, expected: str) -> None:
    name, why = choose_template(analysis, source)
    assert name == expected
    assert why


def test_a_proposal_includes_every_type_that_was_found() -> None:
    pipeline, _ = propose_pipeline(analysis_of({".xlsx": 8, ".md": 2, ".png": 1}), "local")
    assert pipeline.template == "tables"
    assert set(list_included_types(pipeline)) == {"xlsx", "csv", "md"}


def test_one_scan_among_many_is_no_folder_of_scans() -> None:
    def looked(pdfs: int, *scanned: bool) -> JsonObject:
        stats: JsonObject = {
            "count": pdfs,
            "sample_results": [{"file": f"{n}", "scanned": one} for n, one in enumerate(scanned)],
        }
        texts: JsonObject = {"count": 10, "sample_results": [{"file": "a.md"}]}
        said: JsonObject = {"document_types": [], "quality_issues": ["scanned_pdfs"]}
        return {"by_extension": {".pdf": stats, ".md": texts}, "content_characteristics": said}

    assert choose_template(looked(9, True, False, False), "local")[0] == "documents"
    assert choose_template(looked(9, True, True, True), "local")[0] == "documents", "half is not most"
    assert choose_template(looked(90, True, True, False), "local")[0] == "scans"


def specs() -> list[ToolSpec]:
    """The tools of a room that builds pipelines, as far as the rules ask for their commands."""
    base = ListPluginsTool().spec
    tools: tuple[type[TypedTool[Any, Any]], ...] = (ApplyPipelineTool, SuggestPipelineTool)
    return [
        ToolSpec(one.name, "d", base.input_schema, None, base.annotations, tainted=False, hints=one.hints)
        for one in tools
    ]


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
    (call,) = find_tool_calls(text, specs())
    assert call.tool == tool
    assert args is None or call.args == args


def test_other_rooms_are_not_touched_by_these_rules() -> None:
    assert find_tool_calls("apply papers", [CalculatorTool().spec]) == []


@pytest.mark.parametrize("scopes", [("agent", "approve"), ("agent", "ingest"), None])
async def test_to_apply_a_pipeline_needs_the_scope_of_its_endpoint(scopes: tuple[str, ...] | None) -> None:
    """Without it, nothing is looked up; nobody is asked about what cannot be done."""
    builder: Any = Mock(find_conversation_for_call=AsyncMock(side_effect=NotFoundError("looked up")))
    tool = ApplyPipelineTool(builder)
    context = ToolContext("run_1", "anna", scopes=scopes)
    for attempt in (tool.preflight, tool.call):
        with pytest.raises(ToolError, match="looked up" if scopes is None or "ingest" in scopes else "scope 'ingest'"):
            await attempt({"collection_name": "docs"}, context)
