"""What a round's decision named as missing, kept in the arguments of its step `plan_more`: a run resumes from its log.

A small model names all parts of a request, calls tools for the first, and then takes the request for done. So each part
without a successful call is asked about before the answer.
"""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.run_state import RunState

MISSING, PARTS, WAITING, OPEN = "todo", "parts", "waiting", "open"
"""What the decision named; the part that each step is for, by its id; the parts whose call waits for this round's
results; all parts that no step is for."""
SHORTEST_VALUE = 2
"""Characters of a value that shows which part a call is for."""
CHECK = "check"
"""Why a person must see the round's changes before they are made."""
MAY_CHANGE = "may_change"
"""The tools with which the request asks to change something."""


def divide_parts(
    said: Sequence[str], before: Sequence[str], asked: Sequence[PlanStep], steps: Sequence[PlanStep]
) -> JsonObject:
    """The arguments of `plan_more`. `before` are the parts that were open, of which the first was decided on;
    `asked` are the steps of the decision, in the order of its parts, and `steps` those that run in this round."""
    names = {step.id for step in steps}
    paired = [(asked[0], before[0])] if before else _pair(asked, said)
    parts: JsonObject = {step.id: part for step, part in paired if step.id in names}
    waiting: list[JsonValue] = [part for step, part in paired if step.id not in names]
    served = {part for _, part in paired}
    left = before[1:] if before else [part for part in said if part not in served]
    return {MISSING: [*said], PARTS: parts, WAITING: waiting, OPEN: [*waiting, *left]}


def _pair(steps: Sequence[PlanStep], parts: Sequence[str]) -> list[tuple[PlanStep, str]]:
    """The parts that the steps are for, in their order. Where the numbers differ, by the values that a part names: a
    model calls for more, or for less, than it says."""
    if len(steps) != len(parts):
        free = dict.fromkeys(parts)
        named = []
        for step in steps:
            part = next((one for one in free if _names_value(one, step)), None)
            if part is not None:
                del free[part]
                named.append((step, part))
        if named:
            return named
    return list(zip(steps, parts, strict=False))


def _names_value(part: str, step: PlanStep) -> bool:
    folded = part.casefold()
    values = (value.casefold() for value in step.args.values() if isinstance(value, str))
    return any(len(value) >= SHORTEST_VALUE and value in folded for value in values)


def list_open_parts(state: RunState) -> tuple[str, ...]:
    """The parts of the request that no call has served: first those whose call failed in the last round."""
    plan = state.plan
    last = plan.steps[-1] if plan is not None and plan.steps and plan.steps[-1].is_plan_more else None
    if last is None:
        return ()
    left = last.args.get(OPEN)
    return tuple(dict.fromkeys((*_list_failed(state, last), *map(str, left if isinstance(left, list) else ()))))


def list_untried_parts(state: RunState) -> frozenset[str]:
    """The parts for which exactly one call of this run failed, and those whose call waited for results."""
    ends = [step for proposed in state.plans for step in proposed.plan.steps if step.is_plan_more]
    failed = Counter(part for end in ends for part in _list_failed(state, end))
    waiting = ends[-1].args.get(WAITING) if ends else None
    named = map(str, waiting if isinstance(waiting, list) else ())
    return frozenset((*(part for part, count in failed.items() if count == 1), *named))


def has_changed(state: RunState) -> bool:
    """Whether the last round changed something and all of its calls succeeded."""
    steps = state.plan.steps if state.plan is not None else ()
    if not steps or not steps[-1].is_plan_more:
        return False
    ids = set(steps[-1].depends_on)
    made = [step for step in steps if step.id in ids]
    changing = any(state.has_side_effect(step.tool, step.effect) for step in made)
    return changing and all(state.get_step(step.id).status == "succeeded" for step in made)


def _list_failed(state: RunState, end: PlanStep) -> list[str]:
    parts = end.args.get(PARTS)
    tried = parts.items() if isinstance(parts, dict) else ()
    return [str(part) for name, part in tried if state.get_step(name).status != "succeeded"]


def find_check_reason(plan: Plan) -> str:
    """Returns why a person must see the changes of a round before they are made; "" if no one must."""
    last = plan.steps[-1] if plan.steps else None
    return str(last.args.get(CHECK, "")) if last is not None and last.is_plan_more else ""


def find_allowed_changes(state: RunState) -> frozenset[str]:
    """The tools of which earlier rounds found that this run's request asks to change something with them."""
    allowed_changes: set[str] = set()
    for proposed in state.plans:
        for step in proposed.plan.steps:
            named = step.args.get(MAY_CHANGE) if step.is_plan_more else None
            allowed_changes |= set(map(str, named)) if isinstance(named, list) else set()
    return frozenset(allowed_changes)
