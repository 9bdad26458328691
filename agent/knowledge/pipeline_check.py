"""Whether a pipeline can be carried out: every reason why not, at once, and the way of each file type through it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.knowledge.models import FileType, SourceType
from agent.knowledge.pipeline import FILE_TYPES, STAGES, NodeKind, PipelineDAG, PipelineNode, Route, fingerprint
from agent.knowledge.plugins import (
    SourceOptions,
    complete_options,
    options_of,
    plugin_faults,
    readable_types,
)

MAX_TEXT = 1_000_000
"""Characters of a pipeline as JSON. The largest that can be valid has a tenth of it."""


class PipelineInvalidError(BadRequestError):
    """Raised for a pipeline that cannot be carried out; `details["problems"]` has every reason, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        shown = "; ".join(problems)
        super().__init__(f"the pipeline cannot be carried out: {shown}", agent_id="pipeline", problems=list(problems))
        self.problems = list(problems)


def read_pipeline(data: JsonObject | str) -> PipelineDAG:
    """A pipeline from its JSON, checked. Raises `PipelineInvalidError` with every reason."""
    try:
        if isinstance(data, str):
            if len(data) > MAX_TEXT:
                raise PipelineInvalidError([f"its JSON has more than {MAX_TEXT} characters"])
            data = json.loads(data)
        pipeline = PipelineDAG.model_validate(data)
    except ValidationError as error:
        raise PipelineInvalidError([_wrong(fault["loc"], fault["msg"]) for fault in error.errors()]) from error
    except json.JSONDecodeError as error:
        raise PipelineInvalidError([f"it is no JSON: {error.msg} at line {error.lineno}"]) from error
    except RecursionError as error:
        raise PipelineInvalidError(["its JSON is nested too deeply"]) from error
    return checked(pipeline)


def checked(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline, if it can be carried out. Raises `PipelineInvalidError` with every reason why not."""
    found = problems(pipeline)
    if found:
        raise PipelineInvalidError(found)
    return pipeline


def problems(pipeline: PipelineDAG) -> list[str]:
    """Every reason why a pipeline cannot be carried out; empty when it can."""
    found = [*_names(pipeline), *_counts(pipeline), *_edges(pipeline), *_cycles(pipeline)]
    for node in pipeline.nodes:
        found += [f"node {node.id}: {fault}" for fault in plugin_faults(node.kind, node.plugin, node.options)]
    return list(dict.fromkeys([*found, *_types(pipeline), *_vectors(pipeline)]))


def source_types(pipeline: PipelineDAG) -> tuple[FileType, ...]:
    """The types of files that a checked pipeline takes."""
    return _taken(pipeline).taken


def left_out(pipeline: PipelineDAG) -> tuple[FileType, ...]:
    """The types of files that a checked pipeline leaves out on purpose."""
    return _taken(pipeline).left_out


def takes(pipeline: PipelineDAG, source: SourceType) -> bool:
    """Whether a checked pipeline is for this kind of source."""
    return pipeline.of_kind("source")[0].plugin in ("any", source)


def route(pipeline: PipelineDAG, file_type: FileType) -> Route | None:
    """The way of a type through a checked pipeline; None for a type that it does not take."""
    if file_type not in source_types(pipeline):
        return None
    for parser in pipeline.of_kind("parser"):
        if file_type in given_types(pipeline, parser):
            (chunker,) = pipeline.after(parser.id)
            (embedder,) = pipeline.after(chunker.id)
            (index,) = pipeline.after(embedder.id)
            return Route(parser, chunker, embedder, index)
    return None


def route_fingerprint(way: Route) -> str:
    """What decides how a document is cut and indexed: another fingerprint, and it is read anew. Limits do not count,
    and where its type's parser reads other types as well does not either."""
    return fingerprint(*([node.plugin, complete_options(node.kind, node.plugin, node.options)] for node in way.nodes))


def _taken(pipeline: PipelineDAG) -> SourceOptions:
    (source,) = pipeline.of_kind("source")
    return options_of(SourceOptions, source.options)


def _names(pipeline: PipelineDAG) -> Iterator[str]:
    for name, count in Counter(node.id for node in pipeline.nodes).items():
        if count > 1:
            yield f"{count} nodes are named {name!r}"


def _counts(pipeline: PipelineDAG) -> Iterator[str]:
    for kind in STAGES:
        found = pipeline.of_kind(kind)
        if not found:
            yield f"there is no {kind}"
        elif len(found) > 1 and kind not in ("parser", "chunker"):
            yield f"there are {len(found)} nodes of the kind {kind} ({_ids(found)}); one is needed"


def _edges(pipeline: PipelineDAG) -> Iterator[str]:
    """Edges that lead from or to nothing, that skip a stage, that are double, and those that are missing."""
    kinds = {node.id: node.kind for node in pipeline.nodes}
    for edge, count in Counter((edge.from_node, edge.to_node) for edge in pipeline.edges).items():
        shown = f"the edge {edge[0]} -> {edge[1]}"
        if count > 1:
            yield f"{shown} is there {count} times"
        dangling = [name for name in dict.fromkeys(edge) if name not in kinds]
        for name in dangling:
            yield f"{shown} dangles: there is no node {name!r}"
        if not dangling and _next(kinds[edge[0]]) != kinds[edge[1]]:
            yield f"{shown} joins {kinds[edge[0]]} with {kinds[edge[1]]}; the order is {' -> '.join(STAGES)}"
    for node in pipeline.nodes:
        following = len([edge for edge in pipeline.edges if edge.from_node == node.id])
        if node.kind != "index" and not following:
            yield f"nothing follows the {node.kind} {node.id}: join it to a node of the kind {_next(node.kind)}"
        if following > 1 and node.kind != "source":
            yield f"{following} nodes follow the {node.kind} {node.id}; one is needed"
        if node.kind != "source" and all(edge.to_node != node.id for edge in pipeline.edges):
            yield f"nothing leads to the {node.kind} {node.id}"


def _cycles(pipeline: PipelineDAG) -> Iterator[str]:
    """Take away what nothing leads to until nothing changes: what is left goes round in circles."""
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


def _types(pipeline: PipelineDAG) -> Iterator[str]:
    """Types that no parser takes, or two, or one that cannot."""
    for node in pipeline.nodes:
        if node.file_types and node.kind != "parser":
            yield f"node {node.id}: only parsers are given file_types; a source has an option of that name"
        if node.kind == "parser" and (reads := readable_types(node.plugin)):
            for file_type in node.file_types:
                if file_type not in reads:
                    yield f"node {node.id}: the parser {node.plugin} does not read {file_type}, only {', '.join(reads)}"
    sources = pipeline.of_kind("source")
    if len(sources) != 1 or plugin_faults("source", sources[0].plugin, sources[0].options):
        return
    for file_type in options_of(SourceOptions, sources[0].options).taken:
        parsers = [node for node in pipeline.of_kind("parser") if file_type in given_types(pipeline, node)]
        if not parsers:
            yield f"no parser takes {file_type}: add one, or leave it out of the source's file_types"
        if len(parsers) > 1:
            yield f"{len(parsers)} parsers take {file_type} ({_ids(parsers)}): name the file_types of each"


def _vectors(pipeline: PipelineDAG) -> Iterator[str]:
    for index in pipeline.of_kind("index"):
        for embedder in pipeline.of_kind("embedder"):
            if index.plugin == "lexical" and embedder.plugin == "configured":
                yield f"the index {index.id} takes no vectors, and the embedder {embedder.id} makes some: use none"


def given_types(pipeline: PipelineDAG, parser: PipelineNode) -> tuple[FileType, ...]:
    """The types a parser node is given: those it names, else those it reads that no other node names."""
    if parser.file_types:
        return parser.file_types
    named = {file_type for node in pipeline.of_kind("parser") for file_type in node.file_types}
    return tuple(one for one in FILE_TYPES if one in readable_types(parser.plugin) and one not in named)


def _next(kind: NodeKind) -> NodeKind | None:
    place = STAGES.index(kind) + 1
    return STAGES[place] if place < len(STAGES) else None


def _ids(nodes: Sequence[PipelineNode]) -> str:
    return ", ".join(node.id for node in nodes)


def _wrong(place: tuple[str | int, ...], message: str) -> str:
    where = ".".join(str(part) for part in place)
    return f"{where}: {message}" if where else message
