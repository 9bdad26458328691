"""List steps: one step that calls its tool once for each item of a list, under one approval of all the calls.

The input `for_each` has the list or a reference to it; in the other inputs `$item` stands for one of its items:
`{"for_each": "$s2.output.people", "to": "$item.email"}`. A tool with an input `for_each` of its own has no such steps.
"""

import re
from collections.abc import Collection
from typing import Final

from pydantic import JsonValue

from agent.core.json_texts import read_json_text
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_references import ITEM, find_references, is_literal
from agent.tools import ToolSpec
from agent.tools.client_tools import CLIENT_ORIGIN

FOR_EACH: Final = "for_each"
MAX_ITEMS: Final = 50
"""Calls of one list step. A person reads all of them before they allow them."""
_ITEM_REFERENCE: Final = re.compile(r"\$item\b((?:\.[A-Za-z_][\w-]*|\[\d+\])*)")


def is_list_call(args: JsonObject, spec: ToolSpec | None) -> bool:
    """Whether a tool's inputs say that it is called for each item of a list."""
    return FOR_EACH in args and spec is not None and FOR_EACH not in spec.properties


def is_list_step(step: PlanStep, spec: ToolSpec | None) -> bool:
    """Whether a step calls its tool for each item of a list."""
    return step.action in ("tool", "memory") and is_list_call(step.args, spec)


def normalise_list_inputs(args: JsonObject, spec: ToolSpec | None) -> JsonObject:
    """The inputs of a step with its list read from JSON text, and with items referred to as steps are.

    Without `for_each` nothing changes: `$item` is plain text then.
    """
    if not is_list_call(args, spec):
        return args
    items = args[FOR_EACH]
    if isinstance(items, str) and items.strip().startswith("["):
        items = read_json_text(items)
    return {name: items if name == FOR_EACH else _read_item_references(value) for name, value in args.items()}


def split_list_inputs(args: JsonObject) -> tuple[JsonValue, JsonObject]:
    """The list of a list step, or the reference to it, and the inputs of one call."""
    return args[FOR_EACH], {name: value for name, value in args.items() if name != FOR_EACH}


def find_list_problems(args: JsonObject, spec: ToolSpec, ids: Collection[str]) -> list[str]:
    """Describes what is wrong with the inputs of a list step in a plan with steps of these ids."""
    items, inputs = split_list_inputs(args)
    problems = []
    if spec.origin == CLIENT_ORIGIN or spec.hints.stands_for_steps:
        problems.append(f"{spec.name!r} cannot be called for each item of a list; plan a step for each call")
    if not isinstance(items, list) and not find_references(items):
        problems.append("for_each is not a list; give a JSON list or a reference to one, such as $s1.output.people")
    if isinstance(items, list) and len(items) > MAX_ITEMS:
        problems.append(f"for_each has {len(items)} items; at most {MAX_ITEMS} calls are made by one step")
    if ITEM in find_references(items):
        problems.append("for_each refers to $item, which stands for one of its own items")
    if ITEM not in find_references(inputs):
        problems.append("no input says what to do with an item: write $item, or $item.field, in one of them")
    if ITEM in ids:
        problems.append("a step has the id 'item', which stands for an item of for_each here; give it another id")
    return problems


def list_source_ids(step: PlanStep, value: JsonValue) -> frozenset[str]:
    """The steps that an input is made of. An item is made of what its list is made of."""
    references = find_references(value)
    if ITEM not in references or FOR_EACH not in step.args:
        return references
    return (references - {ITEM}) | find_references(step.args[FOR_EACH])


def _read_item_references(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _ITEM_REFERENCE.sub(lambda found: f"${{{ITEM}{found[1]}}}", value)
    if isinstance(value, list):
        return [_read_item_references(item) for item in value]
    if isinstance(value, dict) and not is_literal(value):
        if value.get("$from") in (ITEM, f"${ITEM}"):
            return {**value, "$from": ITEM}
        return {name: _read_item_references(item) for name, item in value.items()}
    return value
