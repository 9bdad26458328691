"""What a round's decision named as missing, kept in the arguments of its step `plan_more`: a run resumes from its log.

A small model names all parts of a request, calls tools for the first, and then takes the request for done. So each part
without a successful call is asked about before the answer.
"""

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.core.run_state import RunState

MISSING, PARTS, OPEN = "todo", "parts", "open"
"""What the decision named; the part that each step is for, by its id; the parts that no step is for."""
MAY_CHANGE = "may_change"
"""The tools with which the request asks to change something."""


def divide_parts(
    said: Sequence[str], before: Sequence[str], asked: Sequence[PlanStep], steps: Sequence[PlanStep]
) -> JsonObject:
    """Returns the arguments of `plan_more`. `before` are the parts that were open, of which the first was decided on;
    `asked` are the steps of the decision, in the order of its parts, and `steps` those that run in this round."""
    names = {step.id for step in steps}
    parts: JsonObject = {}
    left: list[JsonValue] = [*before[1:]] if before else [*said[len(asked) :]]
    if before:
        parts = {step.id: before[0] for step in steps[:1]}
    else:
        paired = list(zip(asked, said, strict=False))
        parts = {step.id: part for step, part in paired if step.id in names}
        left = [*(part for step, part in paired if step.id not in names), *left]
    return {MISSING: [*said], PARTS: parts, OPEN: left}


def list_open_parts(state: RunState) -> tuple[str, ...]:
    """Returns the parts of the request that no call has served: first those whose call failed in the last round."""
    plan = state.plan
    last = plan.steps[-1] if plan is not None and plan.steps and plan.steps[-1].is_plan_more else None
    if last is None:
        return ()
    left = last.args.get(OPEN)
    return tuple(dict.fromkeys((*_list_failed(state, last), *map(str, left if isinstance(left, list) else ()))))


def list_failed_parts(state: RunState) -> frozenset[str]:
    """Returns the parts for which exactly one call of this run failed."""
    ends = [step for proposed in state.plans for step in proposed.plan.steps if step.is_plan_more]
    failed = Counter(part for end in ends for part in _list_failed(state, end))
    return frozenset(part for part, count in failed.items() if count == 1)


def _list_failed(state: RunState, end: PlanStep) -> list[str]:
    parts = end.args.get(PARTS)
    tried = parts.items() if isinstance(parts, dict) else ()
    return [str(part) for name, part in tried if state.get_step(name).status != "succeeded"]


def find_allowed_changes(state: RunState) -> frozenset[str]:
    """Returns the tools of which earlier rounds found that this run's request asks to change something with them."""
    found: set[str] = set()
    for proposed in state.plans:
        for step in proposed.plan.steps:
            named = step.args.get(MAY_CHANGE) if step.is_plan_more else None
            found |= set(map(str, named)) if isinstance(named, list) else set()
    return frozenset(found)
