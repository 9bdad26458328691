"""The sub-agents. To add one, write a class and name it here."""

from collections.abc import Iterable
from typing import Any

from agent.subagents.base import SubAgent
from gateway.features.documents.engine.subagents.researcher import Researcher
from gateway.features.pipeline_builder.engine.subagents.pipeline_validator import PipelineValidator
from gateway.features.pipeline_builder.engine.subagents.source_analyzer import SourceAnalyzer
from gateway.features.studio.engine.subagents.studio import STUDIO_AGENTS

SubAgentClass = type[SubAgent[Any, Any]]

SUBAGENTS: tuple[SubAgentClass, ...] = (SourceAnalyzer, PipelineValidator, Researcher, *STUDIO_AGENTS)


def index_subagents(kinds: Iterable[SubAgentClass] = SUBAGENTS) -> dict[str, SubAgentClass]:
    """Returns the sub-agents by id. Raises ValueError if two have the same id."""
    found: dict[str, SubAgentClass] = {}
    for kind in kinds:
        if kind.AGENT_ID in found:
            raise ValueError(f"two sub-agents are called {kind.AGENT_ID!r}")
        found[kind.AGENT_ID] = kind
    return found
