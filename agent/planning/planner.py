"""`PlannerAgent`: one call of the fast tier that answers, plans, asks the user or searches for further tools.

The planner executes nothing and has no tools. It repeats the call once with the problems of an unusable reply, then the
rule planner plans and the plan records the reason. A search of the catalogue costs one more call.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from pydantic import JsonValue

from agent.core.errors import ModelError, ModelUnreachableError, PlanInvalidError
from agent.core.models import JsonObject, Plan, Tier
from agent.core.plan_references import rename_references, unify_references
from agent.llm.call_forms import list_held_names
from agent.llm.call_objects import match_tool_name
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.normalise import RawPlan, list_called_tools, normalise_plan
from agent.planning.parse import parse_reply, read_damaged_plan
from agent.planning.planned import Planned, Rejection
from agent.planning.prompt import build_messages, build_reask, list_kinds
from agent.planning.reply import (
    Answer,
    Ask,
    FindTools,
    PlanReply,
    get_written,
    list_written_calls,
    read_any_form,
    starts_with_object,
)
from agent.planning.reply_schema import COMPLETION, build_plan_schema, build_reply_schema
from agent.planning.request import PlanningRequest
from agent.planning.required import fit_arguments
from agent.planning.rules import plan_by_rules
from agent.planning.validate import build_completion, finish_plan, iter_free_ids, validate_plan
from agent.tools.catalogue import Catalogue, CatalogueView

_SKILL_SCHEMA: JsonObject = {"type": "object", "properties": {"task": {"type": "string"}}}
_UNNAMED = "a tool"
"""A call of a refused plan that says no name."""


class PlannerModel(Protocol):
    """The planner's access to the fast tier. Implementations meter and log the calls."""

    async def ask(self, messages: tuple[JsonObject, ...], schema: ResponseSchema | None) -> ModelReply:
        """One completion. An answer in it may be streamed to the user. Raises `ModelError`."""
        ...

    async def ask_word(self, messages: tuple[JsonObject, ...]) -> str:
        """A reply of one word in lower case, without thinking before it or a full stop after it; "" for a longer one,
        whose rest is not waited for. Raises `ModelError`."""
        ...


class NothingNewError(PlanInvalidError):
    """Raised for a plan whose calls were all made before, with success."""


class PlannerAgent:
    """Plans with a model and falls back to rules. `has_writer` is whether a model also writes the answer."""

    def __init__(self, model: PlannerModel, *, has_writer: bool = True) -> None:
        self._model = model
        self._has_writer = has_writer

    async def plan(self, request: PlanningRequest) -> Planned:
        """An answer, a validated plan or a question. Raises no `ModelError`: on a failure the rules plan."""
        view = request.catalogue.show(request.question)
        messages = build_messages(request, view)
        rejected: list[Rejection] = []
        wanted: dict[str, bool] = {}
        reason = ""
        unreachable: ModelUnreachableError | None = None
        refused = searched = False
        while True:
            try:
                reply = await self._model.ask(messages, _select_schema(request, view))
            except ModelError as error:
                reason = error.message
                unreachable = error if isinstance(error, ModelUnreachableError) else None
                break
            try:
                planned = self._interpret_reply(reply, request, may_search=not searched and not view.is_whole)
            except PlanInvalidError as error:
                rejected.append(Rejection(tuple(error.problems), reply.text[:500]))
                if not isinstance(error, NothingNewError):
                    wanted |= _find_called_tools(reply, request.catalogue)
                reason = f"the model gave no valid plan: {error.problems[0]}"
                if refused:
                    break
                refused = True
                messages = build_reask(messages, reply.text, error.problems)
                continue
            if isinstance(planned, Planned):
                return replace(planned, rejected=tuple(rejected)) if rejected else planned
            searched = True
            view = request.catalogue.show(request.question, query=planned.query)
            messages = build_messages(request, view, query=planned.query)
        ruled = plan_by_rules(
            request, reason, has_model=self._has_writer, rejected=tuple(rejected), unreachable=unreachable
        )
        completed = request.earlier_plans.completed
        if any(step.is_work and step.id not in completed for step in ruled.plan.steps):
            return ruled
        decided = tuple(name for name, changes in wanted.items() if changes)
        return replace(ruled, decided_changes=decided, refused_calls=tuple(wanted))

    def _interpret_reply(self, reply: ModelReply, request: PlanningRequest, *, may_search: bool) -> Planned | FindTools:
        """Interprets a reply as an answer, a plan, a question or a search. Raises `PlanInvalidError`."""
        schemas = _collect_schemas(request.catalogue)
        meant = read_any_form(reply, schemas)
        match meant:
            case FindTools() if may_search:
                return meant
            case FindTools():
                raise PlanInvalidError(
                    ["no further tools can be searched; plan with those above, or say what is missing"]
                )
            case Ask(question) if request.may_ask:
                return Planned(build_completion_plan(request, None), "llm", "llm", question=question)
            case Ask():
                raise PlanInvalidError(["nobody is there to answer a question; plan with what is known"])
            case Answer(text=text) if request.answer.form == "text" and text and not request.earlier_plans.completed:
                answer = replace(reply, text=text)
                return Planned(build_completion_plan(request, None), "llm", "llm", answer=answer)
            case Answer(tier=tier) if request.answer.form != "none":
                return Planned(build_completion_plan(request, tier), "llm", "llm")
        notes: list[str] = []
        data = meant.data if isinstance(meant, PlanReply) else parse_reply(get_written(reply), reply.finish_reason)
        plan = build_plan(data, request, has_writer=self._has_writer, notes=notes)
        is_alone = starts_with_object(reply.text) or bool(list_written_calls(reply, schemas))
        return Planned(plan, "llm", "llm", adjusted=tuple(notes), is_embedded=not is_alone)


def _find_called_tools(reply: ModelReply, catalogue: Catalogue) -> dict[str, bool]:
    """The skills and tools that an invalid plan calls, also those that do not exist, each with whether it may change
    something; {} where it is none."""
    schemas, calls = _collect_schemas(catalogue), [call.name for call in reply.tool_calls]
    called = {match_tool_name(name, schemas) or name for name in calls or list_held_names(reply.text)}
    try:
        data = parse_reply(get_written(reply), reply.finish_reason)
    except PlanInvalidError:
        data = read_damaged_plan(reply.text)
    cards = {card.name: card.effect != "read" for card in catalogue.skills}
    changes = cards | {spec.name: spec.has_side_effect for spec in catalogue.tools}
    names = sorted((called | list_called_tools(data, catalogue)) - {COMPLETION})
    return {name if name in changes else _UNNAMED: _may_change(name, changes) for name in names}


def _collect_schemas(catalogue: Catalogue) -> dict[str, JsonObject]:
    """The schemas of what a reply may call, by every name that it may use."""
    skills = {card.name: _SKILL_SCHEMA for card in catalogue.skills}
    own = {spec.room_name: spec.input_schema for spec in catalogue.tools if spec.room_name}
    return skills | own | {spec.name: spec.input_schema for spec in catalogue.tools}


def _may_change(name: str, changes: Mapping[str, bool]) -> bool:
    """Whether a tool may change something; of one whose name was cut off, or that has none, whether one that begins so
    does."""
    meant = [may_change for one, may_change in changes.items() if one.startswith(name)]
    return changes.get(name, any(meant) if meant or not name else True)


def build_completion_plan(request: PlanningRequest, tier: Tier | None) -> Plan:
    """A plan with one completion, which answers from known results."""
    earlier = request.earlier_plans
    used_ids = earlier.used_ids | earlier.completed.keys()
    step = build_completion(earlier.completed, used_ids, intent="answer the user", tier=tier)
    return append_new_steps(Plan(goal=request.question[:300], steps=(step,), origin="llm"), request)


def _select_schema(request: PlanningRequest, view: CatalogueView) -> ResponseSchema | None:
    """The JSON schema of a reply, or None if the reply may be plain text."""
    steps = request.room.budgets.max_steps
    if request.answer.form == "text":
        return None
    kinds = list_kinds(request, view)
    tools = request.catalogue.list_skill_tools()
    if kinds == ["plan"]:
        return build_plan_schema(view.names, steps, tools)
    return build_reply_schema(view.names, steps, kinds, tools)


def build_plan(
    reply: JsonObject, request: PlanningRequest, *, has_writer: bool = True, notes: list[str] | None = None
) -> Plan:
    """The plan of a parsed reply, joined with the completed steps. Raises `PlanInvalidError`.

    `notes` receives the arguments dropped from a reply in a room that requires tools."""
    plan = build_plan_steps(reply, request, notes=notes)
    return append_new_steps(finish_new_plan(plan, request, has_model=has_writer), request)


def build_plan_steps(reply: JsonObject, request: PlanningRequest, *, notes: list[str] | None = None) -> Plan:
    """The validated new steps of a parsed reply; see `build_plan`."""
    raw = normalise_plan(reply, request.catalogue, said=_join_spoken_words(request))
    if request.room.required_tools:
        raw, dropped = fit_arguments(raw, request)
        if notes is not None:
            notes += dropped
    raw = _drop_repeated_calls(raw, request)
    done = request.earlier_plans.completed.keys()
    used_ids = request.earlier_plans.used_ids | done
    clashes = [step.id for step in raw.steps if step.id in used_ids]
    names = dict(zip(clashes, iter_free_ids(used_ids | {step.id for step in raw.steps}), strict=False))
    if names:
        raw = _rename_step_ids(raw, names)
    plan = validate_plan(raw, request.catalogue, max_steps=request.room.budgets.max_steps, known_ids=done)
    if request.find_problems is not None and (problems := request.find_problems(plan)):
        raise PlanInvalidError(problems)
    return plan


def _join_spoken_words(request: PlanningRequest) -> str:
    """What the user has said, as far as the planner knows it."""
    spoken = (message.content for message in request.history if message.role == "user")
    return "\n".join((request.original, request.question, *spoken))


def _drop_repeated_calls(raw: RawPlan, request: PlanningRequest) -> RawPlan:
    """The plan without calls that already succeeded with the same arguments; references point to the earlier
    results. A message that was sent is not sent again because another step failed.

    Raises `PlanInvalidError` if no step remains, or if a step repeats a call that already changed something.
    `completed` does not include results that were judged insufficient."""
    earlier = request.earlier_plans
    if not earlier.completed and not earlier.happened:
        return raw
    succeeded = {(c.step.tool, _serialize_args(c.step.args)): step_id for step_id, c in earlier.completed.items()}
    happened = {(step.tool, _serialize_args(step.args)) for step in earlier.happened}
    names: dict[str, str] = {}
    steps = []
    for step in raw.steps:
        args = rename_references(step.args, names)
        call = (step.tool, _serialize_args(args))
        if call in happened:
            problem = (
                f"step {step.id} calls {step.tool} as it has been done already, or may have been; do not repeat it"
            )
            raise PlanInvalidError([problem])
        earlier_step = succeeded.get(call)
        if earlier_step is not None:
            names[step.id] = earlier_step
        else:
            steps.append(step)
    if raw.steps and not steps:
        raise NothingNewError(["every step of this plan has succeeded already; plan what is still missing"])
    return _rename_step_ids(replace(raw, steps=tuple(steps)), names) if names else raw


def _serialize_args(args: JsonValue) -> str:
    return json.dumps(unify_references(args), sort_keys=True)


def finish_new_plan(plan: Plan, request: PlanningRequest, *, has_model: bool) -> Plan:
    """The plan with its goal and, if it needs one, its completion."""
    if not plan.goal:
        plan = plan.model_copy(update={"goal": request.question[:300]})
    # The completion joins earlier results with the new ones.
    joins = bool(request.earlier_plans.completed) or request.answer.needs_completion
    spoken = () if request.answer.language else request.catalogue.tools  # the texts of tools are in English
    return finish_plan(
        plan,
        needs_completion=joins,
        has_model=has_model,
        used_ids=request.earlier_plans.used_ids,
        answering_tools={spec.name for spec in spoken if spec.hints.is_answer},
    )


def append_new_steps(plan: Plan, request: PlanningRequest) -> Plan:
    """The next version of the plan: the steps that succeeded, then the new ones."""
    earlier = request.earlier_plans
    if earlier.last is None:
        return plan
    steps = (*(completed.step for completed in earlier.completed.values()), *plan.steps)
    return plan.model_copy(update={"steps": steps, "version": earlier.next_version})


def _rename_step_ids(raw: RawPlan, names: Mapping[str, str]) -> RawPlan:
    """The plan with renamed step ids, in ids, dependencies and references."""
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
