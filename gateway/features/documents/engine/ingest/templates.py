"""Named pipeline templates with a few parameters each."""

from collections.abc import Sequence
from functools import cache

from pydantic import Field, JsonValue

from agent.core.errors import NotFoundError
from agent.core.models import FrozenModel, JsonObject
from gateway.features.documents.engine.ingest.pipeline import NodeKind, PipelineDAG, PipelineNode, build_chain
from gateway.features.documents.engine.ingest.pipeline_check import (
    PipelineInvalidError,
    check_pipeline,
    find_route,
    parse_pipeline,
    route_fingerprint,
)
from gateway.features.documents.engine.ingest.plugins import get_plugin
from gateway.features.documents.engine.search.models import FileType

DEFAULT_TEMPLATE = "documents"


class TemplateParameter(FrozenModel):
    """A parameter of a template: an option of one of its nodes. `value_schema` is the option's JSON schema."""

    name: str
    node: str
    option: str
    description: str
    default: JsonValue
    value_schema: JsonObject = Field(description="JSON schema of the values it takes")


class PipelineTemplate(FrozenModel):
    """A named pipeline, and what it is good for."""

    name: str
    title: str
    description: str
    suggested_for: tuple[str, ...]
    parameters: tuple[TemplateParameter, ...]
    pipeline: PipelineDAG


def list_templates() -> list[PipelineTemplate]:
    """Every template, the default one first."""
    return list(_load_templates().values())


def get_template(name: str) -> PipelineTemplate:
    """The template of this name. Raises `NotFoundError` that names the existing ones."""
    if name not in _load_templates():
        raise NotFoundError(f"no template {name!r}; there are {', '.join(_load_templates())}", agent_id="pipeline")
    return _load_templates()[name]


def from_template(name: str = DEFAULT_TEMPLATE, parameters: JsonObject | None = None) -> PipelineDAG:
    """A template's pipeline with its parameters set.

    Raises `NotFoundError`, and `PipelineInvalidError` for unknown parameters or invalid values.
    """
    chosen = get_template(name)
    knobs = {parameter.name: parameter for parameter in chosen.parameters}
    unknown = [key for key in parameters or {} if key not in knobs]
    if unknown:
        offered = ", ".join(knobs) or "none"
        raise PipelineInvalidError(
            [f"the template {name} has no parameter {key!r}; it has {offered}" for key in unknown]
        )
    pipeline = chosen.pipeline
    for key, value in (parameters or {}).items():
        pipeline = pipeline.with_options(knobs[key].node, **{knobs[key].option: value})
    return check_pipeline(pipeline)


def build_requested_pipeline(
    name: str | None = None, parameters: JsonObject | None = None, pipeline: JsonObject | str | None = None
) -> PipelineDAG | None:
    """The requested pipeline, by template or in full; None if none is requested.

    Raises `PipelineInvalidError`, `NotFoundError`.
    """
    if pipeline is not None:
        if name is not None or parameters:
            raise PipelineInvalidError(["a template and a whole pipeline were given; give one of them"])
        return parse_pipeline(pipeline)
    if name is None and not parameters:
        return None
    return from_template(name or DEFAULT_TEMPLATE, parameters)


@cache
def compute_default_fingerprint(file_type: FileType) -> str:
    """The fingerprint of documents that were read before pipelines were stored: that of the default
    pipeline."""
    route = find_route(_load_templates()[DEFAULT_TEMPLATE].pipeline, file_type)
    return route_fingerprint(route) if route is not None else ""


def _make_node(
    node_id: str, kind: NodeKind, name: str, given: Sequence[FileType] = (), **options: JsonValue
) -> PipelineNode:
    return PipelineNode(id=node_id, kind=kind, plugin=name, options=options, file_types=tuple(given))


def _make_parameter(name: str, node: PipelineNode, option: str, description: str) -> TemplateParameter:
    schema = get_plugin(node.plugin).options["properties"]
    assert isinstance(schema, dict)
    shape = schema[option]
    assert isinstance(shape, dict)
    return TemplateParameter(
        name=name,
        node=node.id,
        option=option,
        description=description,
        default=node.options.get(option, shape.get("default")),
        value_schema={key: value for key, value in shape.items() if key not in ("title", "description", "default")},
    )


_ANY = _make_node("source", "source", "any")
_AUTO = _make_node("parser", "parser", "auto")
_VECTORS = _make_node("embedder", "embedder", "configured")
_HYBRID = _make_node("index", "index", "hybrid")
_SITE = _make_node("source", "source", "web", file_types=["html", "md", "txt", "pdf"])
_REPORT_PDF = _make_node("pdf-parser", "parser", "liteparse", ["pdf"], timeout_s=300)
_SCANNED_PDF = _make_node("pdf-parser", "parser", "liteparse", ["pdf"], force_ocr=True, timeout_s=900)
_PROSE = _make_node("chunker", "chunker", "structure", size=900, table_size=1800)
_LONG = _make_node("chunker", "chunker", "structure", size=1600, table_size=3200)
_PAGE = _make_node("chunker", "chunker", "structure", size=1200, table_size=2400)
_ROWS = _make_node("chunker", "chunker", "structure", size=600, table_size=1200)
_SHEETS = _make_node("source", "source", "any", file_types=["xlsx", "csv"])
_WINDOWS = _make_node("chunker", "chunker", "fixed", size=900, overlap=150)
_EVEN = _make_node("chunker", "chunker", "fixed", size=900, overlap=120)
_SENTENCES = _make_node("chunker", "chunker", "sentence", size=700, overlap=100)


def _make_template(
    name: str,
    title: str,
    description: str,
    suggested_for: tuple[str, ...],
    nodes: Sequence[PipelineNode],
    parameters: Sequence[TemplateParameter],
) -> PipelineTemplate:
    exclude = _make_parameter("exclude", nodes[0], "exclude", _EXCLUDE)
    return PipelineTemplate(
        name=name,
        title=title,
        description=description,
        suggested_for=suggested_for,
        parameters=(*parameters, exclude),
        pipeline=build_chain(nodes, template=name),
    )


_SIZE = "characters of a passage at most"
_TABLE = "characters of a table that stays whole"
_EXCLUDE = "files to leave out, by extension (.png) or pattern (drafts/*)"


@cache
def _load_templates() -> dict[str, PipelineTemplate]:
    """The templates by name. Built on first use, because it reads the schemas of all plugins."""
    made = (
        _make_template(
            DEFAULT_TEMPLATE,
            "General documents",
            "Every type, cut along its own structure. The pipeline of collections that name none.",
            ("mixed folders", "handbooks and policies", "office files", "not sure"),
            (_ANY, _AUTO, _PROSE, _VECTORS, _HYBRID),
            (
                _make_parameter("chunk_size", _PROSE, "size", _SIZE),
                _make_parameter("table_size", _PROSE, "table_size", _TABLE),
                _make_parameter(
                    "ocr_languages", _AUTO, "ocr_languages", "languages of scanned pages, in tesseract's words"
                ),
            ),
        ),
        _make_template(
            "reports",
            "Long reports and papers",
            "Longer passages that keep an argument together, larger tables whole, more time for large PDFs.",
            ("annual reports", "scientific papers", "theses and books", "contracts"),
            (_ANY, _REPORT_PDF, _AUTO, _LONG, _VECTORS, _HYBRID),
            (
                _make_parameter("chunk_size", _LONG, "size", _SIZE),
                _make_parameter("table_size", _LONG, "table_size", _TABLE),
                _make_parameter("timeout_s", _REPORT_PDF, "timeout_s", "seconds for one PDF"),
            ),
        ),
        _make_template(
            "website",
            "Web site",
            "Pages and the PDFs they link to, cut at their headings.",
            ("documentation sites", "blogs", "intranets", "single pages"),
            (_SITE, _AUTO, _PAGE, _VECTORS, _HYBRID),
            (
                _make_parameter("chunk_size", _PAGE, "size", _SIZE),
                _make_parameter("file_types", _SITE, "file_types", "which of what the site offers is taken"),
            ),
        ),
        _make_template(
            "tables",
            "Tables and spreadsheets",
            "Sheets and CSV only, cut between rows into small pieces that keep their header.",
            ("spreadsheets", "price lists", "exports of other programs", "measurements"),
            (_SHEETS, _AUTO, _ROWS, _VECTORS, _HYBRID),
            (
                _make_parameter("rows_size", _ROWS, "table_size", "characters of rows that stay together"),
                _make_parameter("file_bytes", _AUTO, "file_bytes", "bytes of the largest file that is opened"),
            ),
        ),
        _make_template(
            "scans",
            "Scanned documents",
            "Every page of a PDF by OCR, whatever text it holds; windows with overlap, for OCR finds no headings.",
            ("scanned letters and contracts", "old archives", "PDFs whose text comes out garbled"),
            (_ANY, _SCANNED_PDF, _AUTO, _WINDOWS, _VECTORS, _HYBRID),
            (
                _make_parameter(
                    "ocr_languages", _SCANNED_PDF, "ocr_languages", "languages of the pages, in tesseract's words"
                ),
                _make_parameter("chunk_size", _WINDOWS, "size", _SIZE),
                _make_parameter("overlap", _WINDOWS, "overlap", "characters that a passage shares with the one before"),
                _make_parameter("timeout_s", _SCANNED_PDF, "timeout_s", "seconds for one PDF"),
            ),
        ),
        _make_template(
            "notes",
            "Short notes and mail",
            "Whole sentences, a few at a time, so that a short note stays one passage.",
            ("mails", "meeting notes", "chat transcripts", "letters"),
            (_ANY, _AUTO, _SENTENCES, _VECTORS, _HYBRID),
            (
                _make_parameter("chunk_size", _SENTENCES, "size", _SIZE),
                _make_parameter("overlap", _SENTENCES, "overlap", "characters of whole sentences repeated"),
            ),
        ),
        _make_template(
            "windows",
            "Even windows",
            "Windows of 900 characters with 120 of overlap, cut anywhere: the same for every text.",
            ("logs", "comparisons with other systems", "text without structure"),
            (_ANY, _AUTO, _EVEN, _VECTORS, _HYBRID),
            (
                _make_parameter("chunk_size", _EVEN, "size", _SIZE),
                _make_parameter("overlap", _EVEN, "overlap", "characters that a passage shares with the one before"),
            ),
        ),
    )
    return {one.name: one for one in made}
