"""Which calls of a sub-agent a person has allowed with the plan of a message that asks for several things.

Approving such a plan approves its steps and the values that it shows: a call with another tool, or with more, other or
emptier values, is asked about.
"""

import json

from pydantic import JsonValue

from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject, PlanStep
from agent.core.run_state import RunState
from agent.policy.approval.rules import changes_several, is_plan_approved
from agent.text.own_words import OwnWords
from agent.text.spelling import space_words
from agent.tools import ToolSpec


def is_approved_with_plan(state: RunState, step_id: str, spec: ToolSpec, args: JsonObject) -> bool:
    """Whether the approved plan showed this call: its tool and every value of its arguments.

    A step that names the tool with inputs shows the whole call. Otherwise the inputs that it leaves open may take
    values from its words, or from the trusted results of the steps it depends on. What is destroyed, the words name.
    """
    if not changes_several(state) or not is_plan_approved(state):
        return False
    step = state.find_planned_step(step_id)
    if step is None or not _shows_tool(step, spec):
        return False
    entities = step.args.get("entities")
    planned = {name: "".join(_read_texts(one)) for name, one in entities.items()} if isinstance(entities, dict) else {}
    declared = spec.properties
    inputs = declared.keys() & planned.keys()
    given = {
        name: value for name, value in args.items() if name in inputs or not _is_default(declared.get(name), value)
    }
    if any(not _is_same(given[name], planned[name]) if name in given else planned[name] for name in inputs):
        return False
    rest = [value for name, value in given.items() if name not in inputs]
    if rest and inputs and step.args.get("action") == spec.name:
        return False
    results = () if spec.annotations.destructive else _list_results(state, step)
    own = OwnWords(*_read_texts(step.args.get("request")), step.intent, *planned, *planned.values(), *results)
    schema = OwnWords(*iter_texts(spec.input_schema))
    return all(_is_shown(value, own, schema) for value in rest)


def _shows_tool(step: PlanStep, spec: ToolSpec) -> bool:
    """Whether a step names a tool, or begins with a verb of the tool. A call that destroys something must be named."""
    action = step.args.get("action")
    if action == spec.name or not isinstance(action, str) or spec.annotations.destructive:
        return action == spec.name
    return next(iter(action.casefold().split()), "") in {*spec.name.split("_"), *spec.keywords}


def _is_default(schema: JsonValue, value: JsonValue) -> bool:
    """Whether the tool would do the same without the value. A boolean does not equal a number here."""
    default = schema.get("default", ...) if isinstance(schema, dict) else ...
    return type(default) is type(value) and default == value


def _list_results(state: RunState, step: PlanStep) -> list[str]:
    outputs = (state.get_step(name).output for name in step.depends_on)
    return [output.text for output in outputs if output is not None and not output.tainted]


def _read_texts(value: JsonValue) -> list[str]:
    """The texts of an argument, without the names around them: a literal is an object."""
    return list(iter_texts([*value.values()] if isinstance(value, dict) else value))


def _is_same(value: JsonValue, text: str) -> bool:
    """Whether a value is the one that was shown as text, in any spelling: `Support Team` is the id `support-team`."""
    if isinstance(value, str):
        return space_words(value) == space_words(text)
    if isinstance(value, list) and space_words(", ".join(map(str, value))) == space_words(text):
        return True
    try:
        return json.dumps(value, sort_keys=True) == json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return False


def _is_shown(value: JsonValue, own: OwnWords, schema: OwnWords) -> bool:
    """Whether the words of a step contain a value and the names of its fields. They never contain an empty value, a
    boolean or null. A field that the tool's schema names may have the other number: `tools` is shown by "the tool".
    """
    if isinstance(value, dict):
        parts = [*value, *value.values()]
        return bool(value) and all(_is_shown(one, own, schema) for one in parts)
    if isinstance(value, list):
        return bool(value) and all(_is_shown(one, own, schema) for one in value)
    if not isinstance(value, str):
        return value is not None and own.hold(value)
    if not any(map(str.isalnum, value)):  # the words hold a text of mere marks, which says nothing
        return False
    if own.hold(value) or own.hold_name(value):
        return True
    return value.isidentifier() and len(value) > 1 and schema.hold(value) and own.hold_name(value.removesuffix("s"))
