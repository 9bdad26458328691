"""The sources of a call's arguments, as the question to a person states them."""

from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.core.plan_references import find_references
from agent.core.run_state import RunState
from agent.execution.argument_trust import (
    find_called_step,
    find_joined,
    is_own_value,
    is_planned_by_user,
    refers_to_result,
)
from agent.execution.confirmed_values import is_confirmed, list_confirmed_values
from agent.planning.list_steps import list_source_ids
from agent.policy.approval import CONFIRMED_SOURCE, OWN_SOURCE
from agent.policy.guardrails.plain_text import format_literal
from agent.run_context.calls import CallSite
from agent.run_context.message_labels import collect_own_words
from agent.run_context.run import Run

MAX_NAMED = 3
"""Results that are named as the source of one argument."""


def describe_sources(run: Run, tool: str, args: JsonObject, site: CallSite) -> dict[str, str]:
    """For each argument where its value comes from: the user's words, results of earlier steps, or a model."""
    words, step = collect_own_words(run), run.state.find_planned_step(site.step_id)
    confirmed = list_confirmed_values(run.state, without_call=site.call_id)
    spec = run.engine.registry.find_spec(tool)
    joined = find_joined(words, spec, args)
    planned = step.args if step is not None and step.action != "skill" and not site.span else {}
    called = find_called_step(run.state, tool, site)
    outside = [
        name
        for name in args
        if called is not None and refers_to_result(called, name) and not is_planned_by_user(run.state, called, name)
    ]
    return {
        name: OWN_SOURCE
        if (name in joined and name not in outside)
        or is_own_value(words, spec, name, value, is_referred=name in outside)
        else CONFIRMED_SOURCE
        if is_confirmed(confirmed, tool, name, value)
        else _describe_source(run, site, step, planned.get(name))
        for name, value in args.items()
        if value is not None and (value not in ("", [], {}) or name in outside)
    }


def _describe_source(run: Run, site: CallSite, step: PlanStep | None, planned: JsonValue) -> str:
    steps = run.state.steps_of_all_plans
    made_of = list_source_ids(step, planned) if step is not None else find_references(planned)
    named = [steps[one] for one in sorted(made_of) if one in steps]
    if named:
        return f"from {_join_results(run, [step.id for step in named], steps)}, not from you"
    read = _list_read_tools(run.state, site)
    if read:
        return f"written by a model that had read {', '.join(map(format_literal, read[:MAX_NAMED]))}, not by you"
    return "written by a model, not by you"


def _join_results(run: Run, ids: list[str], steps: dict[str, PlanStep]) -> str:
    """Names the results, and of what they were made: of an extraction, the document it read says more than the step."""
    origins = list(dict.fromkeys(origin for one in ids for origin in _trace_origins(one, steps)))
    named_results = [_format_result(run, steps[one]) for one in origins[:MAX_NAMED]]
    return " and ".join(named_results) + (" and others" if len(origins) > MAX_NAMED else "")


def _trace_origins(step_id: str, steps: dict[str, PlanStep], depth: int = 8) -> list[str]:
    before = [one for one in sorted(find_references(dict(steps[step_id].args))) if one in steps and one != step_id]
    if not before or not depth:
        return [step_id]
    return [origin for one in before for origin in _trace_origins(one, steps, depth - 1)]


def _format_result(run: Run, step: PlanStep) -> str:
    output = run.state.get_step(step.id).output
    names = [source.url or source.name for source in output.sources] if output is not None else []
    about = next((str(value) for value in step.args.values() if isinstance(value, str) and value), "")
    what = names[0] if names else about
    return f"the result of {format_literal(step.tool)}" + (f" ({format_literal(what[:100])})" if what else "")


def _list_read_tools(state: RunState, site: CallSite) -> list[str]:
    attempt = state.get_step(site.step_id).find_attempt(site.attempt)
    calls = attempt.calls if attempt is not None else ()
    return list(dict.fromkeys(call.intent.tool for call in calls if call.result is not None and call.result.tainted))
