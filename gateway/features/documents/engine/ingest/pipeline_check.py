"""Validates pipelines, reporting every problem at once, and finds the route of each file type."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.core.value_faults import describe_faults
from gateway.features.documents.engine.ingest.file_types import list_file_types
from gateway.features.documents.engine.ingest.pipeline import (
    STAGES,
    NodeKind,
    PipelineDAG,
    PipelineNode,
    Route,
    compute_fingerprint,
)
from gateway.features.documents.engine.ingest.plugins import (
    SourceOptions,
    compute_effective_options,
    find_option_problems,
    list_types_read_by,
    parse_options,
)
from gateway.features.documents.engine.search.models import FileType, SourceType

MAX_TEXT = 1_000_000
"""Characters of a pipeline as JSON. The largest valid pipeline has a tenth of this."""


class PipelineInvalidError(BadRequestError):
    """Raised for an invalid pipeline; `details["problems"]` lists every reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        problem_text = "; ".join(problems)
        super().__init__(
            f"the pipeline cannot be carried out: {problem_text}", agent_id="pipeline", problems=list(problems)
        )
        self.problems = list(problems)


def parse_pipeline(data: JsonObject | str) -> PipelineDAG:
    """Parses and checks a pipeline from JSON. Raises `PipelineInvalidError` with every reason."""
    try:
        if isinstance(data, str):
            if len(data) > MAX_TEXT:
                raise PipelineInvalidError([f"its JSON has more than {MAX_TEXT} characters"])
            data = json.loads(data)
        pipeline = PipelineDAG.model_validate(data)
    except ValidationError as error:
        raise PipelineInvalidError(describe_faults(error)) from error
    except json.JSONDecodeError as error:
        raise PipelineInvalidError([f"it is not JSON: {error.msg} at line {error.lineno}"]) from error
    except RecursionError as error:
        raise PipelineInvalidError(["its JSON is nested too deeply"]) from error
    return check_pipeline(pipeline)


def check_pipeline(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline if it is valid. Raises `PipelineInvalidError` with every reason."""
    problems = find_problems(pipeline)
    if problems:
        raise PipelineInvalidError(problems)
    return pipeline


def find_problems(pipeline: PipelineDAG) -> list[str]:
    """Every reason why a pipeline is invalid; empty if it is valid."""
    problems = [*_check_names(pipeline), *_check_counts(pipeline), *_check_edges(pipeline), *_check_cycles(pipeline)]
    for node in pipeline.nodes:
        problems += [f"node {node.id}: {fault}" for fault in find_option_problems(node.kind, node.plugin, node.options)]
    return list(dict.fromkeys([*problems, *_check_types(pipeline), *_check_vectors(pipeline)]))


def list_included_types(pipeline: PipelineDAG) -> tuple[FileType, ...]:
    """The file types that a checked pipeline includes."""
    return get_source_options(pipeline).included


def get_source_options(pipeline: PipelineDAG) -> SourceOptions:
    """Which files a checked pipeline includes and excludes."""
    (source,) = pipeline.list_nodes("source")
    return parse_options(SourceOptions, source.options)


def accepts_source(pipeline: PipelineDAG, source: SourceType) -> bool:
    """Whether a checked pipeline accepts this kind of source."""
    return pipeline.list_nodes("source")[0].plugin in ("any", source)


def find_route(pipeline: PipelineDAG, file_type: FileType) -> Route | None:
    """The route of a file type through a checked pipeline, or None if it does not include the type."""
    if file_type not in list_included_types(pipeline):
        return None
    for parser in pipeline.list_nodes("parser"):
        if file_type in list_parser_types(pipeline, parser):
            (chunker,) = pipeline.list_successors(parser.id)
            (embedder,) = pipeline.list_successors(chunker.id)
            (index,) = pipeline.list_successors(embedder.id)
            return Route(parser, chunker, embedder, index)
    return None


def route_fingerprint(route: Route) -> str:
    """The fingerprint of a route. If it changes, documents are read again.

    Limits do not count, nor which other types the same parser reads.
    """
    return compute_fingerprint(
        *([node.plugin, compute_effective_options(node.kind, node.plugin, node.options)] for node in route.nodes)
    )


def _check_names(pipeline: PipelineDAG) -> Iterator[str]:
    for name, count in Counter(node.id for node in pipeline.nodes).items():
        if count > 1:
            yield f"{count} nodes are named {name!r}"


def _check_counts(pipeline: PipelineDAG) -> Iterator[str]:
    for kind in STAGES:
        nodes = pipeline.list_nodes(kind)
        if not nodes:
            yield f"there is no {kind}"
        elif len(nodes) > 1 and kind not in ("parser", "chunker"):
            yield f"there are {len(nodes)} nodes of the kind {kind} ({_format_ids(nodes)}); one is needed"


def _check_edges(pipeline: PipelineDAG) -> Iterator[str]:
    """Yields edges that dangle, skip a stage or repeat, and edges that are missing."""
    kinds = {node.id: node.kind for node in pipeline.nodes}
    for edge, count in Counter((edge.from_node, edge.to_node) for edge in pipeline.edges).items():
        edge_text = f"the edge {edge[0]} -> {edge[1]}"
        if count > 1:
            yield f"{edge_text} is there {count} times"
        dangling = [name for name in dict.fromkeys(edge) if name not in kinds]
        for name in dangling:
            yield f"{edge_text} dangles: there is no node {name!r}"
        if not dangling and _get_next_stage(kinds[edge[0]]) != kinds[edge[1]]:
            yield f"{edge_text} joins {kinds[edge[0]]} with {kinds[edge[1]]}; the order is {' -> '.join(STAGES)}"
    for node in pipeline.nodes:
        following = len([edge for edge in pipeline.edges if edge.from_node == node.id])
        if node.kind != "index" and not following:
            wanted = _get_next_stage(node.kind)
            yield f"nothing follows the {node.kind} {node.id}: join it to a node of the kind {wanted}"
        if following > 1 and node.kind != "source":
            yield f"{following} nodes follow the {node.kind} {node.id}; one is needed"
        if node.kind != "source" and all(edge.to_node != node.id for edge in pipeline.edges):
            yield f"nothing leads to the {node.kind} {node.id}"


def _check_cycles(pipeline: PipelineDAG) -> Iterator[str]:
    """Yields the nodes of a cycle: removes nodes without predecessors until nothing changes."""
    left = {node.id for node in pipeline.nodes}
    edges = [edge for edge in pipeline.edges if edge.from_node in left and edge.to_node in left]
    while left:
        reached = {edge.to_node for edge in edges if edge.from_node in left}
        free = left - reached
        if not free:
            # What only hangs behind the circle is no part of it.
            while dead := {name for name in left if all(e.from_node != name or e.to_node not in left for e in edges)}:
                left -= dead
            yield f"there is a cycle through {', '.join(sorted(left))}"
            return
        left -= free


def _check_types(pipeline: PipelineDAG) -> Iterator[str]:
    """Yields file types that no parser reads, or several do, or one that cannot."""
    yield from _check_parser_types(pipeline)
    yield from _check_source_types(pipeline)


def _check_parser_types(pipeline: PipelineDAG) -> Iterator[str]:
    for node in pipeline.nodes:
        if node.file_types and node.kind != "parser":
            yield f"node {node.id}: only parsers are given file_types; a source has an option of that name"
        if node.kind == "parser" and (reads := list_types_read_by(node.plugin)):
            for file_type in node.file_types:
                if file_type not in reads:
                    yield f"node {node.id}: the parser {node.plugin} does not read {file_type}, only {', '.join(reads)}"


def _check_source_types(pipeline: PipelineDAG) -> Iterator[str]:
    sources = pipeline.list_nodes("source")
    if len(sources) != 1 or find_option_problems("source", sources[0].plugin, sources[0].options):
        return
    options = parse_options(SourceOptions, sources[0].options)
    for file_type in options.left_out:
        if file_type not in list_file_types():
            yield f"{file_type} is not a file type; there are {', '.join(list_file_types())}"
    for file_type in options.included:
        parsers = [node for node in pipeline.list_nodes("parser") if file_type in list_parser_types(pipeline, node)]
        if not parsers:
            yield f"no parser takes {file_type}: add one, or leave it out of the source's file_types"
        if len(parsers) > 1:
            yield f"{len(parsers)} parsers take {file_type} ({_format_ids(parsers)}): name the file_types of each"


def _check_vectors(pipeline: PipelineDAG) -> Iterator[str]:
    for index in pipeline.list_nodes("index"):
        for embedder in pipeline.list_nodes("embedder"):
            if index.plugin == "lexical" and embedder.plugin == "configured":
                yield f"the index {index.id} takes no vectors, and the embedder {embedder.id} makes some: use none"


def list_parser_types(pipeline: PipelineDAG, parser: PipelineNode) -> tuple[FileType, ...]:
    """The types a parser node is given: those it names, else those it reads that no other node names."""
    if parser.file_types:
        return parser.file_types
    named = {file_type for node in pipeline.list_nodes("parser") for file_type in node.file_types}
    return tuple(one for one in list_file_types() if one in list_types_read_by(parser.plugin) and one not in named)


def _get_next_stage(kind: NodeKind) -> NodeKind | None:
    place = STAGES.index(kind) + 1
    return STAGES[place] if place < len(STAGES) else None


def _format_ids(nodes: Sequence[PipelineNode]) -> str:
    return ", ".join(node.id for node in nodes)
