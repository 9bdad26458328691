"""The details that trace lines show of events, and the entries of `tool_results`. All functions are pure."""

from collections import Counter

from agent.core import events as ev
from agent.core.models import JsonObject, PlanStep

MAX_TEXT_CHARS = 2_000
"""Longest result in a trace line, in characters. The log has the whole."""
MAX_QUOTE_CHARS = 300
"""Longest single text in a list of texts, such as memories or unsupported sentences."""


def shorten(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Shortens a text for a trace line."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters]"


def describe_memory(body: ev.MemoryRetrieved) -> JsonObject:
    """Describes what was remembered, and whose vectors found it."""
    detail: JsonObject = {"source": body.source, "messages": len(body.history), "items": len(body.items)}
    if body.items:
        detail["memories"] = [
            {"id": item.id, "text": shorten(item.text, MAX_QUOTE_CHARS), "score": item.score, "source": item.source}
            for item in body.items
        ]
    outside = [label for label in (*body.labels, body.prompt_label) if label is not None and not label.trusted]
    if outside:
        detail["untrusted_messages"] = dict(Counter(label.source for label in outside))
    if body.embedder:
        detail["embedder"] = body.embedder
    if body.fallback_reason:
        detail["fallback_reason"] = body.fallback_reason
    return detail


def describe_intents(body: ev.IntentClassified) -> tuple[str, JsonObject]:
    """The title and the details of what a router read in a request."""
    read = ", ".join(f"{one.category} {one.action} ({one.confidence:g})" for one in body.intents)
    detail: JsonObject = {"intents": [one.model_dump(mode="json") for one in body.intents]}
    if body.task_plan is not None:
        detail["task_plan"] = body.task_plan.model_dump(mode="json")
    if body.question:
        detail["question"] = shorten(body.question)
    if body.reason:
        detail["reason"] = shorten(body.reason)
    return f"intent: {read}" if read else "intent: not recognised", detail


def describe_plan(body: ev.PlanProposed, rejected: list[str]) -> JsonObject:
    """Describes a plan and the replies before it that were rejected."""
    proposed = body.plan
    detail: JsonObject = {
        "version": proposed.version,
        "origin": proposed.origin,
        "steps": [f"{step.id}: {step.title}" for step in proposed.steps],
        "estimated_tools": [*proposed.list_tools()],
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
    if body.tainted_by:
        detail["tainted_by"] = [*body.tainted_by]
        detail["from_outside"] = [
            {"step": label.step_id, "tool_trusted": label.tool_trusted, "untrusted_args": [*label.untrusted_args]}
            for label in body.labels
            if not label.is_trusted
        ]
    return detail


def describe_approval(body: ev.ApprovalRequested) -> JsonObject:
    """Describes what a person is asked to approve."""
    items = [item.model_dump(mode="json") for item in body.items]
    return {"reason": body.reason, "approval_id": body.approval_id, "items": [*items]}


def describe_decision(body: ev.ApprovalDecided) -> JsonObject:
    """A person's decision: what, by whom, and in which words."""
    detail: JsonObject = {"decision": body.decision, "by": body.by}
    if body.reason:
        detail["said"] = body.reason
    return detail


def describe_attempt(body: ev.StepStarted, intent: str) -> JsonObject:
    """Describes an attempt at its start."""
    detail: JsonObject = {"intent": intent, "args": body.args}
    if body.feedback:
        detail["feedback"] = body.feedback
    if body.tainted:
        detail["tainted"] = True
    if body.taken_from:
        detail["taken_from"] = body.taken_from
    return detail


def describe_skipped_step(step: PlanStep, reason: str) -> JsonObject:
    """Describes a planned step that did not run."""
    return {"intent": step.intent, "depends_on": list(step.depends_on), "reason": reason}


def describe_output(body: ev.StepFinished) -> JsonObject:
    """Describes the output of an attempt, or its error."""
    made = body.output
    detail: JsonObject = {"output": shorten(made.text)}
    if made.error_code is not None:
        detail = {"error_code": made.error_code, "error": made.error}
    if made.fallback_reason:
        detail["fallback_reason"] = made.fallback_reason
    return detail


def describe_verdict(body: ev.StepJudged) -> JsonObject:
    """Describes the supervisor's verdict on an attempt."""
    given = body.verdict
    detail: JsonObject = {"outcome": given.outcome.value, "reason": given.reason, "by": given.by}
    if given.suggested_fix:
        detail["suggested_fix"] = given.suggested_fix
    if body.rule:
        detail["rule"] = body.rule
    if body.judge_error:
        detail["judge_error"] = body.judge_error
    return detail


def describe_tool_return(body: ev.ToolReturned) -> JsonObject:
    """Describes the result of a tool call."""
    detail: JsonObject = {"output": shorten(body.text), "tries": body.tries}
    if body.error_code is not None:
        detail = {"error_code": body.error_code, "error": body.error, "tries": body.tries}
    if body.dropped:
        detail["dropped_args"] = list(body.dropped)
    if body.same_as:
        detail["same_as"] = body.same_as
    return detail


def describe_subagent_start(body: ev.SubAgentStarted) -> JsonObject:
    """Describes a sub-agent's task and tools."""
    detail: JsonObject = {"task": body.task, "tools": list(body.tools), "depth": body.depth}
    if body.withheld:
        detail["withheld"] = list(body.withheld)
    return detail


def describe_subagent_end(body: ev.SubAgentFinished) -> JsonObject:
    """Describes the result of a sub-agent."""
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


def describe_output_guard(body: ev.OutputGuarded) -> JsonObject:
    """Describes the findings of the output policy and their consequence."""
    detail: JsonObject = {"findings": list(body.findings), "action": body.action}
    if body.failure is not None:
        detail |= {"error_code": body.failure.error_code, "error": body.failure.message}
    return detail


def describe_answer_check(body: ev.AnswerChecked) -> JsonObject:
    """Describes the check of an answer against its passages. The error code is set if the whole check failed."""
    detail: JsonObject = {"claims": body.claims, "passed": body.passed, "action": body.action}
    if body.problems:
        detail["problems"] = [
            {"text": shorten(one.text, MAX_QUOTE_CHARS), "reason": one.reason} for one in body.problems
        ]
    if body.rewritten:
        detail["rewritten"] = body.rewritten
    if body.unchecked:
        detail["unchecked"] = body.unchecked
    if body.failure is not None:
        detail |= {"error_code": body.failure.error_code, "error": body.failure.message}
    return detail


def build_tool_result(body: ev.ToolReturned, step_id: str | None, attempt: int | None) -> JsonObject:
    """Builds the entry of `tool_results` for a call."""
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
        **({"same_as": body.same_as} if body.same_as else {}),
        **({"span": body.span} if body.span else {}),
    }


def build_missing_return(
    call: ev.ToolCalled | ev.ToolRefused | ev.StepUnknown, code: str, error: str
) -> ev.ToolReturned:
    """Builds a stand-in for the result of a call that has none: refused, interrupted, or of unknown outcome."""
    return ev.ToolReturned(call_id=call.call_id, tool=call.tool, error_code=code, error=error)


def describe_failed_upstreams(body: ev.ModelReturned) -> tuple[str, JsonObject]:
    """The title and the details of a call whose first model did not answer."""
    names = ", ".join(failed.model for failed in body.failed_upstreams)
    end = f"; {body.model} answered" if body.error_code is None else ""
    return f"{names} did not answer{end}", {
        "purpose": body.purpose,
        "failed_upstreams": [failed.model_dump(mode="json") for failed in body.failed_upstreams],
    }
