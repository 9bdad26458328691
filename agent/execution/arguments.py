"""The arguments of a call: a step's inputs with its references resolved, compared with the tool's schema."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from agent.core.events import StepOutput
from agent.core.json_schema import Violation, iter_violations
from agent.core.json_texts import read_json_text
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_references import (
    find_references,
    list_literals,
    resolve_references,
    set_apart_outside_values,
)
from agent.core.run_state import RunState
from agent.execution.decide import Start
from agent.policy.approval import is_plan_approved
from agent.run_context.outputs import has_tainted_inputs, load_output, load_whole_output, remove_citations
from agent.run_context.run import Run
from agent.tools import ToolResult, ToolSpec
from agent.tools.client_tools import is_from_outside
from agent.tools.declared_arguments import collect_arguments, list_undeclared_arguments
from agent.tools.spec import declares_all


def find_undeclared_args(spec: ToolSpec, args: JsonObject) -> tuple[str, ...]:
    """The arguments that the tool does not declare and does not allow either."""
    if declares_all(spec.input_schema, args):
        return ()
    return list_undeclared_arguments(spec.input_schema, args, is_foreign=is_from_outside(spec))


def list_text_arg_names(spec: ToolSpec) -> frozenset[str]:
    """The names of the arguments that accept text, but neither an object nor a list."""
    return frozenset(
        name
        for name, schema in spec.properties.items()
        if _list_json_types(schema) & {"string", *_CONTAINER_TYPES} == {"string"}
    )


def parse_text_args(spec: ToolSpec, values: Mapping[str, str]) -> JsonObject | None:
    """Arguments that were written as text, each as its schema's type; None if the tool knows one of them not.

    Text stays text where the schema accepts text. Everything else is read as JSON, or left for the schema's check.
    """
    named = spec.properties
    if not values.keys() <= named.keys():
        return None
    return {
        name: text if "string" in _list_json_types(named[name]) else _read_json(text) for name, text in values.items()
    }


def read_container_args(spec: ToolSpec, args: JsonObject) -> JsonObject:
    """The arguments, with objects and lists that another tool returned as JSON text read where the schema accepts one,
    but no text."""
    named = spec.properties
    return {
        name: read_json_text(value) if _takes_containers(named.get(name)) else value for name, value in args.items()
    }


def _takes_containers(schema: JsonValue) -> bool:
    """Whether a schema names its types, and an object or a list is among them, but no text."""
    is_typed = isinstance(schema, dict) and bool(schema.keys() & {"type", "anyOf", "oneOf"})
    kinds = _list_json_types(schema) if is_typed else frozenset()
    return bool(kinds & _CONTAINER_TYPES) and "string" not in kinds


def _read_json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


_CONTAINER_TYPES = frozenset({"object", "array"})


def _list_json_types(schema: JsonValue) -> frozenset[str]:
    """The JSON types that a schema allows. A schema without types allows objects and lists too."""
    if not isinstance(schema, dict):
        return _CONTAINER_TYPES
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        return frozenset(kind for choice in choices for kind in _list_json_types(choice))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return frozenset(str(kind) for kind in kinds)
    return frozenset({kinds}) if isinstance(kinds, str) else _CONTAINER_TYPES


def find_argument_problem(spec: ToolSpec, args: JsonObject) -> str | None:
    """The problem of the arguments in one sentence, or None. Arguments that are not declared are one."""
    if undeclared := find_undeclared_args(spec, args):
        declared = ", ".join(collect_arguments(spec.input_schema)[0]) or "none"
        return f"{spec.name}: unknown argument {', '.join(map(repr, undeclared))}; known: {shorten(declared)}"
    fault = _find_first_violation(spec.input_schema, args)
    if fault is None:
        return None
    return f"{spec.name}: {fault.where or 'arguments'}: {shorten(fault.message)}"


def find_output_problem(spec: ToolSpec, result: ToolResult) -> str | None:
    """Describes how the result violates the tool's output schema, or None. See `ToolSpec.is_output_binding`."""
    if spec.output_schema is None or not spec.is_output_binding:
        return None
    fault = _find_first_violation(spec.output_schema, result.value)
    if fault is None:
        return None
    where = fault.where or "result"
    return f"{spec.name} returned a result that does not match its schema: {where}: {shorten(fault.message)}"


def _find_first_violation(schema: JsonObject, instance: object) -> Violation | None:
    return next(iter_violations(schema, instance), None)


def shorten(text: str, limit: int = 300) -> str:
    """The beginning of a message of others, which may be long."""
    return text if len(text) <= limit else text[:limit] + "…"


async def resolve_args(run: Run, start: Start) -> tuple[JsonObject, bool]:
    """The step's arguments with resolved references, and whether any argument is tainted.

    References read the attempts that `start` names, even if a dependency is running again.
    """
    step = start.step
    tainted = run.state.tainted or has_untrusted_literal(run.state, step)
    if step.action == "skill":
        tainted = tainted or has_tainted_inputs(run.state, step) or _may_feedback_repeat_outside_text(run.state, start)
    if not step.args:
        return {}, tainted
    outputs = await load_inputs(run, start)
    spec = run.engine.registry.find_spec(step.tool) if step.action != "skill" else None
    texts = list_text_arg_names(spec) if spec is not None else ()
    resolved = resolve_references(dict(step.args), outputs.__getitem__, texts=texts)
    args = read_container_args(spec, resolved.args) if spec is not None else resolved.args
    return args, tainted or resolved.tainted


async def set_apart_task_values(run: Run, start: Start, args: JsonObject) -> JsonObject:
    """The arguments of a skill as its model reads them: a result from outside within the task is an input of its own,
    because the model does what its task says."""
    task = start.step.args.get("task")
    if not find_references(task):
        return args
    outputs = await load_inputs(run, start)
    named, values = set_apart_outside_values(task, outputs.__getitem__)
    return {**args, "task": named, **values}


def _may_feedback_repeat_outside_text(state: RunState, start: Start) -> bool:
    """Whether the feedback that a skill's model reads is about a result with text from outside, whose orders a judge
    may have passed on.
    """
    earlier = (one for one in state.get_step(start.step.id).attempts if one.number < start.attempt)
    return start.feedback is not None and any(one.output is not None and one.output.tainted for one in earlier)


async def load_inputs(run: Run, start: Start) -> dict[str, StepOutput]:
    """The results that the step's arguments may refer to, whole, by the ids of their steps."""
    step = start.step
    outputs: dict[str, StepOutput] = {}
    # A model sees no personal data where the room keeps it from results.
    is_whole = step.action != "skill" or run.room.guard_output.pii == "redact_answer"
    for dependency, number in start.depends_on_attempts.items():
        attempt = run.state.get_step(dependency).find_attempt(number)
        output = attempt.output if attempt else None
        if output is not None:
            loaded = await (load_whole_output if is_whole else load_output)(run, output)
            # What leaves the run, such as a file or a mail, has no list of sources to which [1] could refer.
            outputs[dependency] = loaded if step.effect == "read" else remove_citations(loaded)
    return outputs


def has_untrusted_literal(state: RunState, step: PlanStep) -> bool:
    """Whether an argument as planned is not the user's, and no person has seen and approved it."""
    return has_literal_from_outside(state, step.id) and not is_plan_approved(state)


def has_literal_from_outside(state: RunState, step_id: str) -> bool:
    """Whether an argument of a step, as planned, is not the user's, also if a person has approved it."""
    if not state.plans:
        return False
    proposed = state.plans[-1]
    label = proposed.get_label(step_id)
    if label is not None:
        return bool(label.untrusted_args)
    step = next((one for one in proposed.plan.steps if one.id == step_id), None)
    return proposed.tainted and step is not None and bool(list_literals(step.args))
