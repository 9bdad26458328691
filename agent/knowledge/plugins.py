"""What pipelines are made of: sources, parsers, chunkers, embedders and indexes by name, described for people and
planners, with the options each takes."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.models import Frozen, JsonObject
from agent.knowledge.chunkers import (
    Chunker,
    FixedChunker,
    FixedOptions,
    SentenceChunker,
    SentenceOptions,
    StructureChunker,
    StructureOptions,
)
from agent.knowledge.models import FileType
from agent.knowledge.parsers.limits import ParserLimits
from agent.knowledge.parsers.registry import READERS
from agent.knowledge.pipeline import FILE_TYPES, NodeKind

AUTO = "auto"
"""The parser that takes every type: the best reader of each, and the next where it fails."""

Options = TypeVar("Options", bound=BaseModel)


class SourceOptions(Frozen):
    """What is taken from a source."""

    file_types: tuple[FileType, ...] = Field(
        default=FILE_TYPES, min_length=1, description="files of other types stay out"
    )
    left_out: tuple[FileType, ...] = Field(
        default=(), description="of these, types that are left out on purpose: their files count as no failures"
    )

    @model_validator(mode="after")
    def _something_is_taken(self) -> Self:
        if not self.taken:
            raise ValueError("nothing is left: every one of the file_types is left out")
        return self

    @property
    def taken(self) -> tuple[FileType, ...]:
        """The types whose files are read."""
        return tuple(one for one in self.file_types if one not in self.left_out)


class ParserOptions(Frozen):
    """What one file may cost, and how pictures of text are read. The bounds keep a pipeline from another hand from
    taking the machine."""

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
        """As the workers take them."""
        return ParserLimits(**self.model_dump(exclude={"force_ocr"}))

    @property
    def shaping(self) -> JsonObject:
        """The options that can change what is read; the limits only decide whether it is."""
        return {"force_ocr": self.force_ocr, "ocr_languages": self.ocr_languages}


class NoOptions(Frozen):
    """Nothing to choose."""


class PluginInfo(Frozen):
    """Something that a node of a pipeline can name."""

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
        FILE_TYPES,
    ),
    **{
        reader.name: _Plugin("parser", ParserOptions, reader.description, reader.good_for, reader.file_types)
        for reader in READERS
    },
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


def plugins(kind: NodeKind | None = None) -> list[PluginInfo]:
    """Every plugin, or those of one kind."""
    return [
        PluginInfo(
            name=name,
            kind=plugin.kind,
            description=plugin.description,
            options=plugin.options.model_json_schema(),
            good_for=plugin.good_for,
            file_types=plugin.file_types,
        )
        for name, plugin in _PLUGINS.items()
        if kind in (None, plugin.kind)
    ]


def plugin(name: str) -> PluginInfo:
    """One plugin. Raises `NotFoundError` naming those there are."""
    for info in plugins():
        if info.name == name:
            return info
    raise NotFoundError(f"no plugin {name!r}; there are {', '.join(_PLUGINS)}", agent_id="pipeline")


def plugin_faults(kind: NodeKind, name: str, options: JsonObject) -> list[str]:
    """Everything that is wrong with a plugin's name and options; empty when they fit."""
    known = _PLUGINS.get(name)
    if known is None or known.kind != kind:
        return [f"there is no {kind} {name!r}; there are {', '.join(_names(kind))}"]
    try:
        known.options.model_validate(options)
    except ValidationError as error:
        return [_fault(kind, name, fault["loc"], fault["msg"], known.options) for fault in error.errors()]
    return []


def readable_types(parser: str) -> tuple[FileType, ...]:
    """The types a parser reads; none for an unknown one."""
    known = _PLUGINS.get(parser)
    return known.file_types if known is not None and known.kind == "parser" else ()


def options_of(model: type[Options], given: JsonObject) -> Options:
    """Options of a node that was checked, with their defaults."""
    return model.model_validate(given)


def complete_options(kind: NodeKind, name: str, given: JsonObject) -> JsonObject:
    """The options of a checked node with the defaults filled in; those that only limit a parser left out."""
    options = _PLUGINS[name].options.model_validate(given)
    return options.shaping if isinstance(options, ParserOptions) else options.model_dump(mode="json")


def chunker(name: str, options: JsonObject | None = None) -> Chunker:
    """The chunker of this name. Raises `NotFoundError` for another, `BadRequestError` for options it does not take."""
    make = _CHUNKERS.get(name)
    if make is None:
        raise NotFoundError(f"no chunker {name!r}; there are {', '.join(_CHUNKERS)}", agent_id="chunker")
    try:
        return make(options or {})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "options"
        raise BadRequestError(f"chunker {name}: {where}: {problem['msg']}", agent_id="chunker", param=where) from error


def _names(kind: NodeKind) -> list[str]:
    return [name for name, plugin in _PLUGINS.items() if plugin.kind == kind]


def _fault(kind: str, name: str, place: tuple[str | int, ...], message: str, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in place) or "options"
    if message == "Extra inputs are not permitted":
        taken = ", ".join(model.model_fields) or "none"
        return f"{kind} {name} does not take the option {where!r}; it takes {taken}"
    return f"{kind} {name}: option {where!r}: {message.removeprefix('Value error, ')}"
