"""`RecipeMaker`: turns a run that succeeded into a recipe, tries it, and stages it until a person confirms it."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from pydantic import JsonValue

from agent.core.errors import AgentError, BadRequestError, ConflictError, PlanInvalidError
from agent.core.events import GivenPlan
from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.principal import Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.runs.forks import load_forkable_run
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AgentService
from gateway.features.recipes.engine import (
    Recipe,
    RecipeParameter,
    RecipeStore,
    RecipeTrial,
    SaveOptions,
    StoredRecipe,
    check_recipe_name,
)
from gateway.features.recipes.engine.recipe_parameters import (
    FoundParameters,
    RecipeModel,
    find_parameters,
    insert_fields,
    insert_parameters,
    make_slug,
)
from gateway.features.recipes.engine.recipe_plans import convert_value, fill_recipe

TRIAL_SECONDS: Final = 60.0
"""How long one trial may take."""
NO_OTHER_VALUE = "no other value is known; name one (try_values in the API, --try on the command line)"


class RecipeMaker:
    """Makes recipes. `service` and `list_taken_names` are called when they are needed: they are built later.

    `list_taken_names` returns the names of skills and tools, which no recipe may have.
    """

    def __init__(
        self,
        store: RecipeStore,
        service: Callable[[], AgentService[Any]],
        list_taken_names: Callable[[str], Collection[str]],
    ) -> None:
        self.store = store
        self._get_service = service
        self._list_taken_names = list_taken_names

    async def make_recipe(
        self,
        run_id: str,
        caller: Principal,
        options: SaveOptions,
        *,
        model: RecipeModel | None = None,
        from_outside: bool = False,
    ) -> StoredRecipe:
        """Makes and stages a recipe. Nothing is stored unless the trial with the run's own values passes.
        `from_outside`: the options may come from external text.

        Raises `NotFoundError`; `ConflictError` for a run that did not succeed or has nothing to repeat, for a name that
        is taken, and if the trial fails; `BadRequestError` for a bad name or value.
        """
        state = await self.check_request(run_id, caller.owner, options.name)
        steps = _list_repeatable_steps(state)
        parameters = await find_parameters(state.question, steps, _list_placeholders(state), model)
        recipe = _build_recipe(state, steps, parameters)
        wanted = parameters.name or make_slug(state.request.prompt[:40])
        name = options.name or await self._choose_name(caller.owner, wanted)
        tainted = recipe.tainted or from_outside
        recipe = recipe.model_copy(update={**options.list_given(), "name": name, "tainted": tainted})
        trials = await self._try_recipe(recipe, state, parameters, caller, options.try_values)
        if trials[0].status == "failed":
            raise ConflictError(
                f"no recipe was made: a trial with the values of run {run_id} failed ({trials[0].reason})",
                run_id=trials[0].run_id,
            )
        return await self.store.stage(caller.owner, recipe.model_copy(update={"trials": trials}))

    async def check_request(self, run_id: str, owner: str, name: str = "") -> RunState:
        """The state of the run to save. Raises what `make_recipe` raises before anything is tried."""
        if name:
            self._check_name(owner, name)
        state = await load_forkable_run(self._get_service(), owner, run_id)
        _list_repeatable_steps(state)
        return state

    async def find_run_to_save(self, caller: Principal, current_run: str) -> str:
        """The newest run of the current run's conversation that succeeded. Raises `ConflictError` without
        one.
        """
        service = self._get_service()
        here = await service.get_run(current_run, owner=caller.owner)
        if here.conversation_id is not None:
            for row in await service.list_runs(owner=caller.owner, status="succeeded", limit=100):
                is_here = row.conversation_id == here.conversation_id and row.run_id != current_run
                if is_here and await self._has_steps(row.run_id, caller.owner):
                    return row.run_id
        raise ConflictError("no earlier run of this conversation can be saved; name the run to save by its id")

    async def _has_steps(self, run_id: str, owner: str) -> bool:
        state = fold(run_id, await self._get_service().read_events(run_id, owner=owner))
        try:
            return bool(_list_repeatable_steps(state))
        except ConflictError:
            return False

    def _check_name(self, owner: str, name: str) -> None:
        if check_recipe_name(name) in {used_name.replace("_", "-") for used_name in self._list_taken_names(owner)}:
            raise ConflictError(f"{name!r} is the name of a skill or tool; choose another name", param="name")

    async def _choose_name(self, owner: str, wanted: str) -> str:
        """A free name like the wanted one."""
        base = (make_slug(wanted) or "recipe")[:58].strip("-")
        stored_names = {stored.name for stored in await self.store.list_all(owner)}
        for name in (base, *(f"{base}-{n}" for n in range(2, 1_000))):
            with contextlib.suppress(ConflictError, BadRequestError):
                self._check_name(owner, name)
                if name not in stored_names:
                    return name
        raise ConflictError("no free name was found; choose one", param="name")

    async def _try_recipe(
        self, recipe: Recipe, state: RunState, found: FoundParameters, caller: Principal, wanted: JsonObject
    ) -> tuple[RecipeTrial, RecipeTrial]:
        """Tries the recipe with the values of the run, and with others, both at once."""
        old = dict(found.literals)
        changed = _choose_other_values(recipe.parameters, found, wanted)
        runs = [self._try_values(recipe, state, caller, "old", old)]
        if changed:
            runs.append(self._try_values(recipe, state, caller, "changed", {**old, **changed}))
        trials = await asyncio.gather(*runs)
        if len(trials) > 1:
            return trials[0], trials[1]
        reason = NO_OTHER_VALUE if recipe.parameters else "it has no parameters"
        return trials[0], RecipeTrial(input="changed", status="not_tried", reason=reason)

    async def _try_values(
        self, recipe: Recipe, state: RunState, caller: Principal, kind: Any, values: Mapping[str, JsonValue]
    ) -> RecipeTrial:
        """Carries out the steps that only read, in a run that no list shows."""
        tried = _list_read_only_steps(recipe.steps)
        left = tuple(step.id for step in recipe.steps if step.id not in tried)
        shown_values = {one.name: values.get(one.name) for one in recipe.parameters if one.example is not None}
        trial = RecipeTrial(input=kind, status="not_tried", values=shown_values, tried=tuple(tried), not_tried=left)
        if not tried:
            return trial.model_copy(update={"reason": "every step changes something or needs a model"})
        try:
            filled = [step for step in fill_recipe(recipe, values) if step["id"] in tried]
            run_id = await self._start_trial(recipe, state, caller, filled)
        except PlanInvalidError as error:
            return trial.model_copy(update={"status": "failed", "reason": error.message})
        except AgentError as error:
            return trial.model_copy(update={"status": "failed", "reason": error.message})
        reason = await self._wait_for_trial(run_id, caller.owner)
        return trial.model_copy(update={"run_id": run_id, "status": "failed" if reason else "passed", "reason": reason})

    async def _start_trial(
        self, recipe: Recipe, state: RunState, caller: Principal, steps: Iterable[JsonObject]
    ) -> str:
        service = self._get_service()
        request = state.request.model_copy(update={"conversation_id": None, "stream": False})
        room = service.admit(request.model_copy(update={"room": state.room.id}), caller.owner)
        data: JsonObject = {"goal": recipe.goal, "steps": [*steps]}
        plan = service.validate_steps(request, room, caller.owner, data, known=(), finish=False)
        given = GivenPlan(plan=_name_trial(plan, recipe.name), from_run=state.run_id, final=True)
        return await service.start_run(
            request,
            caller,
            room=room,
            origin=RunOrigin(
                hidden=True, one_off=True, tainted=state.tainted, prompt_addresses=state.prompt_addresses, given=given
            ),
        )

    async def _wait_for_trial(self, run_id: str, owner: str) -> str:
        """The reason why the trial failed, or "" if it passed."""
        service = self._get_service()
        try:
            async with asyncio.timeout(TRIAL_SECONDS):
                await service.wait_until_end(run_id, owner=owner, waits=False)
        except TimeoutError:
            with contextlib.suppress(AgentError):
                await service.cancel_run(run_id, owner=owner, reason="the trial of a recipe took too long")
            return f"it took longer than {TRIAL_SECONDS:g} seconds"
        state = fold(run_id, await service.read_events(run_id, owner=owner))
        if state.status == "succeeded":
            return ""
        if state.status == "awaiting_approval":
            await service.cancel_run(run_id, owner=owner, reason="the trial of a recipe asks nobody")
            return "a step that only reads needs approval in this room"
        return _describe_failure(state)


def _list_repeatable_steps(state: RunState) -> tuple[PlanStep, ...]:
    """The steps of the run's plan. Raises `ConflictError` unless it succeeded and did more than write."""
    if state.status != "succeeded" or state.plan is None:
        raise ConflictError(
            f"run {state.run_id!r} did not succeed (it is {state.status}); only such a run can be saved"
        )
    if all(step.is_completion for step in state.plan.steps):
        raise ConflictError(f"run {state.run_id!r} has no steps to repeat: its answer was written without a tool")
    return state.plan.steps


def _list_placeholders(state: RunState) -> list[str]:
    guarded, recalled = state.input_guard, state.retrieval
    return [*(guarded.placeholders if guarded else ()), *(recalled.placeholders if recalled else ())]


def _build_recipe(state: RunState, steps: tuple[PlanStep, ...], found: FoundParameters) -> Recipe:
    """The recipe of the run's plan, still without a name."""
    approval = next((one for one in state.approvals if state.decisions.get(one.approval_id) is not None), None)
    literals = found.literals
    made = tuple(
        step.model_copy(
            update={
                "args": {key: insert_parameters(value, literals) for key, value in step.args.items()},
                "intent": insert_fields(step.intent, literals),
                "provider": None,
            }
        )
        for step in steps
    )
    request = insert_fields(state.question.strip() or state.request.prompt.strip(), literals)
    goal = insert_fields(state.plan.goal if state.plan else "", literals)
    return Recipe(
        name="recipe",
        description=(found.description or goal or request or "Repeats a run.")[:1024],
        request=request,
        goal=goal,
        language=state.plan.language if state.plan else "en",
        parameters=found.parameters,
        steps=made,
        from_run=state.run_id,
        room=state.room.id,
        tainted=state.tainted
        or any(state.plans[-1].is_from_outside(step.id) for step in steps if not step.is_completion),
        approval_reason=f"the run that this recipe was made from asked before: {approval.reason}" if approval else "",
        notes=found.notes,
    )


def _list_read_only_steps(steps: Iterable[PlanStep]) -> list[str]:
    """The tool calls that only read and need nothing but one another."""
    tried: list[str] = []
    for step in steps:  # dependencies come first
        if step.action == "tool" and step.effect == "read" and set(step.depends_on) <= set(tried):
            tried.append(step.id)
    return tried


def _choose_other_values(
    parameters: Iterable[RecipeParameter], found: FoundParameters, wanted: JsonObject
) -> JsonObject:
    """Values that differ from the run's. Raises `BadRequestError` for a wanted value that does not fit."""
    by_name = {one.name: one for one in parameters}
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise BadRequestError(
            f"there is no parameter {unknown[0]!r}; the parameters are {', '.join(by_name) or 'none'}",
            param="try_values",
        )
    chosen: JsonObject = {}
    for name, value in {**found.others, **wanted}.items():
        converted = convert_value(by_name[name], value)
        if converted is not None:
            chosen[name] = converted
        elif name in wanted:
            raise BadRequestError(f"{name} must be {by_name[name].type}, not {str(value)[:100]!r}", param="try_values")
    return {name: value for name, value in chosen.items() if value != found.literals.get(name)}


def _name_trial(plan: Plan, name: str) -> Plan:
    return plan.model_copy(update={"origin": "request", "origin_reason": f"a trial of the recipe {name!r}"})


def _describe_failure(state: RunState) -> str:
    """The first failed step of a run with the reason, or why the run ended."""
    for step in state.plan_steps:
        last = state.get_step(step.id).last
        verdict = last.verdict if last is not None else None
        if verdict is not None and verdict.outcome.value != "SUCCESS":
            return f"step {step.id} ({step.tool}): {verdict.reason}"
    return state.end_reason or f"the run is {state.status}"
