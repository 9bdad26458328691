"""A small catalogue and requests over it, and plans in the wire form, for the tests of planning."""

from collections.abc import Sequence
from typing import Any

from agent.core.models import Budgets, JsonObject, Room
from agent.planning.request import PlanningRequest
from agent.tools import READ_ONLY, READ_ONLY_WEB, PlanHints, ToolAnnotations, ToolSpec
from agent.tools.catalogue import Catalogue, SkillCard
from mcp_tools.builtin import request_commands as commands

SIDE_EFFECT = ToolAnnotations(read_only=False, idempotent=False)


def spec(
    name: str,
    properties: JsonObject,
    required: Sequence[str] = (),
    *,
    description: str = "",
    annotations: ToolAnnotations = READ_ONLY,
    **fields: Any,
) -> ToolSpec:
    """A tool that takes these inputs and no others."""
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    text = description or f"The tool {name}."
    return ToolSpec(name, text, schema, None, annotations, tainted=annotations.open_world, **fields)


CALCULATOR = spec(
    "calculator",
    {"expression": {"type": "string"}},
    ["expression"],
    description="Evaluate an arithmetic expression.",
    hints=PlanHints(commands=commands.CALCULATION),
)
TIME = spec(
    "current_time",
    {"timezone": {"type": "string"}},
    description="The current date and time in a time zone.",
    hints=PlanHints(commands=commands.TIME),
)
FETCH = spec(
    "web_fetch",
    {"url": {"type": "string"}},
    ["url"],
    description="Read a page of the web as text.",
    hints=PlanHints(commands=commands.WEB_PAGE),
    annotations=READ_ONLY_WEB,
)
READ_FILE = spec(
    "read_file",
    {"path": {"type": "string"}},
    ["path"],
    description="Read a file of the user.",
    hints=PlanHints(commands=commands.FILE_READING),
)
LIST_FILES = spec(
    "list_files",
    {"pattern": {"type": "string"}},
    description="List the user's files.",
    hints=PlanHints(commands=commands.FILE_LISTING),
)
SEARCH_FILES = spec(
    "search_files",
    {"query": {"type": "string"}},
    ["query"],
    description="Search the user's files.",
    hints=PlanHints(commands=commands.FILE_SEARCH),
)
SAVE = spec(
    "memory_save",
    {"text": {"type": "string"}},
    ["text"],
    annotations=SIDE_EFFECT,
    hints=PlanHints(is_memory=True, commands=commands.REMEMBERING),
)
CONVERT = spec(
    "convert",
    {
        "amount": {"type": "number"},
        "to": {"type": "string", "enum": ["EUR", "SEK"]},
        "digits": {"type": "integer", "minimum": 0},
        "exact": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
        "least": {"anyOf": [{"type": "null"}, {"type": "integer"}]},
    },
    ["amount"],
    description="Convert money.",
)
SUMMARISE = SkillCard("summarise-text", "Summarise a long text in a few sentences.")
RESEARCH = SkillCard("deep_research", "Research a question on the web.", effect="effect", tools=("web_fetch",))

CATALOGUE = Catalogue(
    skills=(RESEARCH, SUMMARISE),
    tools=(CALCULATOR, CONVERT, TIME, LIST_FILES, SAVE, READ_FILE, SEARCH_FILES, FETCH),
)


def asking(question: str = "the question", *, max_steps: int = 12, **fields: Any) -> PlanningRequest:
    """A request over the catalogue above."""
    room = fields.pop("room", Room(id="r", budgets=Budgets(max_steps=max_steps)))
    return PlanningRequest(question=question, room=room, catalogue=fields.pop("catalogue", CATALOGUE), **fields)


def wire_step(step_id: str, tool: str = "calculator", *depends_on: str, **inputs: str) -> JsonObject:
    """A step as a model is asked to write it; `calculator` adds when nothing else is said."""
    pairs = inputs or ({"expression": "1+1"} if tool == "calculator" else {})
    return {
        "id": step_id,
        "tool": tool,
        "inputs": [{"name": name, "value": value} for name, value in pairs.items()],
        "depends_on": list(depends_on),
        "intent": f"use {tool}",
    }


def wire_plan(*steps: JsonObject, **fields: Any) -> JsonObject:
    """A plan as a model is asked to write it."""
    return {
        "reasoning": "It is enough.",
        "goal": "to know",
        "language": "en",
        "answer_tier": "fast",
        "steps": list(steps),
        **fields,
    }
