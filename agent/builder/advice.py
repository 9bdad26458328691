"""What rules can do of a model's part: which template fits a source, and how a proposal is told. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent.builder.acceptance import numbered
from agent.builder.questions import what_blocks
from agent.builder.records import Doubt
from agent.builder.summary import template_of
from agent.core.models import JsonObject
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.templates import DEFAULT_TEMPLATE, PipelineTemplate, list_templates

_SHEETS = frozenset((".xlsx", ".csv"))
_MAIL = frozenset((".eml", ".txt"))
_LOGS = frozenset((".log",))
MOSTLY = 0.6
"""A share of the files that decides what a source is made of."""
_NEGATED = re.compile(r"(?:\b(?:not|never|no|without)\b|n['\u2019]t\b)[^.,;!?]*$", re.IGNORECASE)
_DOCUMENTS: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(r"\b(?:papers?|reports?|theses|thesis|books?|articles?|contracts?|research)\b", re.IGNORECASE),
        "reports",
    ),
    (re.compile(r"\b(?:scans?|scanned|ocr|archives?)\b", re.IGNORECASE), "scans"),
    (re.compile(r"\b(?:spreadsheets?|tables?|csv|excel|price lists?)\b", re.IGNORECASE), "tables"),
    (re.compile(r"\b(?:mails?|e-?mails?|notes|chats?|letters?|minutes)\b", re.IGNORECASE), "notes"),
    (re.compile(r"\b(?:logs?|even windows)\b", re.IGNORECASE), "windows"),
)
"""What people call their documents, and the template for it; the first that fits."""
_KINDS: Mapping[str, str] = {
    "academic": "reports", "legal": "reports", "financial": "reports", "email": "notes", "correspondence": "notes",
    "log": "windows", "logs": "windows",
}  # fmt: skip
"""What the analysis calls them."""


def fitting(analysis: JsonObject, request: str, source_type: str) -> tuple[str, str]:
    """The template that fits, and why: one that the user names, what the files are, what the user calls them."""
    named = named_template(request)
    if named is not None:
        return named, "you named it"
    counts = _counts(analysis)
    total = sum(counts.values()) or 1
    if sum(counts[one] for one in _SHEETS) / total >= MOSTLY:
        return "tables", "most files are sheets"
    if _is_scanned(analysis):
        return "scans", "most files that were looked at hold pictures of text"
    if source_type == "web":
        return "website", "the source is a web site"
    said = next(((template, found[0]) for pattern, template in _DOCUMENTS if (found := pattern.search(request))), None)
    if said is not None:
        return said[0], f"you speak of {said[1].lower()}"
    for kind in _listed(analysis, "document_types")[:1]:
        if kind in _KINDS:
            return _KINDS[kind], f"most of what was looked at is {kind}"
    if sum(counts[one] for one in _MAIL) / total >= MOSTLY and counts[".eml"]:
        return "notes", "most files are mails and short texts"
    if sum(counts[one] for one in _LOGS) / total >= MOSTLY:
        return "windows", "most files are logs"
    return DEFAULT_TEMPLATE, "it reads files of every kind, and nothing here asks for another"


def named_template(request: str) -> str | None:
    """The template that the request names as one; None where it names none that there is, or says not to take it."""
    names = "|".join(re.escape(one.name) for one in list_templates())
    named = re.search(rf"\btemplate\s+[\"'`]?({names})\b|\b({names})[\"'`]?\s+template\b", request, re.IGNORECASE)
    if named is None or _NEGATED.search(request[: named.start()]):
        return None
    return (named[1] or named[2]).lower()


def knobs(template: PipelineTemplate, request: str) -> JsonObject:
    """The whole-number parameters of a template that the request sets: `chunk size 500`."""
    found: JsonObject = {}
    for parameter in template.parameters:
        words = parameter.name.replace("_", r"[ _-]")
        said = re.search(rf"\b{words}\b\D{{0,12}}(\d{{1,9}})\b", request, re.IGNORECASE)
        if said is not None and is_number(parameter.value_schema):
            found[parameter.name] = int(said[1])
    return found


def is_number(schema: JsonObject) -> bool:
    """Whether values of this JSON schema are numbers."""
    return schema.get("type") in ("integer", "number")


def settings_of(pipeline: PipelineDAG) -> Iterator[str]:
    """The numbers that a pipeline's template lets one set, as they are now: `chunk size 500`."""
    chosen = next((one for one in list_templates() if one.name == pipeline.template), None)
    options = {node.id: node.options for node in pipeline.nodes}
    for parameter in chosen.parameters if chosen is not None else ():
        value = options.get(parameter.node, {}).get(parameter.option)
        if value is not None and is_number(parameter.value_schema):
            yield f"{parameter.name.replace('_', ' ')} {value}"


def proposal(
    analysis: JsonObject,
    pipeline: PipelineDAG,
    why: str,
    validation: JsonObject | None,
    doubts: Sequence[Doubt],
    *,
    deviations: Sequence[str] = (),
    named: str = "",
) -> str:
    """What was found, what is proposed, what it does otherwise than its template, what the validation says, what is
    doubtful, and how it goes on; `named` is what the user calls the collection."""
    name, numbers = template_of(pipeline.model_dump(mode="json")), ", ".join(settings_of(pipeline))
    with_numbers = "".join((f" with {numbers}" if numbers else "", *(f", {one}" for one in deviations)))
    reason = f", because {why}" if why else ", as before"
    lines = [f"**Found**: {analysis.get('summary')}", "", f"**Proposed**: {name}{with_numbers}{reason}."]
    if validation is not None:
        lines += ["", f"**Validated**: {validation.get('summary')}"]
    return "\n".join([*lines, *_doubtful("Doubtful", doubts, named)])


def settled_told(settled: Sequence[Doubt], before: Sequence[Doubt], after: Sequence[Doubt], *, named: str = "") -> str:
    """That a person's word has settled these doubts, and what is doubtful still. `before` and `after` are all doubts of
    the conversation."""
    ids = {one.id for one in settled}
    lines = ["**Settled**, and written down as your word:"]
    lines += [f"- #{number} {one.severity}: {one.message}" for number, one in numbered(before) if one.id in ids]
    return "\n".join([*lines, *_doubtful("Still doubtful", after, named)])


def _doubtful(title: str, doubts: Sequence[Doubt], named: str) -> Iterator[str]:
    """The open doubts with the numbers they are called by, and how it goes on."""
    lines = [f"- #{number} {one.severity}: {one.message}" for number, one in numbered(doubts)]
    if lines:
        yield from ("", f"**{title}**:", *lines)
    yield ""
    name = named or "NAME"
    yield what_blocks(doubts, named) or (
        f"Say `apply {name}` to make the collection {name}, or what to change (`make the chunks smaller`)."
    )


def _is_scanned(analysis: JsonObject) -> bool:
    """Whether pictures of text are what a source is made of: most of the files tried, each kind by its share of all.
    Where nobody tried any, the word of whoever looked stands."""
    kinds = analysis.get("by_extension")
    scanned, tried = 0.0, 0
    for stats in kinds.values() if isinstance(kinds, dict) else ():
        trials = stats.get("sample_results") if isinstance(stats, dict) else None
        listed = trials if isinstance(trials, list) else []
        found = {str(one.get("file")): bool(one.get("scanned")) for one in listed if isinstance(one, dict)}
        count = stats.get("count") if isinstance(stats, dict) else 0
        if found and isinstance(count, int):
            tried += count
            scanned += count * sum(found.values()) / len(found)
    if tried:
        return scanned / tried >= MOSTLY
    return "scanned" in " ".join(_listed(analysis, "quality_issues"))


def _counts(analysis: JsonObject) -> "Counter[str]":
    kinds = analysis.get("by_extension")
    found: Counter[str] = Counter()
    for extension, stats in kinds.items() if isinstance(kinds, dict) else ():
        count = stats.get("count") if isinstance(stats, dict) else 0
        found[extension] = count if isinstance(count, int) else 0
    return found


def _listed(analysis: JsonObject, field: str) -> list[str]:
    characteristics = analysis.get("content_characteristics")
    value = characteristics.get(field) if isinstance(characteristics, dict) else None
    return [str(one) for one in value] if isinstance(value, list) else []
