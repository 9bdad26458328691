"""JSON schemas of the planner's reply: small and strict, every property required.

Strict mode of OpenAI-style schemas rejects an open `args` object, so inputs are name/value pairs.
"""

from collections.abc import Iterable, Sequence

from agent.core.models import JsonObject
from agent.llm.port import ResponseSchema

COMPLETION = "completion"
_TEXT: JsonObject = {"type": "string"}
_TEXT_OF_KIND = {"answer": "answer", "ask": "question", "find_tools": "query"}


def build_plan_schema(names: Iterable[str], max_steps: int, skill_tools: Sequence[str] = ()) -> ResponseSchema:
    """The schema of a plan whose steps use tools and skills of these names.

    `skill_tools` are the tools of all skills, of which a skill step names those that it needs.
    """
    properties = _build_plan_properties(names, max_steps, skill_tools, least=1)
    return ResponseSchema("plan", _build_object_schema(properties))


def build_reply_schema(
    names: Iterable[str], max_steps: int, kinds: Sequence[str], skill_tools: Sequence[str] = ()
) -> ResponseSchema:
    """The schema of a reply of one of several kinds. `kind` and its text come first, for streaming."""
    texts = {field: _TEXT for kind, field in _TEXT_OF_KIND.items() if kind in kinds}
    plan = _build_plan_properties(names, max_steps, skill_tools, least=0)
    return ResponseSchema(
        "reply", _build_object_schema({"kind": {"type": "string", "enum": [*kinds]}, **texts, **plan})
    )


def _build_plan_properties(
    names: Iterable[str], max_steps: int, skill_tools: Sequence[str], *, least: int
) -> JsonObject:
    # A skill may have the name of a tool; constrained decoders reject an enum with duplicates.
    tool_names = dict.fromkeys((*names, COMPLETION))
    tools: JsonObject = {"type": "array", "items": {"type": "string", "enum": [*dict.fromkeys(skill_tools)]}}
    step = _build_object_schema(
        {
            "id": _TEXT,
            "tool": {"type": "string", "enum": list(tool_names)},
            **({"tools": tools} if skill_tools else {}),
            "inputs": {"type": "array", "items": _build_object_schema({"name": _TEXT, "value": _TEXT})},
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


def _build_object_schema(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def describe_requested_call(tool: str) -> str:
    """The intent of a call that the request itself names."""
    return f"call {tool} as the request asks"
