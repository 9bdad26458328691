"""Looks at what a call works on, before the call: the columns of a table before a query of it.

A capable model looks by itself. A small one writes the query with names that it makes up.
"""

from collections.abc import Iterable

from agent.core.models import PlanStep
from agent.planning.request import PlanningRequest


def look_first(steps: Iterable[PlanStep], request: PlanningRequest, notes: list[str]) -> dict[str, PlanStep]:
    """The calls to make in place of steps that work on something unseen, by the ids of these steps."""
    seen = {(call.tool, str(call.args)) for call in request.rounds if not call.failed}
    planned: dict[tuple[str, str], PlanStep] = {}
    looks: dict[str, PlanStep] = {}
    for step in steps:
        look = _build_look(step, request)
        if look is None or (look.tool, str(look.args)) in seen:
            continue
        looks[step.id] = planned.setdefault((look.tool, str(look.args)), look)
        notes.append(f"{step.tool} waits for {look.tool}, which shows what it works on")
    return looks


def _build_look(step: PlanStep, request: PlanningRequest) -> PlanStep | None:
    spec = request.catalogue.get_tool(step.tool)
    before = request.catalogue.get_tool(spec.hints.looks_first_with) if spec is not None else None
    if before is None or before.effect != "read":
        return None
    properties = before.input_schema.get("properties")
    args = {name: value for name, value in step.args.items() if isinstance(properties, dict) and name in properties}
    return step.model_copy(update={"tool": before.name, "args": args, "intent": f"see what {step.tool} works on"})
