"""Pipelines as data: what is refused and why, what is kept, how two differ."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import ConflictError, NotFoundError
from gateway.features.documents.engine.ingest.file_types import list_file_types
from gateway.features.documents.engine.ingest.pipeline import (
    PipelineDAG,
    PipelineEdge,
    PipelineNode,
    build_chain,
)
from gateway.features.documents.engine.ingest.pipeline_check import (
    PipelineInvalidError,
    accepts_source,
    check_pipeline,
    find_problems,
    find_route,
    parse_pipeline,
    route_fingerprint,
)
from gateway.features.documents.engine.ingest.pipeline_diff import PipelineDiff, apply_diff, diff_pipelines
from gateway.features.documents.engine.ingest.plugins import get_plugin, list_plugins
from gateway.features.documents.engine.ingest.templates import (
    build_requested_pipeline,
    compute_default_fingerprint,
    from_template,
    list_templates,
)
from gateway.features.documents.engine.search.models import FileType

NODES = ("source", "parser", "chunker", "embedder", "index")


def node(name: str, **changes: Any) -> PipelineNode:
    usual = {"source": "any", "parser": "auto", "chunker": "structure", "embedder": "configured", "index": "hybrid"}
    kind = changes.pop("kind", name)
    return PipelineNode(**{"id": name, "kind": kind, "plugin": usual.get(kind, "?"), **changes})


def pipeline(**changed: PipelineNode) -> PipelineDAG:
    return build_chain([changed.get(name, node(name)) for name in NODES])


def with_edges(*edges: tuple[str, str], nodes: tuple[PipelineNode, ...] = ()) -> PipelineDAG:
    listed = (*(node(name) for name in NODES), *nodes)
    return PipelineDAG(nodes=listed, edges=tuple(PipelineEdge(from_node=a, to_node=b) for a, b in edges))


CHAIN = tuple(itertools.pairwise(NODES))


def reasons(dag: PipelineDAG) -> str:
    return "\n".join(find_problems(dag))


@pytest.mark.row("S000-28", "S000-51")
@pytest.mark.parametrize("one", list_templates(), ids=lambda one: one.name)
def test_every_template_can_be_carried_out_and_says_what_it_is_for(one: Any) -> None:
    assert find_problems(one.pipeline) == []
    assert one.suggested_for
    assert one.description
    assert one.parameters
    for knob in one.parameters:
        made = from_template(one.name, {knob.name: knob.default})
        assert made.get_node(knob.node).options[knob.option] == knob.default
        assert knob.value_schema.get("type")


def test_there_are_templates_enough_and_their_knobs_are_checked() -> None:
    assert len(list_templates()) >= 5
    assert from_template("documents", {"chunk_size": 300}).get_node("chunker").options["size"] == 300
    with pytest.raises(PipelineInvalidError) as wrong:
        from_template("documents", {"colour": 1, "shape": 2})
    assert len(wrong.value.problems) == 2
    assert "it has chunk_size, table_size, ocr_languages" in wrong.value.problems[0]
    with pytest.raises(PipelineInvalidError, match="size"):
        from_template("documents", {"chunk_size": "large"})
    with pytest.raises(NotFoundError, match="there are documents, reports"):
        from_template("magic")


def test_one_asks_by_template_or_whole_or_not_at_all() -> None:
    assert build_requested_pipeline() is None
    assert build_requested_pipeline("notes") == from_template("notes")
    assert build_requested_pipeline(None, {"chunk_size": 500}) == from_template("documents", {"chunk_size": 500})
    assert build_requested_pipeline(None, None, pipeline().model_dump(mode="json")) == pipeline()
    with pytest.raises(PipelineInvalidError, match="give one of them"):
        build_requested_pipeline("notes", None, pipeline().model_dump(mode="json"))


def test_every_kind_of_node_has_plugins_and_a_schema_of_their_options() -> None:
    assert {info.kind for info in list_plugins()} == set(NODES)
    assert [info.name for info in list_plugins("embedder")] == ["configured", "none"]
    assert get_plugin("structure").options["properties"]
    with pytest.raises(NotFoundError, match="there are any, local"):
        get_plugin("magic")


@pytest.mark.row("S000-28")
@pytest.mark.parametrize(
    ("dag", "reason"),
    [
        (PipelineDAG(nodes=(), edges=()), "there is no source"),
        (build_chain([node(name) for name in NODES if name != "parser"]), "there is no parser"),
        (build_chain([node(name) for name in NODES if name != "chunker"]), "there is no chunker"),
        (build_chain([node(name) for name in NODES if name != "index"]), "there is no index"),
        (
            build_chain([*map(node, NODES), node("second", kind="source")]),
            "2 nodes of the kind source (source, second)",
        ),
        (build_chain([*map(node, NODES), node("parser")]), "2 nodes are named 'parser'"),
        (with_edges(*CHAIN, ("index", "nowhere")), "dangles: there is no node 'nowhere'"),
        (with_edges(*CHAIN, ("chunker", "parser")), "there is a cycle through chunker, parser"),
        (with_edges(*CHAIN, ("parser", "parser")), "there is a cycle through parser"),
        (with_edges(*CHAIN, ("parser", "index")), "joins parser with index"),
        (with_edges(*CHAIN, CHAIN[0]), "source -> parser is there 2 times"),
        (with_edges(*CHAIN[:-1]), "nothing leads to the index index"),
        (with_edges(*CHAIN[1:]), "nothing follows the source source"),
        (
            with_edges(*CHAIN, ("parser", "two"), ("two", "embedder"), nodes=(node("two", kind="chunker"),)),
            "2 nodes follow the parser parser",
        ),
        (pipeline(chunker=node("chunker", plugin="magic")), "there is no chunker 'magic'; there are structure"),
        (pipeline(chunker=node("chunker", plugin="auto")), "there is no chunker 'auto'"),
        (pipeline(chunker=node("chunker", options={"sise": 3})), "does not take the option 'sise'; it takes size"),
        (pipeline(chunker=node("chunker", options={"size": 0})), "option 'size': it must be at least"),
        (pipeline(parser=node("parser", options={"timeout_s": 10**9})), "it must be at most 1800"),
        (pipeline(parser=node("parser", plugin="liteparse")), "no parser takes html"),
        (pipeline(parser=node("parser", plugin="liteparse", file_types=("docx",))), "liteparse does not read docx"),
        (
            build_chain([*map(node, NODES), node("pdf", kind="parser", plugin="liteparse")]),
            "2 parsers take pdf (parser, pdf)",
        ),
        (pipeline(chunker=node("chunker", file_types=("pdf",))), "only parsers are given file_types"),
        (pipeline(index=node("index", plugin="lexical")), "takes no vectors"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_the_reason(dag: PipelineDAG, reason: str) -> None:
    assert reason in reasons(dag)
    with pytest.raises(PipelineInvalidError):
        check_pipeline(dag)


def test_all_reasons_are_told_at_once() -> None:
    dag = with_edges(*CHAIN[:-1], ("chunker", "parser"), ("parser", "gone"), nodes=(node("extra", kind="source"),))
    broken = dag.model_copy(update={"nodes": (*dag.nodes[:2], node("chunker", plugin="magic"), *dag.nodes[3:])})
    with pytest.raises(PipelineInvalidError) as wrong:
        check_pipeline(broken)
    told = wrong.value.to_failure().details["problems"]
    assert isinstance(told, list)
    for part in ("2 nodes of the kind source", "dangles", "cycle", "nothing leads to the index", "no chunker 'magic'"):
        assert any(part in str(line) for line in told), part


def test_what_only_hangs_behind_a_circle_is_no_part_of_it() -> None:
    dag = with_edges(("source", "parser"), ("parser", "chunker"), ("chunker", "parser"), ("chunker", "embedder"))
    assert [line for line in find_problems(dag) if "cycle" in line] == ["there is a cycle through chunker, parser"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON"),
        ("[]", "write a map"),
        ('{"nodes": 3}', "nodes: write a list"),
        ('{"nodes": [], "edges": [], "colour": 1}', "colour: there is no such field"),
        (json.dumps({"nodes": [{"id": "A b", "kind": "oven", "plugin": ""}], "edges": []}), "nodes.0.kind"),
        ("[" * 100_000, "nested too deeply"),
        (f'"{"x" * 2_000_000}"', "more than 1000000 characters"),
    ],
)
def test_malformed_json_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(PipelineInvalidError, match=reason):
        parse_pipeline(text)


@pytest.mark.parametrize("name", [one.name for one in list_templates()])
def test_a_pipeline_survives_json(name: str) -> None:
    dag = from_template(name)
    assert parse_pipeline(dag.model_dump_json()) == dag
    assert parse_pipeline(json.loads(dag.model_dump_json())) == dag


def test_each_type_has_its_way() -> None:
    pdf = node("pdf", kind="parser", plugin="liteparse", file_types=("pdf",), options={"force_ocr": True})
    dag = build_chain([node("source"), pdf, node("parser"), node("chunker"), node("embedder"), node("index")])
    assert find_problems(dag) == []
    ways = {kind: find_route(dag, kind) for kind in list_file_types()}
    assert {kind for kind, way in ways.items() if way is not None and way.parser.id == "pdf"} == {"pdf"}
    assert {kind for kind, way in ways.items() if way is not None and way.parser.id == "parser"} == {
        *list_file_types()
    } - {"pdf"}
    assert find_route(from_template("tables"), "pdf") is None
    assert accepts_source(from_template("website"), "web")
    assert not accepts_source(from_template("website"), "local")


def finger(dag: PipelineDAG, file_type: FileType = "pdf") -> str:
    way = find_route(dag, file_type)
    assert way is not None
    return route_fingerprint(way)


def test_the_fingerprint_counts_what_changes_passages_and_nothing_else() -> None:
    base = from_template()
    assert finger(base) == compute_default_fingerprint("pdf")
    assert finger(base.with_options("parser", timeout_s=5, file_bytes=10)) == finger(base)
    assert finger(base.with_options("parser", force_ocr=True)) != finger(base)
    assert finger(base.with_options("chunker", size=901)) != finger(base)
    assert finger(pipeline(chunker=node("chunker", options={"size": 900, "table_size": 1800}))) == finger(base)
    without = pipeline(embedder=node("embedder", plugin="none"))
    assert finger(without) != finger(base)
    only_md = from_template("website").model_copy(update={"template": "other"})
    assert finger(only_md, "md") == finger(from_template("website"), "md"), "a name changes no passage"


def test_a_difference_is_told_and_makes_the_other_pipeline() -> None:
    before, after = from_template("documents"), from_template("scans")
    diff = diff_pipelines(before, after)
    assert [one.id for one in diff.added] == ["pdf-parser"]
    assert ("chunker", "plugin", "structure", "fixed") in {
        (one.node, one.field, one.before, one.after) for one in diff.changed
    }
    made = apply_diff(before, PipelineDiff.model_validate_json(diff.model_dump_json()))
    assert diff_pipelines(made, after) == PipelineDiff()
    assert find_problems(made) == []
    assert diff_pipelines(before, before) == PipelineDiff()


def test_a_difference_of_another_pipeline_is_not_applied() -> None:
    base = from_template()
    diff = diff_pipelines(base, base.with_options("chunker", size=500))
    with pytest.raises(ConflictError, match="make the difference again"):
        apply_diff(base.with_options("chunker", size=700), diff)
    with pytest.raises(ConflictError, match="no node 'chunker'"):
        apply_diff(PipelineDAG(nodes=base.nodes[:1], edges=()), diff)


NAMES = st.sampled_from(["source", "parser", "chunker", "embedder", "index", "more", "gone"])
DAGS = st.builds(
    PipelineDAG,
    nodes=st.lists(
        st.builds(
            PipelineNode,
            id=NAMES,
            kind=st.sampled_from(NODES),
            plugin=st.sampled_from([*(info.name for info in list_plugins()), "?"]),
            options=st.dictionaries(st.sampled_from(["size", "overlap", "file_types"]), st.integers(0, 2000)),
            file_types=st.lists(st.sampled_from(list_file_types()), max_size=2).map(tuple),
        ),
        max_size=8,
    ).map(tuple),
    edges=st.lists(st.builds(PipelineEdge, from_node=NAMES, to_node=NAMES), max_size=10).map(tuple),
)


@settings(max_examples=150)
@given(DAGS)
def test_whatever_is_not_refused_has_a_way_for_every_type_it_takes(dag: PipelineDAG) -> None:
    if find_problems(dag):
        return
    ways = [find_route(dag, kind) for kind in list_file_types()]
    assert any(way is not None for way in ways)
    for way in ways:
        if way is not None:
            assert [one.kind for one in way.nodes] == list(NODES[1:])
            assert route_fingerprint(way)


@settings(max_examples=100)
@given(st.sampled_from(list_templates()), st.sampled_from(list_templates()))
def test_any_two_templates_can_be_turned_into_each_other(one: Any, other: Any) -> None:
    assert (
        diff_pipelines(apply_diff(one.pipeline, diff_pipelines(one.pipeline, other.pipeline)), other.pipeline)
        == PipelineDiff()
    )
