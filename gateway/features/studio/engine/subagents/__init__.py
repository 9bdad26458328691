"""The sub-agents of the studio."""

from gateway.features.studio.engine.subagents.studio import (
    STUDIO_AGENTS,
    StudioAgent,
    find_meant_tools,
    make_studio_agents,
    names_change,
)

__all__ = [
    "STUDIO_AGENTS",
    "StudioAgent",
    "find_meant_tools",
    "make_studio_agents",
    "names_change",
]
