"""Gates of incident rooms: the summary names what the text names, and an incident answer rests on evidence."""

from agent.core.models import JsonObject
from agent.run_context.extensions import GateContext, GateResult, fail_gate, pass_gate
from gateway.features.incident.engine.evidence import classify_name
from gateway.features.incident.tools.brief import BuildIncidentBriefTool
from gateway.features.incident.tools.entities import ExtractEntitiesTool
from gateway.features.incident.tools.issues import SearchPreviousIssuesTool
from gateway.features.incident.tools.knowledge import SearchIncidentKnowledgeTool
from gateway.features.incident.tools.summary import SummarizeTool
from gateway.features.incident.tools.topic import TOPIC

MAX_ENTITIES = 20
"""Entities by which a summary is measured, the most frequent first: no summary of a long log names all of them."""


def check_summary_consistent(context: GateContext) -> GateResult | None:
    """The summary leaves out at most half of the text's entities."""
    summaries = [str(value.get("summary") or "") for value in context.list_tool_values(SummarizeTool.name)]
    names = _rank_by_frequency(context.list_tool_items(ExtractEntitiesTool.name, "entities"))
    if not summaries or not names:
        return None
    summary = _normalize(summaries[-1])
    missing = [name for name in names if _normalize(name) not in summary]
    if 2 * len(missing) <= len(names):
        return pass_gate(f"the summary names {len(names) - len(missing)} of {len(names)} entities")
    missing_list = ", ".join(missing[:5])
    problem = f"the summary leaves out {len(missing)} of {len(names)} entities: {missing_list}"
    return fail_gate(problem, redo=(SummarizeTool.name,))


def check_incident_evidence(context: GateContext) -> GateResult | None:
    """Both searches found something, and a policy or a runbook is cited. Applies to requests about incidents."""
    if TOPIC not in context.topics:
        return None
    knowledge, issues = SearchIncidentKnowledgeTool.name, SearchPreviousIssuesTool.name
    redo = [tool for tool in (knowledge, issues) if not context.list_tool_items(tool, "results")]
    problems = [f"{tool} found nothing" for tool in redo]
    cited = context.list_tool_items(knowledge, "results") + context.list_tool_items(
        BuildIncidentBriefTool.name, "citations"
    )
    if not any(_is_policy(hit) for hit in cited):
        problems.append("no policy or runbook is cited")
        redo.append(knowledge)
    if problems:
        return fail_gate(*problems, redo=tuple(dict.fromkeys(redo)))
    return pass_gate("policies and earlier issues are cited")


def _rank_by_frequency(entities: list[JsonObject]) -> list[str]:
    """The distinct names, the most frequent first, else in the order of the text."""
    counts: dict[str, int] = {}
    for entity in entities:
        name = str(entity.get("text") or "").strip()
        count = entity.get("count")
        if name:
            counts[name] = max(counts.get(name, 0), count if isinstance(count, int) else 1)
    return sorted(counts, key=lambda name: -counts[name])[:MAX_ENTITIES]


def _is_policy(hit: JsonObject) -> bool:
    if hit.get("source_type") in ("policy", "runbook"):
        return True
    return classify_name(f"{hit.get('title') or ''} {hit.get('source_id') or ''}") != "doc"


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())
