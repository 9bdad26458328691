"""What the planner's model is asked for: a small, closed, strict schema in which every property is required.

An open `args` object fails the strict rules of OpenAI-style schemas; name/value pairs pass.
"""

from collections.abc import Iterable, Sequence

from agent.core.models import Action, JsonObject
from agent.llm.port import ResponseSchema
from agent.policy.approval import MEMORY_TOOLS

COMPLETION = "completion"
_TEXT: JsonObject = {"type": "string"}
_TEXT_OF_KIND = {"answer": "answer", "ask": "question", "find_tools": "query"}


def plan_schema(names: Iterable[str], max_steps: int) -> ResponseSchema:
    """The schema of a plan whose steps use tools and skills of these names."""
    return ResponseSchema("plan", _closed(_plan_properties(names, max_steps, least=1)))


def reply_schema(names: Iterable[str], max_steps: int, kinds: Sequence[str]) -> ResponseSchema:
    """The schema of a reply of one of several kinds. `kind` comes first and its text next, so that an answer can be
    shown while it is written."""
    texts = {field: _TEXT for kind, field in _TEXT_OF_KIND.items() if kind in kinds}
    plan = _plan_properties(names, max_steps, least=0)
    return ResponseSchema("reply", _closed({"kind": {"type": "string", "enum": [*kinds]}, **texts, **plan}))


def _plan_properties(names: Iterable[str], max_steps: int, *, least: int) -> JsonObject:
    # A skill may bear the name of a tool; constrained decoders refuse an enum that holds a value twice.
    known = dict.fromkeys((*names, COMPLETION))
    step = _closed(
        {
            "id": _TEXT,
            "tool": {"type": "string", "enum": list(known)},
            "inputs": {"type": "array", "items": _closed({"name": _TEXT, "value": _TEXT})},
            "depends_on": {"type": "array", "items": _TEXT},
            "intent": _TEXT,
        }
    )
    return {
        "reasoning": _TEXT,
        "goal": _TEXT,
        "language": _TEXT,
        "answer_tier": {"type": "string", "enum": ["fast", "high"]},
        "steps": {"type": "array", "items": step, "minItems": least, "maxItems": max_steps},
    }


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
