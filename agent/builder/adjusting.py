"""A proposed pipeline with something of it changed as a person wishes, and how it differs from its template. Pure.

Nothing here checks a pipeline; what was wished for at once is checked at once."""

from collections.abc import Iterable, Iterator, Sequence

from agent.core.models import JsonObject
from agent.knowledge.models import FileType
from agent.knowledge.pipeline import FILE_TYPES, PipelineDAG, PipelineNode
from agent.knowledge.pipeline_check import PipelineInvalidError, given_types, left_out, source_types
from agent.knowledge.plugins import (
    ParserOptions,
    SourceOptions,
    complete_options,
    options_of,
)
from agent.knowledge.templates import PipelineTemplate, from_template, list_templates

LEAST = 50
"""Characters of a passage at least: below, it holds no sentence, and whoever asks for it means another unit."""
SMALLEST, LARGEST = 100, 20_000
"""Characters of a passage that "smaller" and "larger" come to at most: beyond, somebody must say a number."""


def template_in(pipeline: PipelineDAG) -> PipelineTemplate | None:
    """The template that a pipeline was made from; None for one that was made whole."""
    return next((one for one in list_templates() if one.name == pipeline.template), None)


def adjusted(pipeline: PipelineDAG) -> JsonObject:
    """The knobs of a pipeline's template that are not as the template has them."""
    found: JsonObject = {}
    chosen = template_in(pipeline)
    for parameter in chosen.parameters if chosen is not None else ():
        node = next((one for one in pipeline.nodes if one.id == parameter.node), None)
        value = node.options.get(parameter.option) if node is not None else None
        if value is not None and value != parameter.default:
            found[parameter.name] = value
    return found


def switched(pipeline: PipelineDAG, name: str) -> PipelineDAG:
    """The pipeline of another template; what was set before stays as far as that has such a knob, and so do the types
    that are left out, and OCR of every page."""
    known = {parameter.name for one in list_templates() if one.name == name for parameter in one.parameters}
    made = from_template(name, {key: value for key, value in adjusted(pipeline).items() if key in known})
    out = [one for one in left_out(pipeline) if one in source_types(made)]
    if out:
        made = without(made, out)
    return with_ocr(made) if forces_ocr(pipeline) and "pdf" in source_types(made) else made


def with_knob(pipeline: PipelineDAG, name: str, value: int) -> PipelineDAG:
    """The pipeline with this number of its template set; the sizes, also where there is no template."""
    chosen = template_in(pipeline)
    nodes = {node.id: node for node in pipeline.nodes}
    knob = next((one for one in chosen.parameters if one.name == name), None) if chosen is not None else None
    if knob is not None and knob.node in nodes and nodes[knob.node].kind != "chunker":
        return pipeline.with_options(knob.node, **{knob.option: value})
    option = knob.option if knob is not None else {"chunk_size": "size"}.get(name, name)
    cutters = pipeline.of_kind("chunker")
    takers = [one for one in cutters if option in _options(one)]
    if not takers:
        has = ", ".join(dict.fromkeys(key for one in cutters for key in _options(one)))
        words = name.replace("_", " ")
        advice = "; `use sentences` and `use even windows` have one" if option == "overlap" else ""
        raise PipelineInvalidError([f"the chunker {cutters[0].plugin} has no {words}, only {has}{advice}"])
    if option == "size" and value < LEAST:
        raise PipelineInvalidError([f"a passage has at least {LEAST} characters, for sizes are in characters"])
    for one in takers:
        pipeline = pipeline.with_options(one.id, **{**_dragged(one, option, value), option: value})
    return pipeline


def size_of(pipeline: PipelineDAG, option: str = "size") -> int:
    """An option of the chunker, in characters; `PipelineInvalidError` where it has no such option."""
    for node in pipeline.of_kind("chunker"):
        value = _options(node).get(option)
        if isinstance(value, int):
            return value
    with_knob(pipeline, option, 0)  # says why not
    return 0


def resized(pipeline: PipelineDAG, factor: float) -> tuple[PipelineDAG, int]:
    """The pipeline with passages so much longer, and how long they are at most now."""
    size = size_of(pipeline)
    wanted = round(size * factor)
    if not SMALLEST <= wanted <= LARGEST:
        raise PipelineInvalidError(
            [f"passages have at most {size} characters now; to go below {SMALLEST} or above {LARGEST}, say "
             "`chunk size` and the number"]
        )  # fmt: skip
    return with_knob(pipeline, "chunk_size", wanted), wanted


def cut_by(pipeline: PipelineDAG, plugin: str) -> PipelineDAG:
    """The pipeline with another chunker, which takes over the sizes it has an option for."""
    for node in pipeline.of_kind("chunker"):
        if node.plugin != plugin:
            size = _options(node).get("size")
            fresh = node.model_copy(update={"plugin": plugin, "options": {}})
            pipeline = _replaced(pipeline, fresh)
            if isinstance(size, int):
                pipeline = pipeline.with_options(node.id, **{**_dragged(fresh, "size", size), "size": size})
    return pipeline


def without(pipeline: PipelineDAG, types: Iterable[FileType]) -> PipelineDAG:
    """The pipeline that leaves out the files of these types too."""
    (source,) = pipeline.of_kind("source")
    out = {*left_out(pipeline), *types}
    return pipeline.with_options(source.id, left_out=[one for one in FILE_TYPES if one in out])


def including(pipeline: PipelineDAG, types: Sequence[FileType]) -> PipelineDAG:
    """The pipeline that takes the files of these types too."""
    (source,) = pipeline.of_kind("source")
    options = options_of(SourceOptions, source.options)
    wanted: JsonObject = {}
    if set(types) - set(options.file_types):
        wanted["file_types"] = [*options.file_types, *(one for one in types if one not in options.file_types)]
    if set(types) & set(options.left_out):
        wanted["left_out"] = [one for one in options.left_out if one not in types]
    return pipeline.with_options(source.id, **wanted)


def only(pipeline: PipelineDAG, types: Sequence[FileType]) -> PipelineDAG:
    """The pipeline that takes the files of these types, and leaves out all others."""
    return without(including(pipeline, types), [one for one in FILE_TYPES if one not in types])


def forces_ocr(pipeline: PipelineDAG) -> bool:
    """Whether pages of PDFs are read by OCR although they hold text."""
    return any(options_of(ParserOptions, one.options).force_ocr for one in _pdf_parsers(pipeline))


def with_ocr(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline that reads every page of a PDF by OCR."""
    return _parsers_with(pipeline, force_ocr=True)


def without_ocr(pipeline: PipelineDAG) -> PipelineDAG:
    """The pipeline that reads only those pages by OCR that hold no text."""
    if not forces_ocr(pipeline):
        raise PipelineInvalidError(
            ["only pages that hold no text are read by OCR, and there is no other way to read those"]
        )
    for node in _pdf_parsers(pipeline):
        kept = {key: value for key, value in node.options.items() if key != "force_ocr"}
        pipeline = _replaced(pipeline, node.model_copy(update={"options": kept}))
    return pipeline


def in_languages(pipeline: PipelineDAG, codes: str) -> PipelineDAG:
    """The pipeline whose OCR expects these languages, in tesseract's words."""
    return _parsers_with(pipeline, ocr_languages=codes)


def deviations(pipeline: PipelineDAG) -> Iterator[str]:
    """What a pipeline does otherwise than its template, apart from the numbers, in words."""
    chosen = template_in(pipeline)
    plain = chosen.pipeline if chosen is not None else None
    out, taken = left_out(pipeline), source_types(pipeline)
    if out:
        few = len(taken) < len(out)
        yield f"only {', '.join(taken)} files" if few else f"without {', '.join(out)} files"
    cutters = [node.plugin for node in pipeline.of_kind("chunker")]
    if plain is not None and cutters != [node.plugin for node in plain.of_kind("chunker")]:
        yield f"cut by the chunker {', '.join(cutters)}"
    if forces_ocr(pipeline) and not (plain is not None and forces_ocr(plain)):
        yield "every page of PDFs by OCR"
    languages = _languages(pipeline)
    if languages != (_languages(plain) if plain is not None else {"eng"}):
        yield f"OCR in {', '.join(sorted(languages))}"


def _languages(pipeline: PipelineDAG) -> set[str]:
    return {options_of(ParserOptions, one.options).ocr_languages for one in _pdf_parsers(pipeline)}


def _pdf_parsers(pipeline: PipelineDAG) -> list[PipelineNode]:
    """The parsers that PDFs are given to."""
    return [node for node in pipeline.of_kind("parser") if "pdf" in given_types(pipeline, node)]


def _parsers_with(pipeline: PipelineDAG, **options: object) -> PipelineDAG:
    """The pipeline with these options where PDFs are read; `PipelineInvalidError` where it reads none."""
    if "pdf" not in source_types(pipeline):
        raise PipelineInvalidError(["OCR is for PDFs, and this pipeline takes none"])
    for node in _pdf_parsers(pipeline):
        pipeline = pipeline.with_options(node.id, **options)
    return pipeline


def _dragged(node: PipelineNode, option: str, value: int) -> JsonObject:
    """What must change with the size of passages so that the chunker still takes it: a table is no smaller than a
    passage, an overlap no larger share of it than before."""
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
    """The options of a checked chunker, with its defaults."""
    return complete_options(node.kind, node.plugin, node.options)


def _replaced(pipeline: PipelineDAG, node: PipelineNode) -> PipelineDAG:
    nodes = tuple(node if one.id == node.id else one for one in pipeline.nodes)
    return pipeline.model_copy(update={"nodes": nodes})
