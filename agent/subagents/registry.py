"""The sub-agents there are. To add one, write a class and name it here."""

from collections.abc import Iterable
from typing import Any

from agent.subagents.base import SubAgent
from agent.subagents.pipeline_validator import PipelineValidator
from agent.subagents.researcher import Researcher
from agent.subagents.source_analyzer import SourceAnalyzer

Kind = type[SubAgent[Any, Any]]

SUBAGENTS: tuple[Kind, ...] = (SourceAnalyzer, PipelineValidator, Researcher)


def by_id(kinds: Iterable[Kind] = SUBAGENTS) -> dict[str, Kind]:
    """The sub-agents by their ids; ValueError when two have the same."""
    found: dict[str, Kind] = {}
    for kind in kinds:
        if kind.AGENT_ID in found:
            raise ValueError(f"two sub-agents are called {kind.AGENT_ID!r}")
        found[kind.AGENT_ID] = kind
    return found
