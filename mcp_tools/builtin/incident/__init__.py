"""The tools of incidents: reading a report, searching what is known, the brief. Only rooms that name them have them."""

from agent.core.config import Settings
from agent.knowledge.library import Library
from agent.tools import Tool
from mcp_tools.builtin.incident.actions import ExtractActionItemsTool
from mcp_tools.builtin.incident.brief import BuildIncidentBriefTool
from mcp_tools.builtin.incident.deadlines import ExtractDeadlinesTool
from mcp_tools.builtin.incident.entities import ExtractEntitiesTool
from mcp_tools.builtin.incident.issues import SearchPreviousIssuesTool
from mcp_tools.builtin.incident.knowledge import SearchIncidentKnowledgeTool
from mcp_tools.builtin.incident.priority import ClassifyPriorityTool
from mcp_tools.builtin.incident.summary import SummarizeTool


def incident_tools(settings: Settings, library: Library) -> tuple[Tool, ...]:
    """All eight."""
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
