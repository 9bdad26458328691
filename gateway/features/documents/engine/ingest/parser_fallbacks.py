"""Changes of a pipeline that may make a failed file readable. A dry run tries them."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.features.documents.engine.ingest.dry_run_report import FileResult
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineNode
from gateway.features.documents.engine.ingest.pipeline_check import find_route, list_parser_types
from gateway.features.documents.engine.ingest.plugins import AUTO, ParserOptions, parse_options

MAX_TIMEOUT_S = 1800.0
MAX_FILE_BYTES = 2**31
MAX_OUTPUT_BYTES = 2**29
MAX_MEMORY_BYTES = 2**33


@dataclass(frozen=True, slots=True)
class ParserFallback:
    """A changed pipeline, and the change in words."""

    description: str
    text: str
    """The changed pipeline as JSON; two fall-backs with the same text are equal."""

    @property
    def pipeline(self) -> PipelineDAG:
        """The changed pipeline."""
        return PipelineDAG.model_validate_json(self.text)


def suggest_fallbacks(pipeline: PipelineDAG, failed: FileResult, largest: int) -> Iterator[ParserFallback]:
    """Yields changes that may help a file of this type and error. `largest` is the largest failed file, in bytes."""
    if failed.file_type is None or failed.stage != "parser":
        return
    route = find_route(pipeline, failed.file_type)
    if route is None:
        return
    options = parse_options(ParserOptions, route.parser.options)
    reason = failed.details.get("reason")
    match failed.error_code:
        case "ERR_TIMEOUT" if options.timeout_s < MAX_TIMEOUT_S:
            more = min(max(60.0, 4 * options.timeout_s), MAX_TIMEOUT_S)
            yield _with_options(pipeline, route.parser, f"Give {route.parser.id} {more:g} s for a file", timeout_s=more)
        case "ERR_TOO_LARGE" if failed.size_bytes > options.file_bytes and largest <= MAX_FILE_BYTES:
            size = max(largest, options.file_bytes)
            yield _with_options(
                pipeline, route.parser, f"Let {route.parser.id} open files of {size:,} bytes", file_bytes=size
            )
        case "ERR_TOO_LARGE" if options.output_bytes < MAX_OUTPUT_BYTES:
            size = min(8 * options.output_bytes, MAX_OUTPUT_BYTES)
            yield _with_options(
                pipeline, route.parser, f"Let {route.parser.id} return {size:,} bytes", output_bytes=size
            )
        case "ERR_PARSER_CORRUPT" if reason in ("memory", "parser died") and options.memory_bytes < MAX_MEMORY_BYTES:
            size = min(4 * options.memory_bytes, MAX_MEMORY_BYTES)
            yield _with_options(
                pipeline, route.parser, f"Give {route.parser.id} {size / 2**30:g} GB of memory", memory_bytes=size
            )
    if failed.error_code in ("ERR_PARSER_EMPTY", "ERR_PARSER_CORRUPT"):
        if failed.file_type == "pdf" and not options.force_ocr and reason != "empty":
            yield _with_options(pipeline, route.parser, f"Read every page of {route.parser.id} by OCR", force_ocr=True)
        if route.parser.plugin != AUTO:
            yield _with_parser(pipeline, route.parser, AUTO)


def _with_options(pipeline: PipelineDAG, node: PipelineNode, description: str, **options: object) -> ParserFallback:
    return ParserFallback(description, pipeline.with_options(node.id, **options).model_dump_json())


def _with_parser(pipeline: PipelineDAG, node: PipelineNode, plugin: str) -> ParserFallback:
    """Uses another parser for the same types, which are listed now because it may read more."""
    changed = node.model_copy(update={"plugin": plugin, "file_types": list_parser_types(pipeline, node)})
    return ParserFallback(
        f"Read the files of {node.id} by the parser {plugin}", pipeline.with_node(changed).model_dump_json()
    )
