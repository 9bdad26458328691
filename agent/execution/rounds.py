"""Planning in rounds, seen from the run: whether it plans so, and the calls and results of its rounds so far."""

from dataclasses import replace

from agent.core.models import PlanStep
from agent.core.run_state import StepState
from agent.execution.decide import find_doubt
from agent.execution.ground import find_empty_sources
from agent.execution.hidden_errors import find_failure_of_item
from agent.execution.repeated_calls import UNKNOWN_OUTCOME
from agent.execution.run_catalogue import build_catalogue, drop_unusable
from agent.planning.list_steps import FOR_EACH
from agent.planning.open_parts import MISSING, PARTS
from agent.planning.request import RoundCall
from agent.run_context.outputs import load_output, read_for_model, to_step_output
from agent.run_context.run import Run
from agent.tools.catalogue import Catalogue

NO_RESULT = "no result came back"


def may_look_again(run: Run) -> bool:
    """Whether a planner of rounds may call once more for what an answer holds without evidence: once in a run."""
    looked = any(find_doubt(run.state, proposed.plan) for proposed in run.state.plans[:-1])
    return not looked and run.state.round_count < run.room.budgets.max_rounds


async def build_round_catalogue(run: Run) -> Catalogue:
    """The skills and tools of every round of a run, without those whose source holds nothing.

    The skills that come with the gateway only say how to use tools that rounds call themselves. A small model takes
    them for tools that do the work. Rooms that name them, commands and operators' own skills are not concerned.
    """
    usable = drop_unusable(build_catalogue(run), await find_empty_sources(run))
    if run.room.skills is not None or run.state.request.metadata.get("skills"):
        return usable
    own = {skill.name for skill in run.engine.skills.list_visible(None) if skill.origin != "shipped"}
    return replace(usable, skills=tuple(card for card in usable.skills if card.name in own))


async def list_round_calls(run: Run) -> tuple[RoundCall, ...]:
    """The calls of the model's plans so far with their results, oldest first."""
    state = run.state
    known_ids: set[str] = set()
    rounds = []
    for number, proposed in enumerate(state.plans):
        end = next((step.args for step in proposed.plan.steps if step.is_plan_more), {})
        todo, parts = end.get(MISSING), end.get(PARTS)
        missing = tuple(map(str, todo)) if isinstance(todo, list) else (proposed.plan.reasoning,)
        served = parts if isinstance(parts, dict) else {}
        for step in proposed.plan.steps:
            own = state.get_step(step.id)
            if step.id in known_ids or not step.is_work or own.output is None:
                continue
            known_ids.add(step.id)
            failed = own.status != "succeeded"
            part = str(served.get(step.id) or step.intent)
            if calls := await _list_calls_of_list(run, step, own):
                rounds += [replace(call, number=number, missing=missing, part=part) for call in calls]
                continue
            text = await _describe_result(run, own)
            unknown = own.output.error_code == UNKNOWN_OUTCOME
            call = RoundCall(number, step.tool, step.args, text, failed, missing, part, unknown)
            rounds.append(replace(call, selected=state.selections.get(step.id, "")))
    return tuple(rounds)


async def _list_calls_of_list(run: Run, step: PlanStep, state: StepState) -> list[RoundCall]:
    """Each call that a list step has made; [] for other steps."""
    attempt = state.last
    if attempt is None or FOR_EACH not in step.args:
        return []
    spec = run.engine.registry.find_spec(step.tool)
    calls = []
    for call in attempt.calls:
        args = call.intent.args
        if call.result is None:
            calls.append(RoundCall(0, step.tool, args, NO_RESULT, True, may_have_happened=True, list_step=step.id))
            continue
        output = await load_output(run, to_step_output(call.result))
        one = step.model_copy(update={"args": args, "effect": spec.effect if spec is not None else step.effect})
        is_raising = spec is not None and spec.always_raises_errors
        error = output.error or ("" if is_raising or output.error_code else find_failure_of_item(one, output))
        failed, is_unknown = bool(output.error_code or error), output.error_code == UNKNOWN_OUTCOME
        text = error or read_for_model(run, output)
        calls.append(RoundCall(0, step.tool, args, text, failed, may_have_happened=is_unknown, list_step=step.id))
    return calls


async def _describe_result(run: Run, step: StepState) -> str:
    """The result of a step, or why it failed: the tool's own message, or else the verdict's reason."""
    output = step.output
    if output is None:
        return ""
    verdict = step.last.verdict if step.last is not None else None
    if step.status != "succeeded" and verdict is not None:
        return output.error or verdict.reason
    return read_for_model(run, await load_output(run, output))
