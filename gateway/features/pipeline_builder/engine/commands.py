"""The commands of a pipeline conversation without a model: exact words, one command per line. Pure.

With a model this module is not used: the model understands requests in any language.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.core.errors import NotFoundError
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError, check_pipeline
from gateway.features.documents.engine.ingest.templates import list_templates
from gateway.features.pipeline_builder.engine.pipeline_edits import (
    exclude,
    force_ocr,
    include,
    set_ocr_languages,
    set_parameter,
    stop_forcing_ocr,
    switch_template,
    use_chunker,
)

USAGE: Mapping[str, str] = {
    "index": "`index SOURCE`: read the documents of a folder, a file, a web address or a registered source (`src_...`)",
    "analyse": "`analyse`: look at the files again",
    "validate": "`validate`: try the proposal on samples again",
    "template": "`template NAME`: use another template, of {templates}",
    "set": "`set NAME NUMBER`: set a parameter of the template, such as `set chunk_size 500`",
    "chunker": "`chunker NAME`: split by `structure`, `sentence` or `fixed`",
    "exclude": "`exclude KIND`: leave files out by type, extension or pattern: `exclude docx .png drafts/*`",
    "include": "`include KIND`: take files that were left out",
    "ocr": "`ocr on`, `ocr off`, `ocr eng+deu`: read every PDF page by OCR, or only pages without text; its languages",
    "resolve": "`resolve NUMBER`: accept an uncertainty by its number; `resolve all` accepts those that do not block",
    "status": "`status`: what is known, proposed and uncertain",
    "failures": "`failures`: which files cannot be read, and why",
    "templates": "`templates`: list the templates",
    "plugins": "`plugins`: list parsers, chunkers, embedders and indexes",
    "reset": "`reset`: drop all changes of the proposal",
    "apply": "`apply NAME`: make the collection NAME; `apply NAME anyway` overrides blocking uncertainties",
    "help": "`help`: this list",
}
"""Every command with its explanation. `apply` is planned as a call of its own, see `agent/planning/rules.py`."""
_WITH_ARGUMENT = frozenset({"index", "template", "set", "chunker", "exclude", "include", "ocr", "resolve"})
_NOT_HERE = frozenset({"apply"})
_ALIASES = {"analyze": "analyse"}
EDITS = frozenset({"template", "set", "chunker", "exclude", "include", "ocr"})
"""Commands that change the proposed pipeline."""
MAX_COMMANDS = 50
MAX_DIGITS = 9
"""Longer numbers are sizes of nothing; Python refuses to read those of thousands of digits."""


class Command(NamedTuple):
    """A command and the words behind it."""

    name: str
    argument: str = ""


def parse_commands(message: str) -> list[Command] | None:
    """The commands of a message, one per line, or None if any line is not a command."""
    lines = [" ".join(line.split()).strip("`").rstrip(".!?") for line in message.splitlines()]
    commands = []
    for line in filter(None, lines):
        first, _, argument = line.partition(" ")
        name = _ALIASES.get(first.lower(), first.lower())
        if name not in USAGE or name in _NOT_HERE or (name in _WITH_ARGUMENT) != bool(argument):
            return None
        commands.append(Command(name, argument.strip()))
    return commands if 0 < len(commands) <= MAX_COMMANDS else None


def describe_commands() -> str:
    """The list of commands."""
    templates = ", ".join(one.name for one in list_templates())
    return "\n".join(f"- {usage.format(templates=templates)}" for usage in USAGE.values())


def edit_pipeline(pipeline: PipelineDAG, commands: Sequence[Command]) -> PipelineDAG:
    """The pipeline after these edits, checked. Raises `PipelineInvalidError` with what cannot be done."""
    for command in commands:
        pipeline = _edit(pipeline, command)
    return check_pipeline(pipeline)


def _edit(pipeline: PipelineDAG, command: Command) -> PipelineDAG:
    words = command.argument.replace(",", " ").split()
    match command.name:
        case "template":
            return _switch_template(pipeline, command.argument.lower())
        case "set":
            if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > MAX_DIGITS:
                raise PipelineInvalidError(["`set` takes a parameter and a number: `set chunk_size 500`"])
            return set_parameter(pipeline, words[0].lower(), int(words[1]))
        case "chunker":
            return use_chunker(pipeline, command.argument.lower())
        case "exclude":
            return exclude(pipeline, words)
        case "include":
            return include(pipeline, words)
        case "ocr":
            return _set_ocr(pipeline, command.argument.lower())
    return pipeline


def _switch_template(pipeline: PipelineDAG, name: str) -> PipelineDAG:
    try:
        return switch_template(pipeline, name)
    except NotFoundError as error:
        raise PipelineInvalidError([error.message]) from error


def _set_ocr(pipeline: PipelineDAG, value: str) -> PipelineDAG:
    if value == "on":
        return force_ocr(pipeline)
    return stop_forcing_ocr(pipeline) if value == "off" else set_ocr_languages(pipeline, value)
