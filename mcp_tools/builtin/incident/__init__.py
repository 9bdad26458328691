"""The incident tools: extract facts from a report, search what is known, write the brief. Only rooms that name them
offer them."""

from agent.core.settings import Settings
from agent.ingest.collections import Library
from agent.run_context.extensions import Extension
from agent.tools import Tool
from mcp_tools.builtin.incident.actions import ExtractActionItemsTool
from mcp_tools.builtin.incident.brief import BuildIncidentBriefTool
from mcp_tools.builtin.incident.deadlines import ExtractDeadlinesTool
from mcp_tools.builtin.incident.entities import ExtractEntitiesTool
from mcp_tools.builtin.incident.gates import check_incident_evidence, check_summary_consistent
from mcp_tools.builtin.incident.issues import SearchPreviousIssuesTool
from mcp_tools.builtin.incident.knowledge import SearchIncidentKnowledgeTool
from mcp_tools.builtin.incident.priority import ClassifyPriorityTool
from mcp_tools.builtin.incident.summary import SummarizeTool
from mcp_tools.builtin.incident.topic import TOPIC, is_incident

INCIDENT_EXTENSION = Extension(
    "incident",
    gates={"summary_consistent": check_summary_consistent, "incident_evidence": check_incident_evidence},
    topics={TOPIC: is_incident},
)
"""What incident rooms need of the engine."""


def make_incident_tools(settings: Settings, library: Library) -> tuple[Tool, ...]:
    """Returns the eight incident tools."""
    return (
        ExtractEntitiesTool(),
        ClassifyPriorityTool(),
        SummarizeTool(),
        ExtractDeadlinesTool(),
        ExtractActionItemsTool(),
        SearchIncidentKnowledgeTool(library, settings.incident_knowledge),
        SearchPreviousIssuesTool(library, settings.incident_issues),
        BuildIncidentBriefTool(library, settings.incident_knowledge, settings.incident_issues),
    )
