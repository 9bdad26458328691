"""Sub-agents as features register them: a class, and what it works with. The kernel has none of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent.core.errors import ConfigError
from agent.subagents.base import SubAgent, SubAgentResources

SubAgentClass = type[SubAgent[Any, Any]]


@dataclass(frozen=True, slots=True)
class RegisteredSubAgent:
    """A kind of sub-agent with what its feature gives it."""

    kind: SubAgentClass
    resources: SubAgentResources


def register_subagents(
    kinds: Iterable[SubAgentClass], resources: SubAgentResources | None = None
) -> tuple[RegisteredSubAgent, ...]:
    """The kinds, all with the same resources."""
    shared = resources or SubAgentResources()
    return tuple(RegisteredSubAgent(kind, shared) for kind in kinds)


def index_subagents(registered: Iterable[RegisteredSubAgent]) -> dict[str, RegisteredSubAgent]:
    """The sub-agents by id. Raises `ConfigError` if two have the same id."""
    by_name: dict[str, RegisteredSubAgent] = {}
    for one in registered:
        if one.kind.AGENT_ID in by_name:
            raise ConfigError(f"two sub-agents are called {one.kind.AGENT_ID!r}")
        by_name[one.kind.AGENT_ID] = one
    return by_name
