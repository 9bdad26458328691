"""Hooks of the feature `studio`."""

from agent.run_context.extensions import Extension
from agent.subagents.registry import RegisteredSubAgent, register_subagents
from gateway.feature_host import FeatureHost
from gateway.features.studio.engine.intent_routing import INTENT_EXTENSION
from gateway.features.studio.engine.subagents.studio import STUDIO_AGENTS
from gateway.features.studio.mcp_prompts import SavedPrompts


def list_subagents(_: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """Returns one sub-agent for each category of the router."""
    return register_subagents(STUDIO_AGENTS)


def list_extensions(_: FeatureHost) -> tuple[Extension, ...]:
    """Returns the router of rooms with `routing: intents`."""
    return (INTENT_EXTENSION,)


def list_mcp_prompts(host: FeatureHost) -> tuple[SavedPrompts, ...]:
    """Returns the prompts that owners saved."""
    return (SavedPrompts(host.get_part("studio").prompts),)
