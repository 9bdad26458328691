"""What the planner's model is asked for: a small, closed, strict schema in which every property is required.

An open `args` object fails the strict rules of OpenAI-style schemas; name/value pairs pass.
"""

from agent.core.models import Action, JsonObject
from agent.llm.port import ResponseSchema
from agent.policy.approval import MEMORY_TOOLS
from agent.tools.catalogue import Catalogue

COMPLETION = "completion"
_TEXT: JsonObject = {"type": "string"}


def plan_schema(catalogue: Catalogue, max_steps: int) -> ResponseSchema:
    """The schema of a plan over the (shortlisted) catalogue."""
    # A skill may bear the name of a tool; constrained decoders refuse an enum that holds a value twice.
    names = dict.fromkeys((*catalogue.names(), COMPLETION))
    step = _closed(
        {
            "id": _TEXT,
            "tool": {"type": "string", "enum": list(names)},
            "inputs": {"type": "array", "items": _closed({"name": _TEXT, "value": _TEXT})},
            "depends_on": {"type": "array", "items": _TEXT},
            "intent": _TEXT,
        }
    )
    plan = _closed(
        {
            "reasoning": _TEXT,
            "goal": _TEXT,
            "language": _TEXT,
            "answer_tier": {"type": "string", "enum": ["fast", "high"]},
            "steps": {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps},
        }
    )
    return ResponseSchema("plan", plan)


def _closed(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def action_of(tool: str) -> Action:
    """How a step with this tool is called in a plan: the memory's own tools are memory steps."""
    return "memory" if tool in MEMORY_TOOLS else "tool"


def describe_requested_call(tool: str) -> str:
    """The intent of a call that the request itself names: nothing more is known of what it is for."""
    return f"call {tool} as the request asks"
