"""Chooses a template by rule, and describes a proposal in words. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.dry_run_report import FailureCategory
from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.ingest.pipeline import NodeKind, PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import check_pipeline, list_included_types
from gateway.features.documents.engine.ingest.plugins import list_plugins
from gateway.features.documents.engine.ingest.templates import DEFAULT_TEMPLATE, from_template, list_templates
from gateway.features.pipeline_builder.engine.pipeline_edits import describe_deviations, include
from gateway.features.pipeline_builder.engine.records import ConversationUncertainty, number_open
from gateway.features.pipeline_builder.engine.summary import format_pipeline_label

_SHEETS = frozenset((".xlsx", ".csv"))
_MAIL = frozenset((".eml", ".txt"))
_LOGS = frozenset((".log",))
MAJORITY_SHARE = 0.6
"""The share of files that decides which kind a source is."""
_KINDS: Mapping[str, str] = {
    "academic": "reports", "legal": "reports", "financial": "reports", "email": "notes", "correspondence": "notes",
    "log": "windows", "logs": "windows",
}  # fmt: skip
"""The template for a kind of document that the analysis reports."""


def choose_template(analysis: JsonObject, source_type: str) -> tuple[str, str]:
    """The template that fits the files of a source, and the reason."""
    counts = _count_extensions(analysis)
    total = sum(counts.values()) or 1
    if sum(counts[one] for one in _SHEETS) / total >= MAJORITY_SHARE:
        return "tables", "most files are sheets"
    if _is_scanned(analysis):
        return "scans", "most of the files that were tried are scans"
    if source_type == "web":
        return "website", "the source is a web site"
    for kind in _describe_characteristics(analysis, "document_types")[:1]:
        if kind in _KINDS:
            return _KINDS[kind], f"most of the files that were tried are {kind}"
    if sum(counts[one] for one in _MAIL) / total >= MAJORITY_SHARE and counts[".eml"]:
        return "notes", "most files are mails and short texts"
    if sum(counts[one] for one in _LOGS) / total >= MAJORITY_SHARE:
        return "windows", "most files are logs"
    return DEFAULT_TEMPLATE, "it reads every file type, and nothing here calls for another"


def propose_pipeline(analysis: JsonObject, source_type: str) -> tuple[PipelineDAG, str]:
    """The pipeline of the template that fits, with every file type that was found, and the reason."""
    name, why = choose_template(analysis, source_type)
    pipeline = from_template(name)
    types = {TYPES[extension] for extension in _count_extensions(analysis) if extension in TYPES}
    return check_pipeline(include(pipeline, sorted(types - set(list_included_types(pipeline))))), why


def is_number(schema: JsonObject) -> bool:
    """Whether this JSON schema describes a number."""
    return schema.get("type") in ("integer", "number")


def list_parameters(pipeline: PipelineDAG) -> Iterator[str]:
    """Yields the numeric template parameters of a pipeline with their current values: `chunk size 500`."""
    chosen = next((one for one in list_templates() if one.name == pipeline.template), None)
    options = {node.id: node.options for node in pipeline.nodes}
    for parameter in chosen.parameters if chosen is not None else ():
        value = options.get(parameter.node, {}).get(parameter.option)
        if value is not None and is_number(parameter.value_schema):
            yield f"{parameter.name.replace('_', ' ')} {value}"


def describe_proposal(
    analysis: JsonObject,
    pipeline: PipelineDAG,
    why: str,
    validation: JsonObject | None,
    uncertainties: Sequence[ConversationUncertainty],
) -> str:
    """Describes a proposal: findings, pipeline, validation, uncertainties and next steps."""
    name, numbers = format_pipeline_label(pipeline.model_dump(mode="json")), ", ".join(list_parameters(pipeline))
    details = "".join((f" with {numbers}" if numbers else "", *(f", {one}" for one in describe_deviations(pipeline))))
    reason = f", because {why}" if why else ""
    lines = [f"**Found**: {analysis.get('summary')}", "", f"**Proposed**: {name}{details}{reason}."]
    if validation is not None:
        lines += ["", f"**Validated**: {validation.get('summary')}"]
    return "\n".join([*lines, *_describe_open("Uncertain", uncertainties)])


def describe_resolved(
    resolved: Sequence[ConversationUncertainty],
    before: Sequence[ConversationUncertainty],
    after: Sequence[ConversationUncertainty],
) -> str:
    """Describes which uncertainties were resolved, and which stay open. `before` and `after` are all of the
    conversation's."""
    ids = {one.id for one in resolved}
    lines = ["**Resolved**, recorded as your decision:"]
    lines += [f"- #{number} {one.severity}: {one.message}" for number, one in number_open(before) if one.id in ids]
    return "\n".join([*lines, *_describe_open("Still uncertain", after)])


def describe_failures(validation: JsonObject | None, uncertainties: Sequence[ConversationUncertainty]) -> str:
    """Describes which files of the sample cannot be read, why, and what blocks the pipeline."""
    if validation is None:
        return "Nothing was validated yet. Type `validate`."
    categories = validation.get("failure_categories")
    lines = [_describe_category(name, one) for name, one in categories.items()] if isinstance(categories, dict) else []
    blocking = [f"- #{number} {one.message}" for number, one in number_open(uncertainties) if one.is_blocking]
    failed = ["These files of the sample cannot be read:", *lines] if lines else ["No file of the sample failed."]
    return "\n".join([*failed, *(["", "Blocking:", *blocking] if blocking else [])])


def describe_templates() -> str:
    """Lists the templates."""
    return "\n".join(f"- {one.name}: {one.description} For {', '.join(one.suggested_for)}." for one in list_templates())


def describe_plugins(kind: NodeKind | None = None) -> str:
    """Lists the plugins, or those of one kind."""
    return "\n".join(
        f"- {one.name} ({one.kind}): {one.description}. Good for: {one.good_for}." for one in list_plugins(kind)
    )


def _describe_open(title: str, uncertainties: Sequence[ConversationUncertainty]) -> Iterator[str]:
    """Yields the open uncertainties with their numbers, and the next steps."""
    numbered = number_open(uncertainties)
    if numbered:
        yield from ("", f"**{title}**:", *(f"- #{number} {one.severity}: {one.message}" for number, one in numbered))
    yield ""
    blocking = [number for number, one in numbered if one.is_blocking]
    if not blocking:
        yield "Type `apply NAME` to make the collection NAME, or `help` for the commands that change the proposal."
        return
    listed = ", ".join(f"#{one}" for one in blocking)
    yield (
        f"{listed} {'blocks' if len(blocking) == 1 else 'block'} this pipeline. Change it (`help` lists the commands), "
        f"repair the files and type `analyse`, accept it with `resolve {blocking[0]}`, or type `apply NAME anyway`."
    )


def _describe_category(name: str, data: JsonValue) -> str:
    """Describes failures of one kind: how many, what can be done, which files."""
    one = FailureCategory.model_validate(data)
    fix = f"; {one.suggested_fix}" if one.suggested_fix else ""
    more = ", ..." if one.count > len(one.examples) else ""
    return f"- {one.count} {name.replace('_', ' ')}{fix}: {', '.join(one.examples)}{more}"


def _is_scanned(analysis: JsonObject) -> bool:
    """Whether most files are scans, weighting each file type's trials by its share of the files.

    Without trials, the analysis' own quality issues decide.
    """
    kinds = analysis.get("by_extension")
    scanned, tried = 0.0, 0
    for stats in kinds.values() if isinstance(kinds, dict) else ():
        trials = stats.get("sample_results") if isinstance(stats, dict) else None
        listed = trials if isinstance(trials, list) else []
        flags = {str(one.get("file")): bool(one.get("scanned")) for one in listed if isinstance(one, dict)}
        count = stats.get("count") if isinstance(stats, dict) else 0
        if flags and isinstance(count, int):
            tried += count
            scanned += count * sum(flags.values()) / len(flags)
    if tried:
        return scanned / tried >= MAJORITY_SHARE
    return "scanned" in " ".join(_describe_characteristics(analysis, "quality_issues"))


def _count_extensions(analysis: JsonObject) -> "Counter[str]":
    kinds = analysis.get("by_extension")
    extensions: Counter[str] = Counter()
    for extension, stats in kinds.items() if isinstance(kinds, dict) else ():
        count = stats.get("count") if isinstance(stats, dict) else 0
        extensions[extension] = count if isinstance(count, int) else 0
    return extensions


def _describe_characteristics(analysis: JsonObject, field: str) -> list[str]:
    characteristics = analysis.get("content_characteristics")
    value = characteristics.get(field) if isinstance(characteristics, dict) else None
    return [str(one) for one in value] if isinstance(value, list) else []
