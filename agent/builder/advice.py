"""What rules can do of a model's part: which template fits a source, and how a proposal is told. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from agent.builder.records import Doubt
from agent.builder.summary import template_of
from agent.core.models import JsonObject
from agent.knowledge.pipeline import NodeKind
from agent.knowledge.plugins import PluginInfo, plugins
from agent.knowledge.templates import DEFAULT_TEMPLATE, PipelineTemplate, list_templates

_SHEETS = frozenset((".xlsx", ".csv"))
_MAIL = frozenset((".eml", ".txt"))
_LOGS = frozenset((".log",))
MOSTLY = 0.6
"""A share of the files that decides what a source is made of."""
_ASKS = re.compile(r"\b(?:what|which|list|show|are there|available|exist)\b", re.IGNORECASE)
_ABOUT: Mapping[str, NodeKind | None] = {
    "chunker": "chunker", "parser": "parser", "embedder": "embedder", "index": "index", "source type": "source",
    "plugin": None,
}  # fmt: skip
_TEMPLATES = re.compile(r"\btemplates?\b", re.IGNORECASE)
_STATE = re.compile(
    r"^\s*(?:show|what is|what's|status|state)\b.{0,40}\b(?:pipeline|status|state)?\s*\??\s*$", re.IGNORECASE
)
_AGAIN = re.compile(r"\banaly[sz]e\b.{0,40}\b(?:again|anew)\b|\bre-?analy[sz]e\b", re.IGNORECASE)
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


def wants_again(request: str) -> bool:
    """Whether the source is to be analysed although it was."""
    return _AGAIN.search(request) is not None


def plain_answer(request: str) -> str | None:
    """The answer to a question about what pipelines are made of; None for everything else. No source is looked at."""
    if not _ASKS.search(request):
        return None
    if _TEMPLATES.search(request):
        return "\n".join(
            f"- {one.name}: {one.description} For {', '.join(one.suggested_for)}." for one in list_templates()
        )
    for word, kind in _ABOUT.items():
        if re.search(rf"\b{word}(?:e?s)?\b", request, re.IGNORECASE):
            return "\n".join(_described(one) for one in plugins(kind))
    return None


def asks_state(request: str) -> bool:
    """Whether only the state is asked for."""
    return _STATE.match(request) is not None


def fitting(analysis: JsonObject, request: str, source_type: str) -> tuple[str, str]:
    """The template that fits, and why: one that the user names, what the files are, what the user calls them."""
    names = "|".join(re.escape(one.name) for one in list_templates())
    named = re.search(rf"\btemplate\s+[\"'`]?({names})\b|\b({names})[\"'`]?\s+template\b", request, re.IGNORECASE)
    if named is not None:
        return (named[1] or named[2]).lower(), "you named it"
    counts = _counts(analysis)
    total = sum(counts.values()) or 1
    if sum(counts[one] for one in _SHEETS) / total >= MOSTLY:
        return "tables", "most files are sheets"
    issues = _listed(analysis, "quality_issues")
    if "scanned" in " ".join(issues):
        return "scans", "some files hold pictures of text"
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
    return DEFAULT_TEMPLATE, "the files are of several kinds"


def knobs(template: PipelineTemplate, request: str) -> JsonObject:
    """The whole-number parameters of a template that the request sets: `chunk size 500`."""
    found: JsonObject = {}
    for parameter in template.parameters:
        words = parameter.name.replace("_", r"[ _-]")
        said = re.search(rf"\b{words}\b\D{{0,12}}(\d{{1,9}})\b", request, re.IGNORECASE)
        if said is not None and parameter.value_schema.get("type") in ("integer", "number"):
            found[parameter.name] = int(said[1])
    return found


def proposal(
    analysis: JsonObject, pipeline: JsonObject, why: str, validation: JsonObject | None, doubts: Sequence[Doubt]
) -> str:
    """What was found, what is proposed, what the validation says, what is doubtful, and how it goes on."""
    lines = [f"**Found**: {analysis.get('summary')}", "", f"**Proposed**: {template_of(pipeline)}, because {why}."]
    if validation is not None:
        lines += ["", f"**Validated**: {validation.get('summary')}"]
    open_ones = [one for one in doubts if not one.resolved]
    if open_ones:
        lines += ["", "**Doubtful**:", *(f"- {one.severity}: {one.message}" for one in open_ones)]
    lines.append("")
    if any(one.blocks for one in open_ones):
        lines.append("A blocking issue is open: resolve it, say what to change, or `apply NAME anyway`.")
    else:
        lines.append("Say `apply NAME` to make the collection NAME, or what to change (`use the template reports`).")
    return "\n".join(lines)


def _described(info: PluginInfo) -> str:
    return f"- {info.name} ({info.kind}): {info.description}. Good for: {info.good_for}."


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
