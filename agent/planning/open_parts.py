"""What a round's decision named as missing, kept in the arguments of its step `plan_more`: a run resumes from its log.

A small model names all parts of a request, calls tools for the first, and then takes the request for done. So each part
without a successful call is asked about before the answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from pydantic import JsonValue

from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.plan_outcome import may_have_changed, was_refused
from agent.core.run_state import RunState
from agent.planning.request import ACTION
from agent.tools.catalogue import CatalogueIndex, split_name

MISSING, PARTS, WAITING, OPEN = "todo", "parts", "waiting", "open"
"""What the decision named; the part that each step is for, by its id; the parts whose call waits for this round's
results; all parts that no step is for."""
SHORTEST_VALUE = 2
"""Characters of a value that shows which part a call is for."""
NAMES_VALUE, STATED, FITS = 0.5, 0.4, 0.3
"""What counts beside 1 for the tool that fits a part's words best: a value of the call among them, and that the
decision says so; and the sum from which on a call is for a part."""
CHECK = "check"
"""Why a person must see the round's changes before they are made."""
LOOKS_UP = "looks_up"
"""In a decision: whether its calls only look up what its first part needs, which stays open."""
ANY_TOOL = "an action"
"""In place of the names of tools, where no decision named one."""
MAY_CHANGE = "may_change"
"""The tools with which the request asks to change something."""
TOGETHER = "together"
"""The ids of the changes that are made one after the other, as a person saw them in one question. In a decision:
whether its changes are such."""
WAITS = "waits"
"""In a decision: whether all of its changes wait for what it reads."""


def divide_parts(
    said: Sequence[str],
    before: Sequence[str],
    asked: Sequence[PlanStep],
    steps: Sequence[PlanStep],
    index: CatalogueIndex,
    *,
    looks_up: bool = False,
) -> JsonObject:
    """The arguments of `plan_more`. `before` are the parts that were open, of which the first was decided on;
    `asked` are the steps of the decision, in the order of its parts, and `steps` those that run in this round.
    By `index`, a part's words fit some tools. With `looks_up`, the round looks up what the first part needs, and that
    stays open."""
    if looks_up and before:
        return {MISSING: [*said], PARTS: {}, WAITING: [before[0]], OPEN: [*before]}
    names = {step.id for step in steps}
    paired = [(asked[0], before[0])] if before else _pair(asked, said, index)
    paired = _keep_waiting(asked, paired, names, () if before else said)
    parts: JsonObject = {step.id: part for step, part in paired if step.id in names}
    waiting: list[JsonValue] = [*dict.fromkeys(part for step, part in paired if step.id not in names)]
    served = {part for _, part in paired}
    left = before[1:] if before else [part for part in said if part not in served]
    return {MISSING: [*said], PARTS: parts, WAITING: waiting, OPEN: [*waiting, *left]}


def serve_parts(before: Sequence[str], parts: Mapping[str, str]) -> JsonObject:
    """The arguments of `plan_more` after a round that makes calls again: `parts` names what each step is for, by its
    id, and what else was open before stays open."""
    served = {*parts.values()}
    return {MISSING: [*before], PARTS: {**parts}, WAITING: [], OPEN: [part for part in before if part not in served]}


def _pair(steps: Sequence[PlanStep], parts: Sequence[str], index: CatalogueIndex) -> list[tuple[PlanStep, str]]:
    """The part that each step is for. A small model is often wrong about it: what counts is which tool the part's words
    fit, then the values that it names, then what the model says, which is the step's intent."""
    fits = [_measure_fits(part, index) for part in parts]
    pairs: list[tuple[PlanStep, str]] = []
    for step in steps:
        scores = [
            fit.get(step.tool, 0.0) + NAMES_VALUE * _names_value(part, step) + STATED * (part == step.intent)
            for part, fit in zip(parts, fits, strict=True)
        ]
        if scores and max(scores) >= FITS:
            served = {part for _, part in pairs}
            best = [part for part, score in zip(parts, scores, strict=True) if score == max(scores)]
            pairs.append((step, next((part for part in best if part not in served), best[0])))
    return pairs or list(zip(steps, parts, strict=False))


def _keep_waiting(
    asked: Sequence[PlanStep], pairs: Sequence[tuple[PlanStep, str]], names: AbstractSet[str], said: Sequence[str]
) -> list[tuple[PlanStep, str]]:
    """The pairs, with a part for each step that waits and has none, or only one that a step of this round is for: else
    nobody would ask about it again. It is the one that the model names, or one of its own, its tool's words: its values
    were made up before anything was known."""
    served = {part for step, part in pairs if step.id in names}
    settled = [(step, part) for step, part in pairs if step.id in names or part not in served]
    settled_ids = {step.id for step, _ in settled}
    alone = [step for step in asked if step.id not in names and step.id not in settled_ids]
    left = {*said} - {part for _, part in settled}
    return [
        *settled,
        *((step, step.intent if step.intent in left else split_name(step.tool.rpartition("__")[2])) for step in alone),
    ]


def _measure_fits(part: str, index: CatalogueIndex) -> dict[str, float]:
    """How well each tool fits a part's words: 1 for the only best one, 0 for one that has nothing to do with them.

    Several that fit best share that: "assign the ticket to dana" fits each tool for tickets, and none of them more."""
    scores = index.compute_scores(part)
    highest = max(scores.values(), default=0.0)
    share = max(FITS, 1 / [*scores.values()].count(highest)) if highest else 0.0
    return {name: share * score / highest for name, score in scores.items()} if highest else {}


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
    ends = [step for step in state.steps_of_all_plans.values() if step.is_plan_more]
    failed = Counter(part for end in ends for part in _list_failed(state, end))
    waiting = ends[-1].args.get(WAITING) if ends else None
    named = map(str, waiting if isinstance(waiting, list) else ())
    return frozenset((*(part for part, count in failed.items() if count == 1), *named))


def has_changed(state: RunState) -> bool:
    """Whether the last round changed something and all of its calls succeeded."""
    steps = state.plan_steps
    if not steps or not steps[-1].is_plan_more:
        return False
    ids = set(steps[-1].depends_on)
    made = [step for step in steps if step.id in ids]
    changing = any(state.has_side_effect(step.tool, step.effect) for step in made)
    return changing and all(state.get_step(step.id).status == "succeeded" for step in made)


def has_failed(state: RunState) -> bool:
    """Whether no call of the last round succeeded."""
    ends = (one.plan.steps[-1] for one in reversed(state.plans) if one.plan.steps and one.plan.steps[-1].is_plan_more)
    last = next(ends, None)
    return last is not None and not any(state.get_step(name).status == "succeeded" for name in last.depends_on)


def list_unmade_changes(state: RunState) -> tuple[str, ...]:
    """The tools with which the request asks to change something, if nothing was changed and nobody refused it.

    `ANY_TOOL` stands for those of a request that needs an action, as the model said, where none was decided on:
    whatever the answer says then, nothing was done."""
    allowed = find_allowed_changes(state)
    wanted = {*(allowed or ()), *(name for one in state.plans for name in one.decided_changes)}
    if allowed is None and not wanted and any(one.need == ACTION for one in state.plans):
        wanted = {ANY_TOOL}
    return tuple(sorted(wanted)) if wanted and not is_change_settled(state) else ()


def is_change_settled(state: RunState) -> bool:
    """Whether something was changed or may have been, or a person refused it."""
    changing = [step for step in _list_work(state) if step.effect != "read"]
    return any(may_have_changed(state, step) or was_refused(state, step) for step in changing)


def _list_work(state: RunState) -> list[PlanStep]:
    """The steps of all plans of a run that call something."""
    return [step for step in state.steps_of_all_plans.values() if step.is_work]


def _list_failed(state: RunState, end: PlanStep) -> list[str]:
    """The parts whose call has to be made again in another way. What a person did not allow is settled, and so is what
    was to follow it."""
    tried = _read_parts(end)
    steps = state.steps_of_all_plans
    failed = [steps[name] for name in tried if name in steps and state.get_step(name).status != "succeeded"]
    settled: set[str] = set()
    for step in failed:  # dependencies come first
        if was_refused(state, step) or not settled.isdisjoint(step.depends_on):
            settled.add(step.id)
    return [*dict.fromkeys(tried[step.id] for step in failed if step.id not in settled)]


def _read_parts(end: PlanStep) -> dict[str, str]:
    """The part that each step of a round is for, by the step's id."""
    parts = end.args.get(PARTS)
    return {name: str(part) for name, part in parts.items()} if isinstance(parts, dict) else {}


def is_together(plan: Plan) -> bool:
    """Whether a plan is a round whose changes a person sees in one question."""
    return any(step.is_plan_more and TOGETHER in step.args for step in plan.steps)


def list_changes_together(state: RunState) -> list[PlanStep]:
    """The changes of a run, in their order, if a person saw several of them in one question; [] otherwise.

    One that was not made is the newest call of a later round for the same part of the request, if there is one. Those
    that a person's reply left out of the plan are left out here."""
    if not any(is_together(proposed.plan) for proposed in state.plans):
        return []
    changes: dict[str, tuple[str, PlanStep]] = {}
    for proposed in state.plans:
        if proposed.asked_for:
            changes = {name: one for name, one in changes.items() if state.get_step(one[1].id).attempts}
        seen = {step.id for _, step in changes.values()}
        undone = {name: part for name, (part, step) in changes.items() if not _is_made(state, step)}
        ends = (step for step in proposed.plan.steps if step.is_plan_more)
        parts = {name: part for end in ends for name, part in _read_parts(end).items()}
        for step in proposed.plan.steps:
            if step.effect == "read" or step.tool in proposed.read_claims or step.id in seen:
                continue
            part = parts.get(step.id, step.intent)
            name = next((one for one, other in undone.items() if other == part), step.id)
            undone.pop(name, None)
            changes[name] = part, step
    return [step for _, step in changes.values()]


def _is_made(state: RunState, step: PlanStep) -> bool:
    return state.get_step(step.id).status == "succeeded"


def find_check_reason(plan: Plan) -> str:
    """The reason why a person must see the changes of a round before they are made; "" if no one must."""
    last = plan.steps[-1] if plan.steps else None
    return str(last.args.get(CHECK, "")) if last is not None and last.is_plan_more else ""


def find_allowed_changes(state: RunState) -> frozenset[str] | None:
    """The tools of which earlier rounds found that this run's request asks to change something with them; None if none
    of them asked."""
    ends = [step for step in state.steps_of_all_plans.values() if step.is_plan_more]
    lists = [named for end in ends if isinstance(named := end.args.get(MAY_CHANGE), list)]
    return frozenset(str(name) for named in lists for name in named) if lists else None
