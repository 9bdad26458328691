"""Changes of a pipeline that may make a failed file readable. A dry run tries them."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.knowledge.dry_run_report import FileResult
from agent.knowledge.models import FileType
from agent.knowledge.pipeline import PipelineDAG, PipelineNode
from agent.knowledge.pipeline_check import given_types, problems, route, source_types
from agent.knowledge.plugins import AUTO, ParserOptions, options_of

LONGEST_S = 1800.0
LARGEST_BYTES = 2**31
LARGEST_OUTPUT = 2**29
MOST_MEMORY = 2**33


@dataclass(frozen=True, slots=True)
class Repair:
    """A pipeline that differs from the one that failed, and how, in words."""

    description: str
    text: str
    """The changed pipeline as JSON: two repairs with the same are one."""

    @property
    def pipeline(self) -> PipelineDAG:
        """The changed pipeline."""
        return PipelineDAG.model_validate_json(self.text)


def repairs(pipeline: PipelineDAG, failed: FileResult, largest: int) -> Iterator[Repair]:
    """What may help a file of the type and error of this result. `largest` is the size of the largest file that
    failed, in bytes."""
    if failed.file_type is None or failed.stage != "parser":
        return
    way = route(pipeline, failed.file_type)
    if way is None:
        yield from _taking(pipeline, failed.file_type)
        return
    options = options_of(ParserOptions, way.parser.options)
    reason = failed.details.get("reason")
    match failed.error_code:
        case "ERR_TIMEOUT" if options.timeout_s < LONGEST_S:
            more = min(max(60.0, 4 * options.timeout_s), LONGEST_S)
            yield _with(pipeline, way.parser, f"Give {way.parser.id} {more:g} s for a file", timeout_s=more)
        case "ERR_TOO_LARGE" if failed.size_bytes > options.file_bytes and largest <= LARGEST_BYTES:
            size = max(largest, options.file_bytes)
            yield _with(pipeline, way.parser, f"Let {way.parser.id} open files of {size:,} bytes", file_bytes=size)
        case "ERR_TOO_LARGE" if options.output_bytes < LARGEST_OUTPUT:
            size = min(8 * options.output_bytes, LARGEST_OUTPUT)
            yield _with(pipeline, way.parser, f"Let {way.parser.id} hand on {size:,} bytes", output_bytes=size)
        case "ERR_PARSER_CORRUPT" if reason in ("memory", "parser died") and options.memory_bytes < MOST_MEMORY:
            size = min(4 * options.memory_bytes, MOST_MEMORY)
            yield _with(pipeline, way.parser, f"Give {way.parser.id} {size / 2**30:g} GB of memory", memory_bytes=size)
    if failed.error_code in ("ERR_PARSER_EMPTY", "ERR_PARSER_CORRUPT"):
        if failed.file_type == "pdf" and not options.force_ocr and reason != "empty":
            yield _with(pipeline, way.parser, f"Read every page of {way.parser.id} by OCR", force_ocr=True)
        if way.parser.plugin != AUTO:
            yield _parsed_by(pipeline, way.parser, AUTO)


def _with(pipeline: PipelineDAG, node: PipelineNode, description: str, **options: object) -> Repair:
    return Repair(description, pipeline.with_options(node.id, **options).model_dump_json())


def _parsed_by(pipeline: PipelineDAG, node: PipelineNode, plugin: str) -> Repair:
    """Another parser for the same types, which it must be told now: it may read more."""
    changed = node.model_copy(update={"plugin": plugin, "file_types": given_types(pipeline, node)})
    nodes = tuple(changed if one.id == node.id else one for one in pipeline.nodes)
    text = pipeline.model_copy(update={"nodes": nodes}).model_dump_json()
    return Repair(f"Read the files of {node.id} by the parser {plugin}", text)


def _taking(pipeline: PipelineDAG, file_type: FileType) -> Iterator[Repair]:
    """The same pipeline with one more type, where a parser takes it."""
    (source,) = pipeline.of_kind("source")
    repaired = pipeline.with_options(source.id, file_types=[*source_types(pipeline), file_type])
    if not problems(repaired):
        yield Repair(f"Take {file_type} files too", repaired.model_dump_json())
