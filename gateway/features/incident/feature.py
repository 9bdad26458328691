"""The feature `incident`: tools and gates of the incident desk."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Toolset

FEATURE = Feature(
    name="incident",
    needs=("documents",),
    rooms=("incident",),
    removed_settings={
        "AGENT_INCIDENT_KNOWLEDGE": "the room `incident` names it: the first one of its `collections`",
        "AGENT_INCIDENT_ISSUES": "the room `incident` names it: the last one of its `collections`",
    },
    tools="gateway.features.incident.hooks:list_tools",
    extensions="gateway.features.incident.hooks:list_extensions",
    toolsets=(
        Toolset("basics", ("summarize",)),
        Toolset(
            "incident",
            (
                "build_incident_brief",
                "classify_priority",
                "extract_action_items",
                "extract_deadlines",
                "extract_entities",
                "search_incident_knowledge",
                "search_previous_issues",
            ),
            "incidents and reports: priority, entities, deadlines, to-dos, earlier tickets, briefs",
            place=100,
        ),
    ),
    page=Page(
        folder="gateway.features.incident:page",
        room_offers=(
            PagePart("example", "Load the example company", "example.js", place=20, rooms=("knowledge", "incident")),
        ),
    ),
    routes=(Door("gateway.features.incident.doors.example:router", place=145),),
    commands={
        "corpus": Command(
            "gateway.features.incident.commands.corpus:app",
            "Table rows as documents: prepare a corpus, build a collection from it, query it.",
            place=310,
        ),
    },
)
