"""Forks: a new run with the plan of an earlier one, from one step on, with an edited plan, argument or result.

Results of finished steps that the edit does not touch are taken over. What changed something outside is not done
again, unless the caller asks for it: then a person must approve it.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import JsonValue

from agent.core.errors import BadRequestError, ConflictError, TooLargeError
from agent.core.events import GivenPlan
from agent.core.models import ENDED_STATUSES, AgentRequest, JsonObject, Plan, PlanStep, Room
from agent.core.models.plan import check_written_steps
from agent.core.plan_references import find_references
from agent.core.principal import Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AcceptedRun, AgentService

RepeatedEffects = Literal["refuse", "keep", "ask"]
"""The treatment of steps after the edit that changed something: the fork is refused, their results are taken over
although their input differs, or they are done again after a person has approved it."""
MAX_OUTPUT_CHARS: Final = 16_000
"""Characters of a result that a person writes, as JSON."""


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """The edit. `args` and `outputs` belong to `step`: arguments to set, and the result under its id."""

    run_id: str
    step: str | None = None
    plan: JsonObject | None = None
    args: JsonObject | None = None
    outputs: dict[str, JsonValue] | None = None
    effects: RepeatedEffects = "refuse"


async def start_fork(
    service: AgentService[Any], caller: Principal, fork: ForkRequest, *, run_id: str | None = None
) -> AcceptedRun:
    """Starts the new run and returns it. `run_id` is its id, if one was recorded before.

    Raises `NotFoundError`; `ConflictError` for a run that has not ended, and for a change that would be made again;
    `BadRequestError` for an unknown step or an invalid plan; and what `AgentService.start_run` raises.
    """
    origin = await load_forkable_run(service, caller.owner, fork.run_id)
    request = origin.request.model_copy(update={"conversation_id": None, "stream": False})
    room = service.admit(request.model_copy(update={"room": origin.request.name_room(origin.room.id)}), caller.owner)
    given = _plan_fork(service, origin, fork, caller.restrict_request(request), room)
    run_id = await service.start_run(
        request,
        caller,
        room=room,
        run_id=run_id,
        origin=RunOrigin(
            one_off=True,
            tainted=origin.has_untrusted_prompt,
            prompt_addresses=origin.prompt_addresses,
            given=given,
        ),
    )
    return AcceptedRun(run_id, caller.owner)


async def load_forkable_run(service: AgentService[Any], owner: str, run_id: str) -> RunState:
    """The state of an ended run with a plan. Raises `NotFoundError` and `ConflictError`."""
    row = await service.get_run(run_id, owner=owner)
    state = fold(run_id, await service.read_events(run_id, owner=owner))
    if row.status not in ENDED_STATUSES:
        raise ConflictError(f"run {run_id!r} has not ended (it is {row.status}); wait for its end, or cancel it")
    if state.plan is None or state.retrieval is None:
        raise ConflictError(f"run {run_id!r} has no plan: it ended before one was made")
    return state


def _plan_fork(
    service: AgentService[Any], origin: RunState, fork: ForkRequest, request: AgentRequest, room: Room
) -> GivenPlan:
    """The plan of the fork, with what it takes over."""
    if origin.plan is None:
        raise ConflictError(f"run {origin.run_id!r} has no plan")
    _check_fork(origin.plan, fork)
    outputs = fork.outputs or {}
    wanted = _edit_steps(origin.plan, fork)
    kept_ids = _find_kept_steps(origin, wanted, fork)
    kept_effects: list[str] = []
    repeated = _find_repeated_effects(origin, wanted, {*kept_ids, *outputs})
    if repeated and fork.effects == "keep":
        kept_effects = _keep_effects(origin, repeated, fork)
        kept_ids += kept_effects
        repeated = []
    if repeated and fork.effects == "refuse":
        names = ", ".join(f"{name} ({tool})" for name, tool in repeated)
        raise ConflictError(
            f"the fork would repeat steps that changed something: {names}. Send effects 'keep' to reuse their results, "
            "or 'ask' to repeat them once a person has approved it",
            steps=[name for name, _ in repeated],
        )
    done = {*kept_ids, *outputs}
    open_steps: list[JsonValue] = [step for step in wanted if step.get("id") not in done]
    data: JsonObject = {"goal": origin.plan.goal, **(fork.plan or {}), "steps": open_steps}
    made = service.validate_steps(request, room, origin.owner, data, known=done, finish=fork.plan is not None)
    kept_steps = [step for step in origin.plan.steps if step.id in done]
    where = f" from step {fork.step}" if fork.step else ""
    names = ", ".join(name for name, _ in repeated)
    return GivenPlan(
        plan=made.model_copy(
            update={
                "goal": made.goal or origin.plan.goal,
                "language": origin.plan.language,
                "steps": (*kept_steps, *made.steps),
                "origin": "request",
                "origin_reason": f"forked from {origin.run_id}{where}",
            }
        ),
        from_run=origin.run_id,
        taken=tuple(kept_ids),
        outdated=tuple(kept_effects),
        outputs=outputs,
        approval_reason=f"the steps {names} make changes again that {origin.run_id} has made" if repeated else "",
    )


def _check_fork(plan: Plan, fork: ForkRequest) -> None:
    """Raises `BadRequestError` for edits that do not fit together or a step that does not exist."""
    ids = [step.id for step in plan.steps]
    if fork.step is None and fork.plan is None:
        raise BadRequestError(f"name the step to begin from ({', '.join(ids)}), or send a plan", param="step")
    if fork.step is None and (fork.args is not None or fork.outputs):
        raise BadRequestError("args and output belong to a step: name it", param="step")
    if fork.plan is not None and (fork.args is not None or fork.outputs):
        raise BadRequestError("send either a plan, or the args or output of one step", param="plan")
    if fork.args is not None and fork.outputs:
        raise BadRequestError("a step with a given output is not called: send args or output", param="args")
    if fork.step is not None and fork.step not in ids:
        raise BadRequestError(f"there is no step {fork.step[:100]!r}; the steps are {', '.join(ids)}", param="step")
    if fork.outputs and any(plan.get_step(name).is_completion for name in fork.outputs):
        raise BadRequestError("the last step writes the answer; its text cannot be given", param="output")
    if fork.outputs and len(json.dumps(fork.outputs)) > MAX_OUTPUT_CHARS:
        raise TooLargeError(f"an output may have {MAX_OUTPUT_CHARS:,} characters as JSON", param="output")


def _edit_steps(plan: Plan, fork: ForkRequest) -> list[JsonObject]:
    """The steps of the fork as JSON, with the edit applied."""
    if fork.plan is not None:
        steps = fork.plan.get("steps")
        if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
            raise BadRequestError('plan: it must be an object with a list "steps"', param="plan")
        check_written_steps(steps)
        edited = [step for step in steps if isinstance(step, dict)]
    else:
        edited = [step.model_dump(mode="json") for step in plan.steps]
    before = {step.id: step for step in plan.steps}
    return [_edit_step(before.get(str(step.get("id"))), step, fork) for step in edited]


def _edit_step(before: PlanStep | None, step: JsonObject, fork: ForkRequest) -> JsonObject:
    """A step of the edited plan with the arguments of the fork.

    A step with other arguments loses the intent that was written for the old ones: a judge would hold the new result
    against it, and people would read it as the step's heading.
    """
    args = step.get("args", {})
    if step.get("id") == fork.step and fork.args is not None and isinstance(args, dict):
        args = {**args, **fork.args}
    is_stale = before is not None and args != before.args and step.get("intent") == before.intent
    return {**step, "args": args, **({"intent": ""} if is_stale else {})}


def _find_kept_steps(origin: RunState, wanted: Iterable[JsonObject], fork: ForkRequest) -> list[str]:
    """The steps whose results stay valid: they succeeded, and neither they nor what they depend on changed."""
    changed = set() if fork.step is None else {fork.step}
    given = set(fork.outputs or ())
    kept_steps: list[str] = []
    known_steps = {step.id: step for step in origin.plan_steps}
    for step in _sort_steps(wanted):
        step_id = str(step.get("id"))
        before = known_steps.get(step_id)
        redo = (
            before is None
            or before.is_completion
            or step_id in changed
            or origin.get_step(step_id).status != "succeeded"
            or not _is_same_step(before, step)
            or bool(_list_dependencies(step) & changed)
        )
        if redo or step_id in given:
            changed.add(step_id)
        else:
            kept_steps.append(step_id)
    return kept_steps


def _is_same_step(before: PlanStep, step: JsonObject) -> bool:
    """Whether an edited step makes the same call from the same inputs."""
    same_call = step.get("tool") == before.tool and step.get("args", {}) == before.args
    return same_call and _list_dependencies(step) == set(before.depends_on)


def _list_dependencies(step: JsonObject) -> set[str]:
    """The steps that a step depends on, those included that its arguments refer to."""
    named = step.get("depends_on")
    return {*map(str, named if isinstance(named, list) else ()), *find_references(step.get("args"))}


def _sort_steps(wanted: Iterable[JsonObject]) -> list[JsonObject]:
    """The steps with dependencies first. Steps in a cycle come last; the validation refuses them."""
    steps = list(wanted)
    ids = {str(step.get("id")) for step in steps}
    rest = [(step, _list_dependencies(step) & ids) for step in steps]
    ordered: list[JsonObject] = []
    done = set[str]()
    while ready := [step for step, needed in rest if needed <= done]:
        ordered += ready
        rest = [(step, needed) for step, needed in rest if not needed <= done]
        done |= {str(step.get("id")) for step in ready}
    return [*ordered, *(step for step, _ in rest)]


def _find_repeated_effects(
    origin: RunState, wanted: Iterable[JsonObject], done: Collection[str]
) -> list[tuple[str, str]]:
    """The steps that would be carried out although they, or another call of their tool, changed something."""
    tools = {tool for step_id in origin.steps if step_id not in done for tool in _list_effects(origin, step_id)}
    repeated = []
    for step in wanted:
        step_id, tool = str(step.get("id")), str(step.get("tool"))
        made = _list_effects(origin, step_id)
        if step_id not in done and (made or tool in tools):
            repeated.append((step_id, ", ".join(made) or tool))
    return repeated


def _list_effects(origin: RunState, step_id: str) -> list[str]:
    """The tools that a step called and that change something, also if their outcome is unknown.

    If the run took the step's result over from another fork, the call is in the log of an earlier run.
    """
    attempts = origin.get_step(step_id).attempts
    calls = [(call.intent.tool, call.intent.effect) for attempt in attempts for call in attempt.calls]
    if any(attempt.taken_from for attempt in attempts):
        calls += [(step.tool, step.effect) for step in origin.plan_steps if step.id == step_id]
    return list(dict.fromkeys(tool for tool, effect in calls if origin.has_side_effect(tool, effect)))


def _keep_effects(origin: RunState, repeated: Iterable[tuple[str, str]], fork: ForkRequest) -> list[str]:
    """The steps with side effects, to take their results over. Raises `ConflictError` where there is none."""
    for step_id, tool in repeated:
        if step_id == fork.step:
            raise ConflictError(f"step {step_id} ({tool}) is where the fork begins: its result cannot be kept")
        if origin.get_step(step_id).status != "succeeded":
            raise ConflictError(f"step {step_id} ({tool}) has no result that could be kept")
    return [step_id for step_id, _ in repeated]
