"""Sub-agents: delegated investigations, each with its own tools, prompt and limits."""

from agent.subagents.base import Caller, CallResult, OpeningCall, SubAgent, SubAgentResources, ToolCalls
from agent.subagents.model_uncertainty import ModelUncertainty
from agent.subagents.registry import RegisteredSubAgent, SubAgentClass, index_subagents, register_subagents
from agent.subagents.spawn import KeepResult, is_spawn_tool, make_spawn_tools

__all__ = [
    "CallResult",
    "Caller",
    "KeepResult",
    "ModelUncertainty",
    "OpeningCall",
    "RegisteredSubAgent",
    "SubAgent",
    "SubAgentClass",
    "SubAgentResources",
    "ToolCalls",
    "index_subagents",
    "is_spawn_tool",
    "make_spawn_tools",
    "register_subagents",
]
