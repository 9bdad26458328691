"""Changes to a proposed pipeline, and a description of how it differs from its template. Pure.

Nothing here validates the result: callers combine several changes and check them together.
"""

from collections.abc import Iterator, Sequence

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.file_types import list_file_types
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineNode
from gateway.features.documents.engine.ingest.pipeline_check import (
    PipelineInvalidError,
    get_source_options,
    list_included_types,
    list_parser_types,
)
from gateway.features.documents.engine.ingest.plugins import (
    ParserOptions,
    compute_effective_options,
    find_option_problems,
    parse_options,
)
from gateway.features.documents.engine.ingest.templates import PipelineTemplate, from_template, list_templates

MIN_CHUNK_CHARS = 50
"""The smallest chunk size in characters. Below this a chunk holds no sentence, so the user means another unit."""


def find_template(pipeline: PipelineDAG) -> PipelineTemplate | None:
    """The template that a pipeline was made from, or None for one that was written in full."""
    return next((one for one in list_templates() if one.name == pipeline.template), None)


def list_changed_parameters(pipeline: PipelineDAG) -> JsonObject:
    """The parameters of a pipeline that differ from its template's defaults."""
    changed_parameters: JsonObject = {}
    chosen = find_template(pipeline)
    for parameter in chosen.parameters if chosen is not None else ():
        node = next((one for one in pipeline.nodes if one.id == parameter.node), None)
        value = node.options.get(parameter.option) if node is not None else None
        if value is not None and value != parameter.default:
            changed_parameters[parameter.name] = value
    return changed_parameters


def switch_template(pipeline: PipelineDAG, name: str) -> PipelineDAG:
    """The pipeline of another template. Parameters the new template also has, excluded files and forced OCR are
    kept."""
    known_parameter_names = {
        parameter.name for one in list_templates() if one.name == name for parameter in one.parameters
    }
    made = from_template(
        name, {key: value for key, value in list_changed_parameters(pipeline).items() if key in known_parameter_names}
    )
    out = [one for one in get_source_options(pipeline).left_out if one in list_included_types(made)]
    if out:
        made = exclude(made, out)
    return force_ocr(made) if has_forced_ocr(pipeline) and "pdf" in list_included_types(made) else made


def set_parameter(pipeline: PipelineDAG, name: str, value: int) -> PipelineDAG:
    """The pipeline with a numeric template parameter set. Chunk sizes also work without a template."""
    chosen = find_template(pipeline)
    nodes = {node.id: node for node in pipeline.nodes}
    parameter = next((one for one in chosen.parameters if one.name == name), None) if chosen is not None else None
    if parameter is not None and parameter.node in nodes and nodes[parameter.node].kind != "chunker":
        return pipeline.with_options(parameter.node, **{parameter.option: value})
    option = parameter.option if parameter is not None else {"chunk_size": "size"}.get(name, name)
    chunkers = pipeline.list_nodes("chunker")
    matching = [one for one in chunkers if option in _options(one)]
    if not matching:
        has = ", ".join(dict.fromkeys(key for one in chunkers for key in _options(one)))
        raise PipelineInvalidError([f"the chunker {chunkers[0].plugin} has no {name}, only {has}"])
    if option == "size" and value < MIN_CHUNK_CHARS:
        raise PipelineInvalidError([f"sizes are in characters, and a passage has at least {MIN_CHUNK_CHARS}"])
    for one in matching:
        pipeline = pipeline.with_options(one.id, **{**_list_dependent_options(one, option, value), option: value})
    return pipeline


def use_chunker(pipeline: PipelineDAG, plugin: str) -> PipelineDAG:
    """The pipeline with another chunker, which keeps the chunk size."""
    problems = find_option_problems("chunker", plugin, {})
    if problems:
        raise PipelineInvalidError(problems)
    for node in pipeline.list_nodes("chunker"):
        if node.plugin != plugin:
            size = _options(node).get("size")
            fresh = node.model_copy(update={"plugin": plugin, "options": {}})
            pipeline = pipeline.with_node(fresh)
            if isinstance(size, int):
                pipeline = pipeline.with_options(
                    node.id, **{**_list_dependent_options(fresh, "size", size), "size": size}
                )
    return pipeline


def exclude(pipeline: PipelineDAG, names: Sequence[str]) -> PipelineDAG:
    """The pipeline that also excludes these files: by type (`docx`), extension (`.png`) or pattern."""
    options = get_source_options(pipeline)
    return _with_excluded(pipeline, [*options.left_out, *options.exclude, *names])


def include(pipeline: PipelineDAG, names: Sequence[str]) -> PipelineDAG:
    """The pipeline that includes files of these types, and no longer excludes these extensions and patterns."""
    (source,) = pipeline.list_nodes("source")
    options = get_source_options(pipeline)
    excluded = [*options.left_out, *options.exclude]
    missing = [one for one in list_file_types() if one in names and one not in options.file_types]
    unknown = [one for one in names if one not in excluded and one not in list_file_types()]
    if unknown:
        raise PipelineInvalidError([f"{', '.join(map(repr, unknown))} is not excluded"])
    if missing:
        pipeline = pipeline.with_options(source.id, file_types=[*options.file_types, *missing])
    return _with_excluded(pipeline, [one for one in excluded if one not in names])


def has_forced_ocr(pipeline: PipelineDAG) -> bool:
    """Whether PDF pages that hold text are read by OCR as well."""
    return any(parse_options(ParserOptions, one.options).force_ocr for one in _list_pdf_parsers(pipeline))


def force_ocr(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline that reads every PDF page by OCR."""
    return _set_parser_options(pipeline, force_ocr=True)


def stop_forcing_ocr(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline that reads only PDF pages without text by OCR."""
    if not has_forced_ocr(pipeline):
        raise PipelineInvalidError(
            ["OCR is off already: it only reads pages without text, which cannot be read otherwise"]
        )
    for node in _list_pdf_parsers(pipeline):
        other_options = {key: value for key, value in node.options.items() if key != "force_ocr"}
        pipeline = pipeline.with_node(node.model_copy(update={"options": other_options}))
    return pipeline


def set_ocr_languages(pipeline: PipelineDAG, codes: str) -> PipelineDAG:
    """The pipeline whose OCR expects these languages, as tesseract codes (`eng+deu`)."""
    return _set_parser_options(pipeline, ocr_languages=codes)


def describe_deviations(pipeline: PipelineDAG) -> Iterator[str]:
    """Yields, in words, how a pipeline differs from its template apart from numeric parameters."""
    chosen = find_template(pipeline)
    original = chosen.pipeline if chosen is not None else None
    options = get_source_options(pipeline)
    if options.left_out:
        few = len(options.included) < len(options.left_out)
        yield f"only {', '.join(options.included)} files" if few else f"without {', '.join(options.left_out)} files"
    if options.exclude:
        yield f"without {', '.join(options.exclude)}"
    chunkers = [node.plugin for node in pipeline.list_nodes("chunker")]
    if original is not None and chunkers != [node.plugin for node in original.list_nodes("chunker")]:
        yield f"split by the chunker {', '.join(chunkers)}"
    if has_forced_ocr(pipeline) and not (original is not None and has_forced_ocr(original)):
        yield "every PDF page by OCR"
    languages = _list_languages(pipeline)
    if languages != (_list_languages(original) if original is not None else {"eng"}):
        yield f"OCR in {', '.join(sorted(languages))}"


def _with_excluded(pipeline: PipelineDAG, names: Sequence[str]) -> PipelineDAG:
    """The pipeline that excludes exactly these types, extensions and patterns."""
    (source,) = pipeline.list_nodes("source")
    types = [one for one in list_file_types() if one in names]
    patterns = list(dict.fromkeys(one for one in names if one not in list_file_types()))
    other_options = {key: value for key, value in source.options.items() if key not in ("left_out", "exclude")}
    options = {**other_options, **({"left_out": types} if types else {}), **({"exclude": patterns} if patterns else {})}
    return pipeline.with_node(source.model_copy(update={"options": options}))


def _list_languages(pipeline: PipelineDAG) -> set[str]:
    return {parse_options(ParserOptions, one.options).ocr_languages for one in _list_pdf_parsers(pipeline)}


def _list_pdf_parsers(pipeline: PipelineDAG) -> list[PipelineNode]:
    """The parser nodes that read PDFs."""
    return [node for node in pipeline.list_nodes("parser") if "pdf" in list_parser_types(pipeline, node)]


def _set_parser_options(pipeline: PipelineDAG, **options: object) -> PipelineDAG:
    """The pipeline with these options on its PDF parsers. Raises `PipelineInvalidError` if it reads no PDFs."""
    if "pdf" not in list_included_types(pipeline):
        raise PipelineInvalidError(["OCR is for PDFs, and this pipeline includes none"])
    for node in _list_pdf_parsers(pipeline):
        pipeline = pipeline.with_options(node.id, **options)
    return pipeline


def _list_dependent_options(node: PipelineNode, option: str, value: int) -> JsonObject:
    """The options that must change with the chunk size to keep the chunker valid.

    A table may not be smaller than a chunk, and an overlap keeps its share of the chunk.
    """
    options = _options(node)
    size, table, overlap = options.get("size"), options.get("table_size"), options.get("overlap")
    if option != "size" or not isinstance(size, int):
        return {}
    if isinstance(table, int):
        return {"table_size": max(table, value)} if "table_size" in node.options or table < value else {}
    if isinstance(overlap, int) and overlap >= value:
        return {"overlap": overlap * value // size}
    return {}


def _options(node: PipelineNode) -> JsonObject:
    """The options of a checked chunker including defaults."""
    return compute_effective_options(node.kind, node.plugin, node.options)
