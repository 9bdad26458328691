"""The incident tools: extract facts from a report, search what is known, write the brief. Only rooms that name them
offer them."""

from agent.run_context.extensions import Extension
from agent.tools import Tool
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.incident.tools.actions import ExtractActionItemsTool
from gateway.features.incident.tools.brief import BuildIncidentBriefTool
from gateway.features.incident.tools.deadlines import ExtractDeadlinesTool
from gateway.features.incident.tools.entities import ExtractEntitiesTool
from gateway.features.incident.tools.gates import check_incident_evidence, check_summary_consistent
from gateway.features.incident.tools.issues import (
    NO_SIMILAR_ISSUE,
    SearchPreviousIssuesInput,
    SearchPreviousIssuesTool,
)
from gateway.features.incident.tools.knowledge import SearchIncidentKnowledgeTool
from gateway.features.incident.tools.priority import ClassifyPriorityTool
from gateway.features.incident.tools.summary import SummarizeTool
from gateway.features.incident.tools.topic import TOPIC, is_incident

__all__ = [
    "INCIDENT_EXTENSION",
    "NO_SIMILAR_ISSUE",
    "SearchPreviousIssuesInput",
    "SearchPreviousIssuesTool",
    "make_incident_tools",
]

INCIDENT_EXTENSION = Extension(
    "incident",
    gates={"summary_consistent": check_summary_consistent, "incident_evidence": check_incident_evidence},
    topics={TOPIC: is_incident},
)
"""What incident rooms need of the engine."""


def make_incident_tools(library: Library) -> tuple[Tool, ...]:
    """The eight incident tools."""
    return (
        ExtractEntitiesTool(),
        ClassifyPriorityTool(),
        SummarizeTool(),
        ExtractDeadlinesTool(),
        ExtractActionItemsTool(),
        SearchIncidentKnowledgeTool(library),
        SearchPreviousIssuesTool(library),
        BuildIncidentBriefTool(library),
    )
