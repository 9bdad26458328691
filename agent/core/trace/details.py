"""What a line of the trace shows of an event, and what `tool_results` says of a call. All pure."""

from agent.core import events as ev
from agent.core.models import JsonObject, PlanStep

SHOWN_CHARS = 2_000
"""How much of a result a trace line shows; the whole stands in the log."""
QUOTED_CHARS = 300
"""How much of one of many texts it shows: a memory, a sentence that was not borne out."""


def shorten(text: str, limit: int = SHOWN_CHARS) -> str:
    """Text as a trace line shows it."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters]"


def memory(body: ev.MemoryRetrieved) -> JsonObject:
    """What was remembered, and by whose vectors it was found."""
    detail: JsonObject = {"source": body.source, "messages": len(body.history), "items": len(body.items)}
    if body.items:
        detail["memories"] = [
            {"id": item.id, "text": shorten(item.text, QUOTED_CHARS), "score": item.score, "source": item.source}
            for item in body.items
        ]
    if body.embedder:
        detail["embedder"] = body.embedder
    if body.fallback_reason:
        detail["fallback_reason"] = body.fallback_reason
    return detail


def plan(body: ev.PlanProposed, rejected: list[str]) -> JsonObject:
    """A plan, and the replies that could not become one before it."""
    proposed = body.plan
    detail: JsonObject = {
        "version": proposed.version,
        "origin": proposed.origin,
        "steps": [f"{step.id}: {step.title}" for step in proposed.steps],
        "estimated_tools": [*proposed.tools()],
        "requested": body.requested,
        "effective": body.effective,
    }
    if reason := (body.fallback_reason or proposed.origin_reason):
        detail["reason"] = reason
    if body.replan_reason:
        detail["replan_reason"] = body.replan_reason
    if rejected:
        detail["rejected"] = [*rejected]
    if body.adjusted:
        detail["adjusted"] = list(body.adjusted)
    return detail


def approval(body: ev.ApprovalRequested) -> JsonObject:
    """What a person is asked to allow."""
    items = [item.model_dump(mode="json") for item in body.items]
    return {"reason": body.reason, "approval_id": body.approval_id, "items": [*items]}


def decision(body: ev.ApprovalDecided) -> JsonObject:
    """What they said."""
    detail: JsonObject = {"decision": body.decision, "by": body.by}
    if body.reason:
        detail["said"] = body.reason
    return detail


def attempt(body: ev.StepStarted, intent: str) -> JsonObject:
    """An attempt as it begins."""
    detail: JsonObject = {"intent": intent, "args": body.args}
    if body.feedback:
        detail["feedback"] = body.feedback
    if body.tainted:
        detail["tainted"] = True
    return detail


def never_begun(step: PlanStep, reason: str) -> JsonObject:
    """A step that was planned and not carried out."""
    return {"intent": step.intent, "depends_on": list(step.depends_on), "reason": reason}


def output(body: ev.StepFinished) -> JsonObject:
    """What an attempt produced, or why nothing."""
    made = body.output
    detail: JsonObject = {"output": shorten(made.text)}
    if made.error_code is not None:
        detail = {"error_code": made.error_code, "error": made.error}
    if made.fallback_reason:
        detail["fallback_reason"] = made.fallback_reason
    return detail


def verdict(body: ev.StepJudged) -> JsonObject:
    """What the supervisor said of an attempt."""
    given = body.verdict
    detail: JsonObject = {"outcome": given.outcome.value, "reason": given.reason, "by": given.by}
    if given.suggested_fix:
        detail["suggested_fix"] = given.suggested_fix
    if body.rule:
        detail["rule"] = body.rule
    return detail


def returned(body: ev.ToolReturned) -> JsonObject:
    """What a call came back with."""
    detail: JsonObject = {"output": shorten(body.text), "tries": body.tries}
    if body.error_code is not None:
        detail = {"error_code": body.error_code, "error": body.error, "tries": body.tries}
    if body.dropped:
        detail["dropped_args"] = list(body.dropped)
    return detail


def delegated(body: ev.SubAgentStarted) -> JsonObject:
    """What a sub-agent is to do, and with what."""
    detail: JsonObject = {"task": body.task, "tools": list(body.tools), "depth": body.depth}
    if body.withheld:
        detail["withheld"] = list(body.withheld)
    return detail


def handed_back(body: ev.SubAgentFinished) -> JsonObject:
    """What it came back with."""
    result = body.result
    detail: JsonObject = {
        "outcome": body.outcome,
        "success": result.success,
        "summary": shorten(result.summary),
        "uncertainties": [one.model_dump(mode="json") for one in result.uncertainties],
        "turns": body.turns,
        "effective": body.effective,
    }
    if body.fallback_reason:
        detail["fallback_reason"] = body.fallback_reason
    return detail


def guarded_answer(body: ev.OutputGuarded) -> JsonObject:
    """What the output policy found, and did about it."""
    detail: JsonObject = {"findings": list(body.findings), "action": body.action}
    if body.failure is not None:
        detail |= {"error_code": body.failure.error_code, "error": body.failure.message}
    return detail


def checked_answer(body: ev.AnswerChecked) -> JsonObject:
    """What the tailor's check said; the code stands where sentences failed it as a whole."""
    detail: JsonObject = {"claims": body.claims, "passed": body.passed, "action": body.action}
    if body.problems:
        detail["problems"] = [{"text": shorten(one.text, QUOTED_CHARS), "reason": one.reason} for one in body.problems]
    if body.rewritten:
        detail["rewritten"] = body.rewritten
    if body.failure is not None:
        detail |= {"error_code": body.failure.error_code, "error": body.failure.message}
    return detail


def tool_result(body: ev.ToolReturned, step_id: str | None, attempt: int | None) -> JsonObject:
    """An entry of `tool_results`: what a call came back with."""
    return {
        "tool": body.tool,
        "call_id": body.call_id,
        "step_id": step_id,
        "attempt": attempt,
        "ok": body.error_code is None,
        "output": body.output if body.blob is None else shorten(body.text),
        "text": shorten(body.text),
        "error_code": body.error_code,
        "error": body.error,
        "truncated": body.truncated,
        "tainted": body.tainted,
        "duration": round(body.duration, 4),
        "attempts": body.tries,
        "duration_ms": round(body.duration * 1000, 1),
        "implementation": body.implementation,
        **({"dropped_args": list(body.dropped)} if body.dropped else {}),
        **({"span": body.span} if body.span else {}),
    }


def no_return(call: ev.ToolCalled | ev.ToolRefused | ev.StepUnknown, code: str, error: str) -> ev.ToolReturned:
    """What stands in for the return of a call that has none: refused, interrupted, or of unknown outcome."""
    return ev.ToolReturned(call_id=call.call_id, tool=call.tool, error_code=code, error=error)
