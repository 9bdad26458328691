"""Finds arguments that a plan fills with nothing but typed fields of `extract`: numbers, dates, choices and the like.

Such a value carries no instruction, although somebody else wrote the text that it comes from. It still says what that
text says, so it is never trusted as the place where something goes.
"""

from collections.abc import Sequence
from typing import Final

from agent.core.errors import ReferenceMissingError, ToolInputError
from agent.core.models import PlanStep
from agent.core.plan_references import ITEM, Reference, list_references, split_path
from agent.core.run_state import RunState
from agent.planning.list_steps import FOR_EACH
from agent.tools.extracted_fields import EXTRACT, ExtractedField, Kind, parse_fields

_TYPED: Final[frozenset[Kind]] = frozenset({"number", "integer", "boolean", "date", "choice", "id"})
_WHOLE: Final = frozenset({"output", "result", "value", "text"})
"""Names by which plans refer to a whole result."""


def holds_typed_values(state: RunState, step: PlanStep, name: str) -> bool:
    """Whether the external text in an argument is typed fields only. Its literals are not looked at."""
    references = list_references(step.args.get(name))
    external = [one for one in references if _is_external(state, step, one)]
    return bool(external) and all(_is_typed(_find_field(state, step, one)) for one in external)


def _is_external(state: RunState, step: PlanStep, reference: Reference) -> bool:
    if reference.step_id == ITEM and FOR_EACH in step.args:
        return any(_is_external(state, step, one) for one in list_references(step.args[FOR_EACH]))
    output = state.get_step(reference.step_id).output
    return output is None or output.tainted


def _find_field(state: RunState, step: PlanStep, reference: Reference) -> ExtractedField | None:
    """The field of an extraction that a reference names; None if it names anything else."""
    if reference.step_id == ITEM and FOR_EACH in step.args:
        lists = list_references(step.args[FOR_EACH])
        whole = _find_field(state, step, lists[0]) if len(lists) == 1 else None
        item = whole.item if whole is not None and whole.kind == "array" else None
        return _follow(item, _split(reference))
    source = state.find_planned_step(reference.step_id)
    if source is None or source.tool != EXTRACT or source.action != "tool" or FOR_EACH in source.args:
        return None
    schema = source.args.get("fields")
    if not isinstance(schema, dict) or list_references(schema):
        return None  # the names and the choices must be the plan's
    try:
        fields = parse_fields(schema)
    except ToolInputError:
        return None
    parts = _split(reference)
    if parts and parts[0] in _WHOLE and parts[0] not in fields:
        parts = parts[1:]
    return _follow(ExtractedField("object", fields=fields), parts)


def _split(reference: Reference) -> list[str | int] | None:
    try:
        return split_path(reference)
    except ReferenceMissingError:
        return None


def _follow(field: ExtractedField | None, parts: Sequence[str | int] | None) -> ExtractedField | None:
    """The field at a path of names and positions; None if there is none."""
    if parts is None:
        return None
    for part in parts:
        if field is None:
            return None
        if isinstance(part, str):
            field = field.fields.get(part) if field.kind == "object" else None
        else:
            field = field.item if field.kind == "array" else None
    return field


def _is_typed(field: ExtractedField | None) -> bool:
    """Whether a value of a field carries no instruction."""
    if field is None:
        return False
    if field.kind == "array":
        return _is_typed(field.item)
    if field.kind == "object":
        return all(map(_is_typed, field.fields.values()))
    return field.kind in _TYPED
