"""Gates of incident rooms: the summary speaks of what the text does, and an incident rests on evidence."""

import re

from agent.core.models import JsonObject
from agent.execution.gates.context import GateContext, GateResult, failed, passed
from agent.planning.required import RETRIEVAL, SUMMARY

ENTITIES = "extract_entities"
COUNTED = 20
"""Entities a summary is measured by, the most often named first: no summary of a long log names all of it."""
_POLICY = re.compile(r"\b(?:polic(?:y|ies)|runbooks?|playbooks?|procedures?)\b", re.IGNORECASE)


def summary_consistent(context: GateContext) -> GateResult | None:
    """Of the entities of the text, the summary leaves out at most half."""
    summaries = [str(value.get("summary") or "") for value in context.values(SUMMARY)]
    named = _by_frequency(context.items(ENTITIES, "entities"))
    if not summaries or not named:
        return None
    said = _plain(summaries[-1])
    missing = [name for name in named if _plain(name) not in said]
    if 2 * len(missing) <= len(named):
        return passed(f"the summary names {len(named) - len(missing)} of {len(named)} entities")
    shown = ", ".join(missing[:5])
    return failed(f"the summary leaves out {len(missing)} of {len(named)} entities: {shown}", redo=(SUMMARY,))


def incident_evidence(context: GateContext) -> GateResult | None:
    """Both searches of an incident found something, and a policy or a runbook is among it."""
    if not context.is_incident:
        return None
    knowledge, issues = RETRIEVAL
    empty = [tool for tool in (knowledge, issues) if not context.items(tool, "results")]
    faults = [f"{tool} found nothing" for tool in empty]
    redo = list(empty)
    cited = context.items(knowledge, "results") + context.items("build_incident_brief", "citations")
    if not any(_is_policy(hit) for hit in cited):
        faults.append("no policy or runbook is cited")
        redo.append(knowledge)
    if faults:
        return failed(*faults, redo=tuple(dict.fromkeys(redo)))
    return passed("policies and earlier issues stand behind it")


def _by_frequency(entities: list[JsonObject]) -> list[str]:
    """The names of the entities, each once, the most frequent first, else in the order of the text."""
    counts: dict[str, int] = {}
    for entity in entities:
        name = str(entity.get("text") or "").strip()
        count = entity.get("count")
        if name:
            counts[name] = max(counts.get(name, 0), count if isinstance(count, int) else 1)
    return sorted(counts, key=lambda name: -counts[name])[:COUNTED]


def _is_policy(hit: JsonObject) -> bool:
    if hit.get("source_type") in ("policy", "runbook"):
        return True
    # Names of files are words too: policies/incident-response.md.
    named = re.sub(r"[\W_]+", " ", f"{hit.get('title') or ''} {hit.get('source_id') or ''}")
    return _POLICY.search(named) is not None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
