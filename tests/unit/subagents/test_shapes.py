"""What sub-agents agree on: their prompts, ids and results; ways through a pipeline; the last message of a model."""

import json
import re

import pytest
from pydantic import BaseModel

from agent.core.errors import ConfigError
from agent.execution.subagent_work import parse_final
from agent.run_context.call_site import CallSite
from agent.subagents.registry import SubAgentClass, index_subagents, register_subagents
from agent.subagents.spawn import make_spawn_tools
from gateway.features.documents.engine.ingest.pipeline_check import (
    PipelineInvalidError,
    find_problems,
    find_route,
    list_parser_types,
)
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff, diff_pipelines
from gateway.features.documents.engine.ingest.templates import from_template, list_templates
from gateway.features.documents.engine.search.models import FileType
from gateway.features.pipeline_builder.engine.subagents.alternatives import with_chunker_for_type, with_parser_for_type
from gateway.features.pipeline_builder.engine.subagents.document_kinds import compute_code_share, detect_document_types
from tests.support.engine import SUBAGENTS

PROSE = "The committee met on Monday. It decided to postpone the matter, and to ask for a further report.\n" * 5
CODE = "def total(rows):\n    result = 0\n    for row in rows:\n        result += row.value\n    return result\n" * 3


class Answer(BaseModel):
    answer: str


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "x"}',
        'Here:\n```json\n{"answer": "x"}\n```\nDone.',
        '{"answer": "draft"} no, rather {"answer": "x"}',
        '<think>{"a": {</think> {"answer": "x", "more": [1]}',
        '{"note": 1} {"answer": "x"} {"note": 2}',
    ],
)
def test_the_last_object_that_fits_is_the_result(text: str) -> None:
    assert parse_final(Answer, text) == Answer(answer="x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it holds no JSON object"),
        ("[1, 2]", "it holds no JSON object"),
        ('{"answer": 7}', "answer: write a text, not 7"),
        ('{"answer": "x"', "it holds no JSON object"),
        ("{" * 100_000, "it holds no JSON object"),
        ('{"a":' * 50_000, "it holds no JSON object"),
    ],
)
def test_what_is_no_result_is_said_in_a_few_words(text: str, problem: str) -> None:
    assert parse_final(Answer, text) == problem


@pytest.mark.parametrize("kind", SUBAGENTS, ids=lambda kind: str(kind.AGENT_ID))
def test_the_example_in_each_prompt_is_a_result(kind: SubAgentClass) -> None:
    text = kind.PROMPTS.render(kind.PROMPT or f"subagent_{kind.AGENT_ID}", system="")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    parsed = kind.Final.model_validate(json.loads(example))
    assert set(json.loads(example)) == set(type(parsed).model_fields)


def test_every_sub_agent_has_its_tool_and_ids_are_unique() -> None:
    names = [tool.spec.name for tool in make_spawn_tools(SUBAGENTS)]
    assert names == [f"spawn_{kind.AGENT_ID}" for kind in SUBAGENTS]
    assert names[:4] == ["spawn_source_analyzer", "spawn_pipeline_validator", "spawn_researcher", "spawn_room_agent"]
    assert all(
        tool.spec.effect == "read" and tool.spec.uses_subagents and tool.spec.is_opt_in
        for tool in make_spawn_tools(SUBAGENTS)
    )
    with pytest.raises(ConfigError, match="two sub-agents are called 'researcher'"):
        index_subagents(register_subagents([*SUBAGENTS, SUBAGENTS[2]]))


@pytest.mark.row("S000-21", "S000-22")
def test_the_limits_are_those_of_the_builder() -> None:
    assert [(kind.AGENT_ID, kind.MAX_TURNS, kind.TIMEOUT_SECONDS) for kind in SUBAGENTS[:3]] == [
        ("source_analyzer", 30, 300),
        ("pipeline_validator", 25, 300),
        ("researcher", 20, 300),
    ]


@pytest.mark.row("S002-47")
def test_ids_of_calls_in_spans_are_those_of_nothing_else() -> None:
    sites = [
        CallSite("s1", 1, 2),
        CallSite("s1", 1, 2, origin="rules"),
        CallSite("s1", 1, 2, span="s1.1.1"),
        CallSite("s1", 1, 2, span="s1.1.2"),
        CallSite("s1", 1, 2, "rules", span="s1.1.2"),
        CallSite("s1", 1, 2, span="s1.1.2/2"),
        CallSite("s1", 2, 2, span="s1.2.1"),
    ]
    assert len({site.call_id for site in sites}) == len(sites)
    assert sites[0].call_id == "s1.1.2"
    assert [site.place for site in sites] == ["2", "r2", "1/2", "2/2", "2/r2", "2/2/2", "1/2"]


@pytest.mark.parametrize("template", [one.name for one in list_templates()])
@pytest.mark.parametrize("file_type", ["pdf", "html", "txt"])
def test_one_type_can_be_read_otherwise_and_the_others_stay(template: str, file_type: FileType) -> None:
    pipeline = from_template(template)
    changed = with_parser_for_type(pipeline, file_type, options={"timeout_s": 7})
    assert find_problems(changed) == []
    way = find_route(changed, file_type)
    assert way is not None
    assert way.parser.options["timeout_s"] == 7
    assert apply_diff(pipeline, diff_pipelines(pipeline, changed)).nodes == changed.nodes
    for other in ("docx", "md", "pdf", "txt"):
        before, after = find_route(pipeline, other), find_route(changed, other)
        if other != file_type and before is not None:
            assert after is not None
            assert (before.parser.plugin, before.parser.options) == (after.parser.plugin, after.parser.options)


def test_a_type_that_was_left_out_is_taken_when_it_is_read_otherwise() -> None:
    pipeline = from_template("documents")
    (source,) = pipeline.list_nodes("source")
    without = pipeline.with_options(source.id, left_out=["docx", "eml"])
    assert (find_route(without, "docx"), find_route(without, "eml")) == (None, None)
    taken = with_parser_for_type(without, "docx")
    assert find_problems(taken) == []
    assert find_route(taken, "docx") is not None
    assert find_route(taken, "eml") is None, "the others stay out"
    nothing = pipeline.with_options(source.id, file_types=["pdf"], left_out=["pdf"])
    assert any("nothing is left" in problem for problem in find_problems(nothing))


def test_another_parser_takes_its_own_options() -> None:
    pipeline = with_parser_for_type(from_template("documents"), "docx", parser="python-docx", options={"timeout_s": 5})
    again = with_parser_for_type(pipeline, "docx", parser="kreuzberg")
    way = find_route(again, "docx")
    assert way is not None
    assert (way.parser.id, way.parser.plugin, way.parser.options) == ("docx-parser", "kreuzberg", {})
    assert "docx" not in list_parser_types(again, again.get_node("parser"))
    with pytest.raises(PipelineInvalidError, match="does not read docx"):
        with_parser_for_type(pipeline, "docx", parser="liteparse")
    with pytest.raises(PipelineInvalidError, match="does not take the option 'speed'"):
        with_parser_for_type(pipeline, "docx", options={"speed": 1})


def test_another_chunker_may_cut() -> None:
    pipeline = with_chunker_for_type(from_template("documents"), "txt", chunker="fixed", options={"size": 300})
    way = find_route(pipeline, "txt")
    assert way is not None
    assert (way.chunker.plugin, way.chunker.options) == ("fixed", {"size": 300})
    with pytest.raises(PipelineInvalidError, match="there is no chunker 'axe'"):
        with_chunker_for_type(pipeline, "txt", chunker="axe")


@pytest.mark.row("S000-36")
def test_code_is_told_from_prose() -> None:
    assert compute_code_share(CODE) >= 0.8
    assert compute_code_share(PROSE) < 0.1
    assert compute_code_share("") == 0
    assert detect_document_types([PROSE], "txt", ".txt") == ["prose"]
    assert detect_document_types([CODE], "txt", ".txt") == ["code"]
    assert detect_document_types([], None, ".py") == ["code"]
    assert detect_document_types(["  "], "txt", ".txt") == []
    assert detect_document_types([f"{PROSE}\n\nFor example:\n\n{CODE[:60]}"], "md", ".md") == ["prose"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Abstract\nKeywords\n1 Introduction as in [3], Smith et al. 5 Conclusion\nReferences", "academic"),
        ("This Agreement binds the parties hereby; clause 3 limits liability and shall stand.", "legal"),
        ("## Installation\n\nUsage: configure the API, see the example and the parameters.", "documentation"),
        ("2024-01-01 10:00:00 up\n" * 6, "log"),
        ("From: a\nTo: b\nSubject: c\nDate: d\n\nHello", "mail"),
        ("Net income and revenue of the fiscal year; the balance sheet shows cash flow.", "financial"),
    ],
)
def test_kinds_of_documents_show_themselves(text: str, kind: str) -> None:
    assert detect_document_types([text], "txt", ".txt") == [kind]


def test_a_hostile_text_costs_no_time() -> None:
    assert compute_code_share("a" * 20_000) == 0
    assert detect_document_types(["(" * 20_000], "txt", ".txt")
