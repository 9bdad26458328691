"""The changes that a sub-agent's model asks for in one turn: a person sees them together and decides once.

They are made one after the other, and the first failure ends them (`tool_turns.py`); one that was rejected before is
not asked about and ends nothing. A tool that shows a person what each call does is asked about by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.core.errors import ToolError
from agent.core.events import ApprovalItem, ToolReturned
from agent.core.models import JsonObject
from agent.execution.approvals import (
    ApprovalPendingError,
    ExaminedCall,
    ask_for_approval,
    build_call_item,
    build_denied_return,
    build_shown_text,
    describe_arguments,
    examine_call,
    explain_call,
    find_earlier_rejection,
    is_as_shown,
    make_tool_fingerprinter,
)
from agent.execution.tool_gateway import build_call_context, foresee_failure
from agent.policy.approval import compute_digest, get_call_decision
from agent.run_context.calls import CallSite
from agent.run_context.run import Run
from agent.tools import Tool


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A call that changes something, with valid arguments, before it is made."""

    tool: Tool
    args: JsonObject
    site: CallSite


@dataclass(frozen=True, slots=True)
class JointDecision:
    """Which of the changes may be made without a further question, and the results of those that may not, by call."""

    allowed: frozenset[str] = frozenset()
    refused: Mapping[str, ToolReturned] = field(default_factory=dict)
    set_aside: frozenset[str] = frozenset()
    """Those that a person had rejected before: the question left them out, so they do not end the others."""


async def decide_changes(run: Run, changes: Sequence[ProposedChange], *, tainted: bool) -> JointDecision:
    """Asks a person about all of these changes at once, if one of them needs it.

    A later change may build on an earlier one, so only the first is checked beforehand. Raises `ApprovalPendingError`
    after asking.
    """
    lead = changes[0].site
    refused: dict[str, ToolReturned] = {}
    items: dict[str, ApprovalItem] = {}
    for one in changes:
        item = build_call_item(run, one.tool, one.args, one.site)
        before = find_earlier_rejection(run, item, one.site, without_call=lead.call_id)
        if before is not None:
            refused[one.site.call_id] = build_denied_return(one.site, item.tool, before, again=True)
        else:
            items[one.site.call_id] = item
    open_changes = [one for one in changes if one.site.call_id in items]
    set_aside = frozenset(refused)
    attempt = run.state.get_step(lead.step_id).find_attempt(lead.attempt)
    recorded = get_call_decision(run.state, attempt, lead.call_id)
    pin = make_tool_fingerprinter(run)
    if recorded is not None and recorded[0].digest == compute_digest(items.values(), recorded[0].plan_version, pin):
        request, decision = recorded
        if decision in ("rejected", "answered"):
            decided = run.state.decisions[request.approval_id]
            denied = {
                one.site.call_id: build_denied_return(one.site, one.tool.spec.name, decided) for one in open_changes
            }
            return JointDecision(refused={**refused, **denied})
        if not decision:
            raise ApprovalPendingError
        if await _are_as_shown(run, open_changes, request.items, tainted=tainted):
            return JointDecision(frozenset(items), refused, set_aside)
    examined = {
        one.site.call_id: await examine_call(run, one.tool, one.args, one.site, tainted=tainted) for one in open_changes
    }
    reason = next((one.reason for one in examined.values() if one.reason is not None), None)
    if reason is None:
        return JointDecision(frozenset(items), refused, set_aside)
    first = open_changes[0]
    foreseen = await foresee_failure(run, first.tool, first.args, first.site, tainted=tainted)
    if foreseen is not None:
        return JointDecision(refused={**refused, first.site.call_id: foreseen}, set_aside=set_aside)
    described = [await _describe(run, one, items[one.site.call_id], examined, tainted=tainted) for one in open_changes]
    await ask_for_approval(run, tuple(described), reason, lead, ())
    raise ApprovalPendingError


async def _describe(
    run: Run, one: ProposedChange, item: ApprovalItem, examined: Mapping[str, ExaminedCall], *, tainted: bool
) -> ApprovalItem:
    explanation = await _explain(run, one, tainted=tainted)
    details = build_shown_text(run, examined[one.site.call_id].egress, explanation)
    return item.model_copy(update={**details, **describe_arguments(run, one.tool, one.args, one.site)})


async def _explain(run: Run, one: ProposedChange, *, tainted: bool) -> str:
    """The tool's explanation of a change; "" if it has none, or works on what an earlier change is to make."""
    try:
        return await explain_call(run, one.tool, one.args, build_call_context(run, one.site, tainted=tainted))
    except ToolError:
        return ""


async def _are_as_shown(
    run: Run, changes: Sequence[ProposedChange], asked: Sequence[ApprovalItem], *, tainted: bool
) -> bool:
    """Whether each change that is not yet made would still do what the question showed of it. Only the first depends on
    nothing that the others change."""
    attempt = run.state.get_step(changes[0].site.step_id).find_attempt(changes[0].site.attempt)
    if attempt is not None and attempt.find_call(changes[0].site.call_id) is not None:
        return True
    for one, seen in zip(changes, asked, strict=True):
        if seen.shown_sha256 and not is_as_shown(seen.shown_sha256, await _explain(run, one, tainted=tainted)):
            return False
    return True
