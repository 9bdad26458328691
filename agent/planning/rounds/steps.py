"""The steps of one round: which changes wait or are left out, and the step that ends it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from agent.core.models import JsonObject, PlanStep
from agent.planning.planned import Planned
from agent.planning.request import PlanningRequest
from agent.planning.rounds.made_up_values import list_unasked_changes
from agent.text.own_words import OwnWords

PLAN_MORE = "plan_more"


def leave_out_unasked(steps: tuple[PlanStep, ...], request: PlanningRequest, notes: list[str]) -> tuple[PlanStep, ...]:
    """The steps without changes that nobody asked for; all of them if no other is left."""
    unasked = list_unasked_changes(steps, request)
    remaining = drop_steps(steps, unasked)
    if not unasked or not remaining:
        return steps
    notes += [f"{step.tool} is left out: nobody asked for it" for step in steps if step.id in unasked]
    return remaining


def defer_effects(
    steps: Sequence[PlanStep], request: PlanningRequest, notes: list[str], *, all_wait: bool = False
) -> tuple[PlanStep, ...]:
    """The steps of a round without changes beside calls that read: the planner sees what was read first.

    A change does not wait if the request gives its inputs, by their names and their values: nothing that is read can
    make it another one. With `all_wait` each waits: a person is to see them together."""
    changing = [step for step in steps if request.catalogue.has_side_effect(step)]
    if not changing or len(changing) == len(steps):
        return tuple(steps)
    words = OwnWords(request.question, request.original)
    waiting = [step for step in changing if all_wait or not words.hold(dict(step.args))]
    remaining = drop_steps(steps, {step.id for step in waiting})
    if not remaining:  # everything that reads needs what is changed: there is nothing to see first
        return tuple(steps)
    notes += [f"{step.tool} waits until the results of this round are known" for step in waiting]
    return remaining


def drop_steps(steps: Iterable[PlanStep], ids: Collection[str]) -> tuple[PlanStep, ...]:
    """The steps without those of these ids and without all that need their results. Dependencies come first."""
    dropped = set(ids)
    remaining: list[PlanStep] = []
    for step in steps:
        if step.id in dropped or not dropped.isdisjoint(step.depends_on):
            dropped.add(step.id)
        else:
            remaining.append(step)
    return tuple(remaining)


def reword_intents(steps: Iterable[PlanStep], reworded: Mapping[str, str]) -> tuple[PlanStep, ...]:
    """The steps for parts that got other words (`reword_calls`), with these."""
    return tuple(step.model_copy(update={"intent": reworded.get(step.intent, step.intent)}) for step in steps)


def build_plan_more(used_ids: frozenset[str], steps: Sequence[PlanStep], args: JsonObject) -> PlanStep:
    """The step that ends a round after these steps: the planner then sees their results and plans on."""
    all_ids = used_ids | {step.id for step in steps}
    name = next(name for name in (f"more{number}" for number in range(1, 100)) if name not in all_ids)
    return PlanStep(
        id=name,
        executor="agent",
        action="plan_more",
        tool=PLAN_MORE,
        args=args or {},
        depends_on=tuple(step.id for step in steps),
        intent="read the results and plan on",
    )


def mark_round(planned: Planned, args: JsonObject) -> Planned:
    """The round with further arguments of its step `plan_more`."""
    *steps, last = planned.plan.steps
    marked = last.model_copy(update={"args": {**last.args, **args}})
    return replace(planned, plan=planned.plan.model_copy(update={"steps": (*steps, marked)}))
