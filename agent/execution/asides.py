"""What models write besides the answer, as a run may show it: the words of plans, turns and verdicts, and the calls of
a client's own tools. Whatever the answer may not hold, by the policy of its room, they may not either."""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agent.core.events import AssistantTurn, Draft, StepOutput
from agent.core.models import JsonObject, Plan, PlanStep, StepOutcome
from agent.execution.release import Cleaner, answers, refused, released, released_step
from agent.execution.run import Run
from agent.execution.shield import secrets_of
from agent.execution.tool_deltas import written_call


def plan_shown(run: Run, plan: Plan) -> Plan:
    """A plan whose words hold no secret, nor, where the room keeps it from its answers, personal data. Its arguments
    stay: they are what will be done, and what is approved."""
    clean = Cleaner(run)
    words = (plan.goal, plan.reasoning, plan.origin_reason or "", *(step.intent for step in plan.steps))
    if not clean.suspects("\n".join(words)):
        return plan
    steps = tuple(step.model_copy(update={"intent": clean.text(step.intent)}) for step in plan.steps)
    reason = clean.text(plan.origin_reason) if plan.origin_reason else plan.origin_reason
    told = {"goal": clean.text(plan.goal), "reasoning": clean.text(plan.reasoning), "origin_reason": reason}
    return plan.model_copy(update={**told, "steps": steps})


def verdict_shown(run: Run, verdict: StepOutcome) -> StepOutcome:
    """A verdict that quotes nothing of what the plan may not hold."""
    clean = Cleaner(run)
    fix = verdict.suggested_fix
    if not clean.suspects("\n".join((verdict.reason, verdict.evidence, fix or ""))):
        return verdict
    told = {"reason": clean.text(verdict.reason), "evidence": clean.text(verdict.evidence)}
    return verdict.model_copy(update={**told, "suggested_fix": clean.text(fix) if fix else fix})


async def turn_kept(run: Run, turn: AssistantTurn, tools: Sequence[JsonObject]) -> AssistantTurn | None:
    """A model's turn as the log keeps it, which everybody who follows the run reads; `tools` are those it was given.
    One that the room refuses as an answer is not kept: after a crash the model is asked again. One that is a call of a
    tool, written as text, stays as it is: those are arguments, and the run goes on with them from the log."""
    if not turn.text or (not turn.tool_calls and _is_call(turn.text, tools)):
        return turn
    if not run.room.guard_output.whole:
        return turn.model_copy(update={"text": secrets_of(run).redact(turn.text)})
    answer = await released(run, turn.text)
    if answer.failure is None:
        return turn.model_copy(update={"text": answer.text})
    # What it calls is needed to go on, whatever was said with it.
    return turn.model_copy(update={"text": ""}) if turn.tool_calls else None


async def attempt_shown(run: Run, step: PlanStep, attempt: int, output: StepOutput) -> tuple[list[Draft], StepOutput]:
    """What an attempt came to by `released_step`, and the calls of a client's tools in it by the same policy."""
    told, output = await released_step(run, step, attempt, output)
    value = output.value
    calls = value.get("tool_calls") if isinstance(value, dict) and step.is_completion else None
    if not isinstance(value, dict) or not isinstance(calls, list) or not calls:
        return told, output
    if run.room.guard_output.whole and answers(run.state, step):
        said = "\n".join(text for call in calls for text in _texts(_written(call)))
        found = (await released(run, said)).told
        if found is not None and found.failure is not None:
            return refused(found, step, attempt, output)
        told += [Draft(found, step.id, attempt)] if found is not None else []
    clean = Cleaner(run)
    shown = [_call(clean, call) for call in calls]
    return told, output.model_copy(update={"value": {**value, "tool_calls": shown}})


def _is_call(text: str, tools: Sequence[JsonObject]) -> bool:
    written = written_call(text)
    if written is None:
        return False
    functions = (tool.get("function") for tool in tools)
    return any(isinstance(function, dict) and function.get("name") == written[0] for function in functions)


def _call(clean: Cleaner, call: JsonValue) -> JsonValue:
    function = call.get("function") if isinstance(call, dict) else None
    told = _written(call)
    if not isinstance(call, dict) or not isinstance(function, dict) or not clean.suspects(told):
        return call
    return {**call, "function": {**function, "arguments": _cleaned(clean, told)}}


def _cleaned(clean: Cleaner, told: str) -> str:
    """Arguments without what `clean` takes out, and still JSON; in numbers too, for those of cards are some."""
    from agent.guardrails.spans import mapped  # noqa: PLC0415 - loaded with the first request

    def number(digits: str) -> int | str:
        return int(digits) if clean.text(digits) == digits else clean.text(digits)

    try:
        arguments: JsonValue = json.loads(told, parse_int=number)
    except (ValueError, RecursionError):  # no JSON: the client will say so
        return clean.text(told)
    kept = mapped(arguments, lambda text, _: clean.text(text))
    return told if kept == json.loads(told) else json.dumps(kept, ensure_ascii=False)


def _written(call: JsonValue) -> str:
    """The arguments of a call, as the model wrote them."""
    function = call.get("function") if isinstance(call, dict) else None
    told = function.get("arguments") if isinstance(function, dict) else None
    return told if isinstance(told, str) else ""


def _texts(told: str) -> Iterator[str]:
    """Every text and number of arguments, and the names; the arguments themselves where they are no JSON."""
    try:
        waiting: list[JsonValue] = [json.loads(told)]
    except (ValueError, RecursionError):
        waiting = [told]
    while waiting:
        held = waiting.pop()
        if isinstance(held, dict):
            yield from held
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held
        elif held is not None and not isinstance(held, bool):
            yield str(held)
