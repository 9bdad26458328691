"""Asks a person to allow a tool call before it is made, once per call."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agent.answers.change_outcomes import describe_progress
from agent.core.errors import ToolDeniedError
from agent.core.events import ApprovalDecided, ApprovalItem, EventDraft, ToolReturned
from agent.core.models import ArgumentRole, JsonObject
from agent.core.plan_references import find_references
from agent.execution.argument_sources import describe_sources
from agent.execution.argument_trust import find_asked_arguments, is_chosen_by_plan
from agent.execution.egress_facts import find_egress_problem
from agent.execution.rejections import find_rejection
from agent.planning.amendments import explain_pending_call
from agent.policy.approval import (
    ToolFingerprint,
    build_approval_request,
    compute_digest,
    compute_tool_digest,
    describe_read_claim,
    find_plan_approval,
    get_approved_item,
    get_call_decision,
    is_approved_with_plan,
    is_plan_approved,
    list_read_servers,
)
from agent.policy.guardrails.egress import EgressFinding
from agent.policy.guardrails.plain_text import remove_live_parts
from agent.policy.redaction.inbound import restore_args
from agent.run_context.calls import CallSite
from agent.run_context.run import Run
from agent.tools import ExplainingTool, PreviewingTool, Tool, ToolContext


class ApprovalPendingError(Exception):
    """Raised when a call waits for a person. The attempt resumes after the decision."""


def make_tool_fingerprinter(run: Run) -> ToolFingerprint:
    """A function that describes a tool or skill of this process; an approval is bound to the description."""
    engine = run.engine

    def pin(name: str) -> JsonObject:
        if name in engine.registry:
            spec = engine.registry.get(name).spec
            # Left out where they say nothing, so that approvals of earlier versions hold.
            origin = "" if spec.origin == "builtin" else spec.origin
            more: JsonObject = {"meta": spec.meta, "read_claim": spec.read_claim, "origin": origin}
            filled = {name: value for name, value in more.items() if value}
            return {"description": spec.description, "input": spec.input_schema, "effect": spec.effect, **filled}
        visible_skill = next((skill for skill in engine.skills.list_visible(None) if skill.name == name), None)
        return {"description": visible_skill.description} if visible_skill is not None else {}

    return pin


def compute_approval_deadline(run: Run) -> float:
    """The time at which a question asked now expires, in UTC seconds since 1970."""
    return time.time() + run.engine.settings.approval_seconds


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """What was found about a call before it is made.

    `refused` is its result if it is not made: a person rejected it, or it is certain to fail. `untrusted` are the
    arguments of a change whose values come from outside, with their roles.
    """

    refused: ToolReturned | None = None
    untrusted: Mapping[str, ArgumentRole] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExaminedCall:
    """Why a person must allow a call (None: nobody must), its arguments from outside, and words that would leave."""

    reason: str | None
    untrusted: Mapping[str, ArgumentRole]
    egress: EgressFinding | None = None


async def check_approval(
    run: Run,
    tool: Tool,
    args: JsonObject,
    site: CallSite,
    before: tuple[EventDraft, ...],
    *,
    tainted: bool,
    foresee_failure: Callable[[], Awaitable[ToolReturned | None]],
    explain: Callable[[], Awaitable[str]],
) -> CheckedCall:
    """Whether the call may run.

    `foresee_failure` runs first, so that nobody is asked about a call that cannot succeed. `explain` returns what the
    person is shown besides the arguments. Emits `before` with the question. Raises `ApprovalPendingError` after asking.
    A reply that is neither yes nor no goes to the model; without a model, the gateway asks again and lists the replies
    that it understands.
    """
    examined = await examine_call(run, tool, args, site, tainted=tainted, explain=explain)
    reason, untrusted = examined.reason, examined.untrusted
    if site.is_allowed or (reason is None and not run.state.approvals):
        return CheckedCall(untrusted=untrusted)
    item = build_call_item(run, tool, args, site)
    decision, refusal = _get_recorded_decision(run, site, item)
    # A decision on the call holds, although what the person wrote may have made its values theirs.
    if reason is None and decision not in ("rejected", "answered", "waiting"):
        return CheckedCall(untrusted=untrusted)
    if decision == "approved" and await _is_shown_otherwise(run, tool, site, explain):
        decision = ""
    if decision == "approved":
        return CheckedCall(untrusted=untrusted)
    waits = decision == "waiting"
    ended = refusal if refusal is not None or waits else await foresee_failure()
    if before and (waits or ended is not None):
        await run.emit(*before)
    if ended is not None:
        return CheckedCall(ended)
    if waits:
        raise ApprovalPendingError
    why = explain_pending_call(tool.spec) if reason is None or decision == "answered" else reason
    if progress := describe_progress(run.state, site.step_id):
        why = f"{why}. The changes of this request: {progress}"
    details: dict[str, object] = {
        **build_shown_text(run, examined.egress, await explain()),
        **describe_arguments(run, tool, args, site),
    }
    await ask_for_approval(run, (item.model_copy(update=details),), why, site, before)
    raise ApprovalPendingError


async def examine_call(
    run: Run,
    tool: Tool,
    args: JsonObject,
    site: CallSite,
    *,
    tainted: bool,
    explain: Callable[[], Awaitable[str]] | None = None,
) -> ExaminedCall:
    """The reason why a person must allow a call, and what of it comes from outside."""
    spec = tool.spec
    egress = await find_egress_problem(run, spec, args, site) if spec.reads_over_network else None
    untrusted, asked_args = await _find_asked_arguments(run, tool, args, site, tainted=tainted)
    reason = _find_approval_reason(run, tool, args, site, tainted=tainted, asked_args=asked_args)
    if spec.read_claim and reason is not None:
        # What is the user's leaves with the user's words; the rest may be what another source holds in private.
        egress = await find_egress_problem(run, spec, {name: args[name] for name in untrusted}, site)
        if spec.read_claim not in list_read_servers(run.state):
            reason = describe_read_claim((spec.read_claim,))
        elif not spec.requires_approval:
            reason = None
    if reason is None or spec.requires_approval:
        reason = await _find_unseen_reason(run, tool, site, explain) or reason
    return ExaminedCall(reason or (egress.reason if egress is not None else None), untrusted, egress)


def find_earlier_rejection(
    run: Run, item: ApprovalItem, site: CallSite, *, without_call: str = ""
) -> ApprovalDecided | None:
    """The rejection of such a call, unless a person approved a plan that shows this one."""
    if _was_shown_in_plan(run, item.tool, site):
        return None
    return find_rejection(run.state, item, without_call=without_call)


def build_call_item(run: Run, tool: Tool, args: JsonObject, site: CallSite) -> ApprovalItem:
    """The part of a question that its approval is bound to."""
    spec, step = tool.spec, run.state.find_planned_step(site.step_id)
    return ApprovalItem(
        step_id=site.step_id,
        tool=spec.name,
        args=args,
        intent=step.intent if step is not None else "",
        effect=spec.effect,
        changes=spec.has_side_effect and not spec.read_claim,
        read_claim=spec.read_claim,
    )


def describe_arguments(run: Run, tool: Tool, args: JsonObject, site: CallSite) -> dict[str, object]:
    """The fields of an item that say where the arguments come from, and what they say."""
    spec = tool.spec
    return {
        "sources": describe_sources(run, spec.name, args, site),
        "roles": {name: spec.get_role(name) for name in args},
    }


async def ask_for_approval(
    run: Run, items: tuple[ApprovalItem, ...], reason: str, site: CallSite, before: tuple[EventDraft, ...]
) -> None:
    """Emits `before` and the question whether calls may be made; it is decided under the id of the first."""
    request = build_approval_request(
        items,
        reason,
        plan_version=run.state.plan.version if run.state.plan else 0,
        pin=make_tool_fingerprinter(run),
        expires_at=compute_approval_deadline(run),
        call_id=site.call_id,
    )
    await run.emit(*before, EventDraft(request, site.step_id, site.attempt))


async def explain_call(run: Run, tool: Tool, args: JsonObject, context: ToolContext) -> str:
    """The tool's explanation of the call for a person; "" if it has none."""
    if isinstance(tool, PreviewingTool):
        return await tool.preview(restore_args(run.state, args), context)
    if not isinstance(tool, ExplainingTool):
        return ""
    return await tool.explain(restore_args(run.state, args), context)


async def find_change_since_shown(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, context: ToolContext
) -> ToolDeniedError | None:
    """The error of a call that is repeated after an interruption, if it would do something else now than the person
    saw who allowed it; None otherwise.
    """
    if not await _is_shown_otherwise(run, tool, site, partial(explain_call, run, tool, args, context)):
        return None
    why = "was interrupted, and would do something else now than a person allowed; ask again"
    return ToolDeniedError(f"{tool.spec.name!r} {why}", agent_id=tool.spec.name)


def build_shown_text(run: Run, egress: EgressFinding | None, explanation: str = "") -> dict[str, object]:
    """The fields of an item for what the tool shows about its call, and for words that would leave."""
    raw = remove_live_parts(explanation)
    item_fields: dict[str, object] = (
        {"shown": run.redaction.redact_text(raw), "shown_sha256": _compute_sha256(raw)} if raw else {}
    )
    if egress is not None:
        parts = [egress.format_question(), *([raw] if raw else [])]
        item_fields["shown"] = run.redaction.redact_text("\n\n".join(parts))
    return item_fields


def _get_recorded_decision(run: Run, site: CallSite, item: ApprovalItem) -> tuple[str, ToolReturned | None]:
    """The person's last decision on this call, and the result that the decision gives the call.

    The decision is `waiting` if it is pending, and "" if nobody was asked.
    """
    recorded = get_call_decision(run.state, run.state.get_step(site.step_id).find_attempt(site.attempt), site.call_id)
    if recorded is None or recorded[0].digest != compute_digest(
        (item,), recorded[0].plan_version, make_tool_fingerprinter(run)
    ):
        before = find_earlier_rejection(run, item, site)
        return ("rejected", build_denied_return(site, item.tool, before, again=True)) if before else ("", None)
    request, decision = recorded
    if decision == "rejected" or (decision == "answered" and site.origin != "rules"):
        return decision, build_denied_return(site, item.tool, run.state.decisions[request.approval_id])
    return decision or "waiting", None


async def _is_shown_otherwise(run: Run, tool: Tool, site: CallSite, explain: Callable[[], Awaitable[str]]) -> bool:
    """Whether the call would do something else now than the person has seen: the approval is void then."""
    if not isinstance(tool, ExplainingTool):
        return False
    request = next((request for request in reversed(run.state.approvals) if request.call_id == site.call_id), None)
    if request is not None:
        item: ApprovalItem | None = request.items[0]
    else:
        item = get_approved_item(run.state, site.step_id) if _was_shown_in_plan(run, tool.spec.name, site) else None
    seen = item.shown_sha256 if item is not None else ""
    return bool(seen) and not is_as_shown(seen, await explain())


def is_as_shown(sha256: str, explanation: str) -> bool:
    """Whether an explanation is the one whose `shown_sha256` a question has."""
    return sha256 == _compute_sha256(remove_live_parts(explanation))


def _compute_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def _find_asked_arguments(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, *, tainted: bool
) -> tuple[dict[str, ArgumentRole], tuple[str, ...]]:
    """The arguments of a change that come from outside, and those of them that a person must allow."""
    spec = tool.spec
    if not tainted or not spec.has_side_effect or _was_shown_in_plan(run, spec.name, site):
        return {}, ()
    return await find_asked_arguments(run, spec, args, site)


def _find_approval_reason(
    run: Run, tool: Tool, args: JsonObject, site: CallSite, *, tainted: bool, asked_args: tuple[str, ...]
) -> str | None:
    """The reason why a person must allow this call; None if nobody must, or if the approved plan showed it."""
    spec = tool.spec
    if spec.requires_approval and not _was_shown_in_plan(run, spec.name, site):
        return "the operator requires approval for every call of this tool"
    if not spec.has_side_effect:
        return None
    if _has_changed_since_plan(run, spec.name):
        return "its tool has changed since you approved the plan"
    if asked_args:
        return "this call makes a change using untrusted arguments"
    chosen = not tainted or _was_shown_in_plan(run, spec.name, site) or is_chosen_by_plan(run, spec, args, site)
    if not chosen:
        return "this call makes a change that no plan named before untrusted text was read"
    step = run.state.find_planned_step(site.step_id)
    is_of_skill = step is not None and step.action == "skill"
    if is_of_skill and step is not None and (run.room.approval != "never" or step.tools is None):
        return "a skill wants to change something"
    is_asked = bool(site.span) and run.room.approval != "never"
    if is_asked and not is_approved_with_plan(run.state, site.step_id, spec, args):
        return "a sub-agent wants to change something"
    return None


async def _find_unseen_reason(
    run: Run, tool: Tool, site: CallSite, explain: Callable[[], Awaitable[str]] | None
) -> str | None:
    """The reason to show a person what the call would do: nobody has seen it, or it is something else by now."""
    if explain is None:
        return None
    was_shown = _was_shown_in_plan(run, tool.spec.name, site)
    if not (was_shown or tool.spec.requires_approval) or not isinstance(tool, ExplainingTool):
        return None
    item = get_approved_item(run.state, site.step_id) if was_shown else None
    seen = item.shown_sha256 if item is not None else ""
    # The question about a plan shows nothing of what an earlier change of the same plan may change.
    is_seen = is_as_shown(seen, await explain()) if seen else not tool.spec.requires_approval
    return None if is_seen else "this runs only after a person has reviewed it"


def _was_shown_in_plan(run: Run, tool: str, site: CallSite) -> bool:
    """Whether the person who approved the plan saw this call with all of its arguments."""
    step = run.state.find_planned_step(site.step_id)
    if step is None or step.tool != tool or site.span:
        return False
    if not is_plan_approved(run.state) or find_references(step.args):
        return False
    return not _has_changed_since_plan(run, tool)


def _has_changed_since_plan(run: Run, tool: str) -> bool:
    """Whether a tool of the plan that a person approved is another one now: its server has changed it, or an update."""
    approved = find_plan_approval(run.state)
    seen = approved.tools.get(tool) if approved is not None else None
    return seen is not None and seen != compute_tool_digest(tool, make_tool_fingerprinter(run))


def build_denied_return(site: CallSite, tool: str, decided: ApprovalDecided, *, again: bool = False) -> ToolReturned:
    """The result of a call that a person did not allow. A plain no has the stage `approve`; a reply that asks for
    something else has none."""
    reason_note = f": {decided.reason}" if decided.reason else ""
    message = f"the user did not allow this call{reason_note}" + (" (asked before in this run)" if again else "")
    stage = "approve" if decided.decision == "rejected" else ""
    return ToolReturned(
        call_id=site.call_id,
        tool=tool,
        error_code="ERR_TOOL_DENIED",
        error=message,
        error_stage=stage,
        text=message,
    )
