"""`PlannerAgent`: a request to a validated plan by the fast tier. It executes nothing and is given no tools.

One call, one re-ask with the exact problems, then the rule planner, with the reason recorded.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from agent.core.errors import ModelError, PlanInvalidError
from agent.core.models import JsonObject, Mode, Plan
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.normalise import RawPlan, normalise_plan
from agent.planning.parse import parse_reply
from agent.planning.references import rename_references
from agent.planning.request import PlanningRequest
from agent.planning.required import fit_arguments
from agent.planning.rules import RulePlanner
from agent.planning.validate import finish_plan, format_problems, validate_plan
from agent.planning.wire import plan_schema
from agent.prompts import render
from agent.prompts.blocks import block
from agent.tools.catalogue import Catalogue

HISTORY_MESSAGES = 6
HISTORY_RESULTS = 6
MESSAGE_CHARS = 1_000
CALL_CHARS = 200
RESULT_CHARS = 2_000
QUESTION_CHARS = 8_000


class PlannerModel(Protocol):
    """The planner's way to the fast tier; metering and the log are behind it."""

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema) -> ModelReply:
        """One completion. Raises `ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Rejection:
    """A reply that could not become a plan."""

    problems: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and how it came about."""

    plan: Plan
    requested: Mode
    effective: Mode
    fallback_reason: str | None = None
    rejected: tuple[Rejection, ...] = field(default=())
    adjusted: tuple[str, ...] = field(default=())


class PlannerAgent:
    """Plans with a model; falls back to rules. `has_writer`: whether a model would also write the answer."""

    def __init__(self, model: PlannerModel, *, has_writer: bool = True) -> None:
        self._model = model
        self._has_writer = has_writer

    async def plan(self, request: PlanningRequest) -> Planned:
        """A validated plan. Raises nothing of the model's: every failure ends in the rule planner."""
        catalogue = request.catalogue.shortlist(request.question)
        schema = plan_schema(catalogue, request.room.budgets.max_steps)
        messages = _messages(request, catalogue)
        rejected: list[Rejection] = []
        reason = ""
        for _ in range(2):
            try:
                reply = await self._model.ask(messages, schema)
            except ModelError as error:
                reason = error.message
                break
            try:
                notes: list[str] = []
                plan = plan_of_reply(reply.text, reply.finish_reason, request, has_writer=self._has_writer, notes=notes)
            except PlanInvalidError as error:
                rejected.append(Rejection(tuple(error.problems), reply.text[:500]))
                reason = f"the model gave no valid plan: {error.problems[0]}"
                messages = _reask(messages, reply.text, error.problems)
            else:
                return Planned(plan, "llm", "llm", None, tuple(rejected), tuple(notes))
        ruled = RulePlanner().plan(request, has_model=self._has_writer).model_copy(update={"origin_reason": reason})
        return Planned(ruled, "llm", "rules", reason, tuple(rejected))


def plan_of_reply(
    text: str,
    finish_reason: str,
    request: PlanningRequest,
    *,
    has_writer: bool = True,
    notes: list[str] | None = None,
) -> Plan:
    """The plan a reply stands for, joined with what is done already. Raises `PlanInvalidError`.

    `notes` takes up what was dropped of a reply in a room that requires tools."""
    raw = normalise_plan(parse_reply(text, finish_reason), request.catalogue)
    if request.room.required_tools:
        raw, dropped = fit_arguments(raw, request)
        if notes is not None:
            notes += dropped
    raw = _without_repeats(raw, request)
    done = {completed.step.id for completed in request.completed}
    taken = request.used_ids | done
    clashes = [step.id for step in raw.steps if step.id in taken]
    names = _fresh_names(clashes, taken | {step.id for step in raw.steps})
    if names:
        raw = _renamed_plan(raw, names)
    plan = validate_plan(raw, request.catalogue, max_steps=request.room.budgets.max_steps, known_ids=done)
    return join(finish_new(plan, request, has_model=has_writer), request)


def _without_repeats(raw: RawPlan, request: PlanningRequest) -> RawPlan:
    """The reply without the steps that call again what has succeeded, with the same arguments: what would build on them
    builds on what is there. A message that was sent must not be sent again because something else failed, be it another
    call of the same tool.

    Raises `PlanInvalidError` when nothing is left, or where a call would be made again that changed something already.
    Results that did not do are none of `completed`."""
    succeeded = {(c.step.tool, _canonical(c.step.args)): c.step.id for c in request.completed}
    happened = {(step.tool, _canonical(step.args)) for step in request.happened}
    names: dict[str, str] = {}
    steps = []
    for step in raw.steps:
        args = rename_references(step.args, names)
        call = (step.tool, _canonical(args))
        if call in happened:
            raise PlanInvalidError([f"step {step.id} calls {step.tool} as it has been done already; do not repeat it"])
        known = succeeded.get(call)
        if known is not None:
            names[step.id] = known
        else:
            steps.append(step)
    if raw.steps and not steps:
        raise PlanInvalidError(["every step of this plan has succeeded already; plan what is still missing"])
    return _renamed_plan(replace(raw, steps=tuple(steps)), names) if names else raw


def _canonical(args: JsonValue) -> str:
    return json.dumps(args, sort_keys=True)


def finish_new(plan: Plan, request: PlanningRequest, *, has_model: bool) -> Plan:
    """The plan with its goal and, where it is due, its completion."""
    goal = plan.goal or request.question[:300]
    # Results that are there already must be joined with the new ones.
    joins = bool(request.completed) or request.needs_completion
    return finish_plan(
        plan.model_copy(update={"goal": goal}),
        needs_completion=joins,
        has_model=has_model,
        used_ids=request.used_ids,
    )


def join(plan: Plan, request: PlanningRequest) -> Plan:
    """The next version of the plan: the steps that succeeded, then the new ones."""
    if request.previous is None:
        return plan
    kept = tuple(completed.step for completed in request.completed)
    version = request.previous.version + 1
    return plan.model_copy(update={"steps": (*kept, *plan.steps), "version": version})


def _renamed_plan(raw: RawPlan, names: Mapping[str, str]) -> RawPlan:
    """The reply with ids that an earlier plan had used renamed throughout: within it they mean its own steps."""
    steps = []
    for step in raw.steps:
        args = rename_references(step.args, names)
        steps.append(
            replace(
                step,
                id=names.get(step.id, step.id),
                args=args if isinstance(args, dict) else step.args,
                depends_on=tuple(names.get(name, name) for name in step.depends_on),
            )
        )
    return replace(raw, steps=tuple(steps))


def _fresh_names(clashes: list[str], taken: frozenset[str] | set[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    number = 1
    used = set(taken)
    for clash in clashes:
        while f"s{number}" in used:
            number += 1
        names[clash] = f"s{number}"
        used.add(names[clash])
    return names


def _messages(request: PlanningRequest, catalogue: Catalogue) -> tuple[JsonObject, ...]:
    """Trusted text in the system message; the user's words and every result in blocks of the user's message."""
    system = render(
        "planner",
        system=f"{request.room.system_prompt}\n\n" if request.room.system_prompt else "",
        catalogue=catalogue.text,
        max_steps=str(request.room.budgets.max_steps),
    )
    parts = []
    lines = _history_lines(request)
    if lines:
        parts.append(block("history", "\n".join(lines)))
    if request.memories:
        parts.append(block("memory", "\n".join(f"- {_cut(m.text, MESSAGE_CHARS)}" for m in request.memories)))
    if request.completed:
        done = [f"${c.step.id} ({c.step.tool}): {_cut(c.text, RESULT_CHARS)}" for c in request.completed]
        parts.append(block("results", "\n".join(done)))
    if request.replan_reason is not None:
        parts.append(block("replan", _cut(request.replan_reason, RESULT_CHARS)))
    parts.append(block("user_request", _cut(request.question, QUESTION_CHARS)))
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n".join(parts)})


def _history_lines(request: PlanningRequest) -> list[str]:
    """What was said before, and what the client's own tools returned: the newest of each."""
    names: dict[object, str] = {}
    lines: list[tuple[bool, str]] = []
    for message in request.history:
        for call in message.tool_calls:
            function = call.get("function")
            if isinstance(function, dict):
                names[call.get("id")] = (
                    f"{function.get('name', '')}({_cut(str(function.get('arguments')), CALL_CHARS)})"
                )
        if message.role == "tool":
            called = names.get(message.tool_call_id) or message.name or "a tool of the client"
            lines.append((True, f"result of {called}: {_cut(message.content, MESSAGE_CHARS)}"))
        elif message.role in ("user", "assistant") and message.content:
            lines.append((False, f"{message.role}: {_cut(message.content, MESSAGE_CHARS)}"))
    spoken = [place for place, (is_result, _) in enumerate(lines) if not is_result][-HISTORY_MESSAGES:]
    returned = [place for place, (is_result, _) in enumerate(lines) if is_result][-HISTORY_RESULTS:]
    return [lines[place][1] for place in sorted((*spoken, *returned))]


def _reask(messages: tuple[JsonObject, ...], reply: str, problems: list[str]) -> tuple[JsonObject, ...]:
    said: JsonObject = {"role": "assistant", "content": _cut(reply, 4_000) or "(nothing)"}
    asked: JsonObject = {"role": "user", "content": render("planner_reask", problems=format_problems(problems))}
    return (*messages[:2], said, asked)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + " [cut]"
