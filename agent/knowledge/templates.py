"""Pipelines to begin with: named, described, and with a few knobs each."""

from collections.abc import Sequence
from functools import cache

from pydantic import Field, JsonValue

from agent.core.errors import NotFoundError
from agent.core.models import Frozen, JsonObject
from agent.knowledge.models import FileType
from agent.knowledge.pipeline import NodeKind, PipelineDAG, PipelineNode, chain
from agent.knowledge.pipeline_check import PipelineInvalidError, checked, read_pipeline, route, route_fingerprint
from agent.knowledge.plugins import plugin

DEFAULT_TEMPLATE = "documents"


class TemplateParameter(Frozen):
    """A knob of a template: an option of one of its nodes. `schema` is that option's JSON schema."""

    name: str
    node: str
    option: str
    description: str
    default: JsonValue
    value_schema: JsonObject = Field(description="JSON schema of the values it takes")


class PipelineTemplate(Frozen):
    """A pipeline with a name, and what it is good for."""

    name: str
    title: str
    description: str
    suggested_for: tuple[str, ...]
    parameters: tuple[TemplateParameter, ...]
    pipeline: PipelineDAG


def list_templates() -> list[PipelineTemplate]:
    """Every template, the default one first."""
    return list(_templates().values())


def template(name: str) -> PipelineTemplate:
    """The template of this name. Raises `NotFoundError` naming those there are."""
    if name not in _templates():
        raise NotFoundError(f"no template {name!r}; there are {', '.join(_templates())}", agent_id="pipeline")
    return _templates()[name]


def from_template(name: str = DEFAULT_TEMPLATE, parameters: JsonObject | None = None) -> PipelineDAG:
    """The pipeline of a template with its knobs set. Raises `NotFoundError`, and `PipelineInvalidError` for knobs it
    does not have or values they do not take."""
    chosen = template(name)
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
    return checked(pipeline)


def chosen_pipeline(
    name: str | None = None, parameters: JsonObject | None = None, pipeline: JsonObject | str | None = None
) -> PipelineDAG | None:
    """The pipeline that is asked for, by a template or whole; None when nothing is. Raises `PipelineInvalidError`,
    `NotFoundError`."""
    if pipeline is not None:
        if name is not None or parameters:
            raise PipelineInvalidError(["a template and a whole pipeline were given; give one of them"])
        return read_pipeline(pipeline)
    if name is None and not parameters:
        return None
    return from_template(name or DEFAULT_TEMPLATE, parameters)


@cache
def default_fingerprint(file_type: FileType) -> str:
    """How documents were read before pipelines were kept: by the default one, unchanged."""
    way = route(_templates()[DEFAULT_TEMPLATE].pipeline, file_type)
    return route_fingerprint(way) if way is not None else ""


def _node(
    node_id: str, kind: NodeKind, name: str, given: Sequence[FileType] = (), **options: JsonValue
) -> PipelineNode:
    return PipelineNode(id=node_id, kind=kind, plugin=name, options=options, file_types=tuple(given))


def _knob(name: str, node: PipelineNode, option: str, description: str) -> TemplateParameter:
    schema = plugin(node.plugin).options["properties"]
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


_ANY = _node("source", "source", "any")
_AUTO = _node("parser", "parser", "auto")
_VECTORS = _node("embedder", "embedder", "configured")
_HYBRID = _node("index", "index", "hybrid")
_SITE = _node("source", "source", "web", file_types=["html", "md", "txt", "pdf"])
_REPORT_PDF = _node("pdf-parser", "parser", "liteparse", ["pdf"], timeout_s=300)
_SCANNED_PDF = _node("pdf-parser", "parser", "liteparse", ["pdf"], force_ocr=True, timeout_s=900)
_PROSE = _node("chunker", "chunker", "structure", size=900, table_size=1800)
_LONG = _node("chunker", "chunker", "structure", size=1600, table_size=3200)
_PAGE = _node("chunker", "chunker", "structure", size=1200, table_size=2400)
_ROWS = _node("chunker", "chunker", "structure", size=600, table_size=1200)
_SHEETS = _node("source", "source", "any", file_types=["xlsx", "csv"])
_WINDOWS = _node("chunker", "chunker", "fixed", size=900, overlap=150)
_EVEN = _node("chunker", "chunker", "fixed", size=900, overlap=120)
_SENTENCES = _node("chunker", "chunker", "sentence", size=700, overlap=100)


def _make(
    name: str,
    title: str,
    description: str,
    suggested_for: tuple[str, ...],
    nodes: Sequence[PipelineNode],
    parameters: Sequence[TemplateParameter],
) -> PipelineTemplate:
    return PipelineTemplate(
        name=name,
        title=title,
        description=description,
        suggested_for=suggested_for,
        parameters=tuple(parameters),
        pipeline=chain(nodes, template=name),
    )


_SIZE = "characters of a passage at most"
_TABLE = "characters of a table that stays whole"


@cache
def _templates() -> dict[str, PipelineTemplate]:
    """The templates by name. Made when somebody asks: the schemas of all plugins are read for it."""
    made = (
        _make(
            DEFAULT_TEMPLATE,
            "General documents",
            "Every type, cut along its own structure. The pipeline of collections that name none.",
            ("mixed folders", "handbooks and policies", "office files", "not sure"),
            (_ANY, _AUTO, _PROSE, _VECTORS, _HYBRID),
            (
                _knob("chunk_size", _PROSE, "size", _SIZE),
                _knob("table_size", _PROSE, "table_size", _TABLE),
                _knob("ocr_languages", _AUTO, "ocr_languages", "languages of scanned pages, in tesseract's words"),
            ),
        ),
        _make(
            "reports",
            "Long reports and papers",
            "Longer passages that keep an argument together, larger tables whole, more time for large PDFs.",
            ("annual reports", "scientific papers", "theses and books", "contracts"),
            (_ANY, _REPORT_PDF, _AUTO, _LONG, _VECTORS, _HYBRID),
            (
                _knob("chunk_size", _LONG, "size", _SIZE),
                _knob("table_size", _LONG, "table_size", _TABLE),
                _knob("timeout_s", _REPORT_PDF, "timeout_s", "seconds for one PDF"),
            ),
        ),
        _make(
            "website",
            "Web site",
            "Pages and the PDFs they link to, cut at their headings.",
            ("documentation sites", "blogs", "intranets", "single pages"),
            (_SITE, _AUTO, _PAGE, _VECTORS, _HYBRID),
            (
                _knob("chunk_size", _PAGE, "size", _SIZE),
                _knob("file_types", _SITE, "file_types", "which of what the site offers is taken"),
            ),
        ),
        _make(
            "tables",
            "Tables and spreadsheets",
            "Sheets and CSV only, cut between rows into small pieces that keep their header.",
            ("spreadsheets", "price lists", "exports of other programs", "measurements"),
            (_SHEETS, _AUTO, _ROWS, _VECTORS, _HYBRID),
            (
                _knob("rows_size", _ROWS, "table_size", "characters of rows that stay together"),
                _knob("file_bytes", _AUTO, "file_bytes", "bytes of the largest file that is opened"),
            ),
        ),
        _make(
            "scans",
            "Scanned documents",
            "Every page of a PDF by OCR, whatever text it holds; windows with overlap, for OCR finds no headings.",
            ("scanned letters and contracts", "old archives", "PDFs whose text comes out garbled"),
            (_ANY, _SCANNED_PDF, _AUTO, _WINDOWS, _VECTORS, _HYBRID),
            (
                _knob("ocr_languages", _SCANNED_PDF, "ocr_languages", "languages of the pages, in tesseract's words"),
                _knob("chunk_size", _WINDOWS, "size", _SIZE),
                _knob("overlap", _WINDOWS, "overlap", "characters that a passage shares with the one before"),
                _knob("timeout_s", _SCANNED_PDF, "timeout_s", "seconds for one PDF"),
            ),
        ),
        _make(
            "notes",
            "Short notes and mail",
            "Whole sentences, a few at a time, so that a short note stays one passage.",
            ("mails", "meeting notes", "chat transcripts", "letters"),
            (_ANY, _AUTO, _SENTENCES, _VECTORS, _HYBRID),
            (
                _knob("chunk_size", _SENTENCES, "size", _SIZE),
                _knob("overlap", _SENTENCES, "overlap", "characters of whole sentences repeated"),
            ),
        ),
        _make(
            "windows",
            "Even windows",
            "Windows of 900 characters with 120 of overlap, cut anywhere: the same for every text.",
            ("logs", "comparisons with other systems", "text without structure"),
            (_ANY, _AUTO, _EVEN, _VECTORS, _HYBRID),
            (
                _knob("chunk_size", _EVEN, "size", _SIZE),
                _knob("overlap", _EVEN, "overlap", "characters that a passage shares with the one before"),
            ),
        ),
    )
    return {one.name: one for one in made}
