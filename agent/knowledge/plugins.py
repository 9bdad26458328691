"""What there is to read and to cut documents with, described for people and planners, and chunkers by name."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError

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


class PluginInfo(Frozen):
    """A parser or chunker that can be chosen by name."""

    name: str
    kind: Literal["parser", "chunker"]
    description: str
    options: JsonObject = Field(description="JSON schema of the options")
    good_for: str
    file_types: tuple[FileType, ...] = Field(default=(), description="what a parser reads")


class _Plugin(NamedTuple):
    options: type[BaseModel]
    make: Callable[[JsonObject], Chunker]
    description: str
    good_for: str


_CHUNKERS: dict[str, _Plugin] = {
    "structure": _Plugin(
        StructureOptions,
        lambda options: StructureChunker(StructureOptions.model_validate(options)),
        "along headings, paragraphs, lists and whole tables; no overlap",
        "documents with headings or tables: reports, manuals, web pages, slides, sheets",
    ),
    "fixed": _Plugin(
        FixedOptions,
        lambda options: FixedChunker(FixedOptions.model_validate(options)),
        "windows of equal size with overlap, cut anywhere",
        "text without structure: logs, transcripts, old scans; comparisons between collections",
    ),
    "sentence": _Plugin(
        SentenceOptions,
        lambda options: SentenceChunker(SentenceOptions.model_validate(options)),
        "whole sentences up to a size, the last ones repeated",
        "running prose without headings: letters, mails, articles",
    ),
}


def plugins() -> list[PluginInfo]:
    """Every parser and every chunker."""
    parsers = [
        PluginInfo(
            name=reader.name,
            kind="parser",
            description=reader.description,
            options=ParserLimits.model_json_schema(),
            good_for=reader.good_for,
            file_types=reader.file_types,
        )
        for reader in READERS
    ]
    chunkers = [
        PluginInfo(
            name=name,
            kind="chunker",
            description=plugin.description,
            options=plugin.options.model_json_schema(),
            good_for=plugin.good_for,
        )
        for name, plugin in _CHUNKERS.items()
    ]
    return parsers + chunkers


def chunker(name: str, options: JsonObject | None = None) -> Chunker:
    """The chunker of this name. Raises `NotFoundError` for another, `BadRequestError` for options it does not take."""
    plugin = _CHUNKERS.get(name)
    if plugin is None:
        raise NotFoundError(f"no chunker {name!r}; there are {', '.join(_CHUNKERS)}", agent_id="chunker")
    try:
        return plugin.make(options or {})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "options"
        raise BadRequestError(f"chunker {name}: {where}: {problem['msg']}", agent_id="chunker", param=where) from error
