"""The plugins that pipelines consist of: sources, parsers, chunkers, embedders and indexes, with their options."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.models import FrozenModel, JsonObject
from agent.core.value_faults import describe_fault, describe_first_fault
from gateway.features.documents.engine.ingest.chunkers import (
    Chunker,
    FixedChunker,
    FixedOptions,
    SentenceChunker,
    SentenceOptions,
    StructureChunker,
    StructureOptions,
)
from gateway.features.documents.engine.ingest.file_types import list_file_types
from gateway.features.documents.engine.ingest.parsers.limits import ParserLimits
from gateway.features.documents.engine.ingest.parsers.registry import READERS, Reader, register_reader
from gateway.features.documents.engine.ingest.pipeline import NodeKind
from gateway.features.documents.engine.search.models import FileType

AUTO = "auto"
"""The parser for every type: the best reader of each, and the next one if it fails."""

Options = TypeVar("Options", bound=BaseModel)


class SourceOptions(FrozenModel):
    """Which files of a source are read."""

    file_types: tuple[FileType, ...] = Field(
        default_factory=list_file_types, min_length=1, description="files of other types stay out"
    )
    left_out: tuple[FileType, ...] = Field(
        default=(), description="of these, types that are left out on purpose: their files count as no failures"
    )
    exclude: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        default=(),
        max_length=100,
        description="files to leave out by extension (.png) or pattern (drafts/*): they count as no failures",
    )

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.included:
            raise ValueError("nothing is left: every one of the file_types is left out")
        return self

    @property
    def included(self) -> tuple[FileType, ...]:
        """The types whose files are read."""
        return tuple(one for one in self.file_types if one not in self.left_out)

    def excludes(self, name: str, file_type: FileType | None) -> bool:
        """Whether a file is left out, by its type or by a pattern that matches its name or path."""
        if file_type is not None and file_type not in self.included:
            return True
        path = name.lower()
        patterns = (f"*{one.lower()}" if one.startswith(".") else one.lower() for one in self.exclude)
        return any(fnmatchcase(path, one) or fnmatchcase(path.rpartition("/")[2], one) for one in patterns)


class ParserOptions(FrozenModel):
    """The limits on one file, and OCR. The bounds keep a foreign pipeline from exhausting the machine."""

    force_ocr: bool = Field(default=False, description="read every page by OCR, also those that hold text (PDF)")
    ocr_languages: str = Field(
        default="eng", max_length=100, pattern=r"^[A-Za-z_]+(\+[A-Za-z_]+)*$", description="e.g. eng+deu"
    )
    timeout_s: float = Field(default=60.0, gt=0, le=1800, description="seconds for one file; then its worker is killed")
    memory_bytes: int = Field(
        default=2**29, ge=2**26, le=2**33, description="bytes a worker may take above its own size"
    )
    file_bytes: int = Field(default=100 * 2**20, ge=1, le=2**31, description="bytes of the largest file that is opened")
    output_bytes: int = Field(
        default=64 * 2**20, ge=2**16, le=2**29, description="bytes of the largest result, as JSON"
    )

    @property
    def limits(self) -> ParserLimits:
        """The limits in the form that workers take."""
        return ParserLimits(**self.model_dump(exclude={"force_ocr"}))

    @property
    def content_options(self) -> JsonObject:
        """The options that can change what is read; limits only decide whether it is read."""
        return {"force_ocr": self.force_ocr, "ocr_languages": self.ocr_languages}


class NoOptions(FrozenModel):
    """No options."""


class PluginInfo(FrozenModel):
    """A plugin that a pipeline node can name."""

    name: str
    kind: NodeKind
    description: str
    options: JsonObject = Field(description="JSON schema of the options")
    good_for: str
    file_types: tuple[FileType, ...] = Field(default=(), description="what a parser reads")


class _Plugin(NamedTuple):
    kind: NodeKind
    options: type[BaseModel]
    description: str
    good_for: str
    file_types: tuple[FileType, ...] = ()


_CHUNKERS: Mapping[str, Callable[[JsonObject], Chunker]] = {
    "structure": lambda options: StructureChunker(StructureOptions.model_validate(options)),
    "fixed": lambda options: FixedChunker(FixedOptions.model_validate(options)),
    "sentence": lambda options: SentenceChunker(SentenceOptions.model_validate(options)),
}


def _describe_parser(reader: Reader) -> _Plugin:
    return _Plugin("parser", ParserOptions, reader.description, reader.good_for, reader.file_types)


_PLUGINS: dict[str, _Plugin] = {
    "any": _Plugin(
        "source", SourceOptions, "whatever source a request names", "collections that are fed from several places"
    ),
    "local": _Plugin(
        "source",
        SourceOptions,
        "files of this machine: a folder, or one file; hidden and ignored ones stay out",
        "folders of documents",
    ),
    "web": _Plugin(
        "source",
        SourceOptions,
        "one page, or a site from a page on; robots.txt and the site's pace are respected",
        "documentation sites, blogs, single pages",
    ),
    "gdrive": _Plugin(
        "source",
        SourceOptions,
        "a file or folder of Google Drive by its id, native documents exported",
        "shared drives of a team",
    ),
    AUTO: _Plugin(
        "parser",
        ParserOptions,
        "the best reader of each type, and the next one where it fails",
        "everything, unless one type needs options of its own",
    ),
    **{reader.name: _describe_parser(reader) for reader in READERS},
    "structure": _Plugin(
        "chunker",
        StructureOptions,
        "along headings, paragraphs, lists and whole tables; no overlap",
        "documents with headings or tables: reports, manuals, web pages, slides, sheets",
    ),
    "fixed": _Plugin(
        "chunker",
        FixedOptions,
        "windows of equal size with overlap, cut anywhere",
        "text without structure: logs, transcripts, old scans; comparisons between collections",
    ),
    "sentence": _Plugin(
        "chunker",
        SentenceOptions,
        "whole sentences up to a size, the last ones repeated",
        "running prose without headings: letters, mails, articles",
    ),
    "configured": _Plugin(
        "embedder",
        NoOptions,
        "the embedder of this gateway, where one is set; else none",
        "search by meaning besides search by words",
    ),
    "none": _Plugin("embedder", NoOptions, "no vectors", "part numbers, logs, and wherever exact words decide"),
    "hybrid": _Plugin("index", NoOptions, "words, and vectors where passages have them", "questions in people's words"),
    "lexical": _Plugin(
        "index", NoOptions, "words alone; takes no vectors", "collections that are searched by their words"
    ),
}


def register_parser(reader: Reader) -> None:
    """Adds the parser of an extension. Raises ValueError for an existing name, and as `register_reader` does."""
    if _PLUGINS.get(reader.name, _describe_parser(reader)) != _describe_parser(reader):
        raise ValueError(f"a plugin named {reader.name!r} is registered already")
    register_reader(reader)
    _PLUGINS[reader.name] = _describe_parser(reader)


def list_plugins(kind: NodeKind | None = None) -> list[PluginInfo]:
    """Every plugin, or those of one kind."""
    return [
        PluginInfo(
            name=name,
            kind=plugin.kind,
            description=plugin.description,
            options=plugin.options.model_json_schema(),
            good_for=plugin.good_for,
            file_types=list_types_read_by(name),
        )
        for name, plugin in _PLUGINS.items()
        if kind in (None, plugin.kind)
    ]


def get_plugin(name: str) -> PluginInfo:
    """One plugin. Raises `NotFoundError` that names the existing ones."""
    for info in list_plugins():
        if info.name == name:
            return info
    raise NotFoundError(f"no plugin {name!r}; there are {', '.join(_PLUGINS)}", agent_id="pipeline")


def find_option_problems(kind: NodeKind, name: str, options: JsonObject) -> list[str]:
    """Every problem of a plugin's name and options; empty if they are valid."""
    plugin = _PLUGINS.get(name)
    if plugin is None or plugin.kind != kind:
        return [f"there is no {kind} {name!r}; there are {', '.join(_names(kind))}"]
    try:
        plugin.options.model_validate(options)
    except ValidationError as error:
        return [_describe_option_problem(kind, name, fault, plugin.options) for fault in error.errors()]
    return []


def list_types_read_by(parser: str) -> tuple[FileType, ...]:
    """The types a parser reads; empty for an unknown parser."""
    if parser == AUTO:
        return list_file_types()
    plugin = _PLUGINS.get(parser)
    return plugin.file_types if plugin is not None and plugin.kind == "parser" else ()


def parse_options(model: type[Options], given: JsonObject) -> Options:
    """Parses the options of a checked node, with defaults."""
    return model.model_validate(given)


def compute_effective_options(kind: NodeKind, name: str, given: JsonObject) -> JsonObject:
    """The options of a checked node with defaults, without those that only limit a parser."""
    options = _PLUGINS[name].options.model_validate(given)
    return options.content_options if isinstance(options, ParserOptions) else options.model_dump(mode="json")


def make_chunker(name: str, options: JsonObject | None = None) -> Chunker:
    """The chunker of this name. Raises `NotFoundError`, or `BadRequestError` for invalid options."""
    make = _CHUNKERS.get(name)
    if make is None:
        raise NotFoundError(f"no chunker {name!r}; there are {', '.join(_CHUNKERS)}", agent_id="chunker")
    try:
        return make(options or {})
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "options"
        message = f"chunker {name}: {describe_first_fault(error, 'options')}"
        raise BadRequestError(message, agent_id="chunker", param=where) from error


def _names(kind: NodeKind) -> list[str]:
    return [name for name, plugin in _PLUGINS.items() if plugin.kind == kind]


def _describe_option_problem(kind: str, name: str, fault: Mapping[str, Any], model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in fault["loc"]) or "options"
    if fault["type"] == "extra_forbidden":
        field_names = ", ".join(model.model_fields) or "none"
        return f"{kind} {name} does not take the option {where!r}; it takes {field_names}"
    return f"{kind} {name}: option {where!r}: {describe_fault(fault)}"
