"""Rounds that follow from the last one by rule, without asking the model.

A small model repeats a call that failed, makes up the next one, or takes what it has for all there is. What its results
and errors say of the next call is not left to it.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final, NamedTuple

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.models import PlanStep
from agent.planning.open_parts import MAY_CHANGE, divide_parts, serve_parts
from agent.planning.planned import Planned
from agent.planning.planner import append_new_steps, build_plan_steps
from agent.planning.request import NextCall, PlanningRequest
from agent.planning.rounds.failed_calls import (
    list_corrected_calls,
    list_interrupted_calls,
    list_looks_at_each,
    list_named_calls,
    list_named_looks,
)
from agent.planning.rounds.joined_looks import (
    list_described_looks,
    list_further_looks,
    list_joins,
    list_joins_before,
    list_next_looks,
    list_resolved_calls,
)
from agent.planning.rounds.steps import build_plan_more
from agent.planning.rounds.wider_looks import list_wider_calls


class _Rule(NamedTuple):
    list_calls: Callable[[PlanningRequest], Sequence[NextCall]]
    reason: str
    """Why its calls are made, in the trace."""
    looks_up: bool = False
    """Whether they only look up what an open part needs: that part stays open."""


JOINS: Final = _Rule(list_joins, "a call named what is meant by the identifier of another thing", looks_up=True)
FURTHER_LOOKS: Final = _Rule(list_further_looks, "one thing was found, and these take its identifier", looks_up=True)
RULES: Final = (
    _Rule(list_corrected_calls, "the error of a call names the value that was meant"),
    _Rule(list_named_calls, "the error of a call names this tool"),
    _Rule(list_named_looks, "the error of a call names this tool", looks_up=True),
    _Rule(list_interrupted_calls, "it failed, and the error speaks of nothing that it named"),
    JOINS,
    _Rule(list_resolved_calls, "what a call only described was found"),
    _Rule(list_described_looks, "a call described what is meant in place of its identifier", looks_up=True),
    _Rule(list_looks_at_each, "a call described which of the values is meant that its error lists"),
    _Rule(list_wider_calls, "it found nothing, and asks for less now"),
    FURTHER_LOOKS._replace(list_calls=list_next_looks),
)
"""In order: the first that lists calls makes the round. docs/planning.md has them as a table."""


def make_ruled_round(request: PlanningRequest) -> Planned | None:
    """The round that follows from the last one by rule; None if none does. Raises `PlanInvalidError`."""
    return next((planned for rule in RULES if (planned := _apply(rule, request)) is not None), None)


def make_further_round(request: PlanningRequest) -> Planned | None:
    """The round that looks further at the one thing that was found, for a model that sees nothing more to call; None if
    there is nothing to look at."""
    with suppress(PlanInvalidError):
        return _apply(FURTHER_LOOKS, request)
    return None


def make_join_round(
    request: PlanningRequest, steps: Iterable[PlanStep], part: str, may_change: AbstractSet[str] | None
) -> Planned | None:
    """The round that finds what a change of these steps names by another thing's identifier; None if none does, or
    nothing was left to look at. `part` is what the change is for: it stays open. Raises `PlanInvalidError`."""
    calls = list_joins_before(request, steps, part)
    return _build_round(request, JOINS, calls, may_change) if calls else None


def _apply(rule: _Rule, request: PlanningRequest) -> Planned | None:
    calls = rule.list_calls(request)
    return _build_round(request, rule, calls, request.progress.may_change) if calls else None


def _build_round(
    request: PlanningRequest, rule: _Rule, calls: Sequence[NextCall], may_change: AbstractSet[str] | None
) -> Planned:
    steps: list[JsonValue] = [{"tool": call.tool, "inputs": call.args, "intent": call.part} for call in calls]
    made = build_plan_steps({"steps": steps}, request)
    before = request.progress.open_parts or ((calls[0].part,) if rule is JOINS and calls[0].part else ())
    if rule.looks_up and before:
        args = divide_parts(before, before, made.steps, made.steps, request.catalogue.index, looks_up=True)
    else:
        args = serve_parts(before, {step.id: call.part for step, call in zip(made.steps, calls, strict=False)})
    if may_change is not None:
        args[MAY_CHANGE] = [*sorted(may_change)]
    more = build_plan_more(request.earlier_plans.used_ids, made.steps, args)
    source: dict[str, object] = {"origin": "rules", "origin_reason": rule.reason}
    plan = made.model_copy(update={"steps": (*made.steps, more), **source})
    notes = tuple(f"{call.tool} is called: {rule.reason}" for call in calls)
    return Planned(append_new_steps(plan, request), "rules", "rules", adjusted=notes, repeats_model=True)
