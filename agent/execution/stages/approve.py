"""Approve: asks a person about the current plan. The run waits for the decision."""

from collections.abc import Iterable

from agent.core.events import ApprovalItem
from agent.core.models import JsonObject
from agent.core.plan_references import find_references
from agent.core.run_state import RunState
from agent.execution.approvals import (
    build_shown_text,
    compute_approval_deadline,
    explain_call,
    make_tool_fingerprinter,
)
from agent.execution.tool_gateway import build_call_context, foresee_failure
from agent.policy.approval import build_approval_request, find_approval_reason, get_plan_feedback, list_plan_items
from agent.policy.guardrails.plain_text import show_unseen
from agent.run_context.calls import CallSite
from agent.run_context.run import Run
from agent.tools import ExplainingTool

MAX_QUOTED_CHARS = 300
"""Characters of a person's reply, and of what was answered to it, that the next question repeats."""


async def approve(run: Run) -> None:
    """Records the question."""
    state = run.state
    reason = find_approval_reason(state)
    if state.plan is None or reason is None:
        return
    reason = f"{reason}{_describe_reply(state)}"
    request = build_approval_request(
        await _explain_items(run, list_plan_items(state)),
        reason,
        plan_version=state.plan.version,
        pin=make_tool_fingerprinter(run),
        expires_at=compute_approval_deadline(run),
    )
    await run.emit(request)


def _describe_reply(state: RunState) -> str:
    """What the question says of the person's reply to the last one, if the plan is the same; else ""."""
    last = next((one for one in reversed(state.approvals) if one.call_id is None), None)
    decided = state.decisions.get(last.approval_id) if last is not None else None
    items = list_plan_items(state)
    if (
        last is None
        or decided is None
        or decided.decision != "answered"
        or _list_calls(last.items) != _list_calls(items)
    ):
        return ""
    words = _quote(decided.reason)
    if get_plan_feedback(state):  # nobody could plan by it
        return f'. It could not be changed as you said ("{words}"); approve it as it is, or reject it'
    if explanation := state.plans[-1].explanation:
        return f'. Nothing in it was changed. You said "{words}"; the assistant answered: "{_quote(explanation)}"'
    return f'. Nothing in it was changed by what you said ("{words}"); approve it as it is, or reject it'


def _quote(text: str) -> str:
    """A text on one line, so that nothing in it looks like a part of the question. A model of a client may have written
    the reply, too.
    """
    line = " ".join(text.split())
    return show_unseen(line if len(line) <= MAX_QUOTED_CHARS else f"{line[:MAX_QUOTED_CHARS]}...")


def _list_calls(items: Iterable[ApprovalItem]) -> list[tuple[str, JsonObject]]:
    return [(item.tool, item.args) for item in items]


async def _explain_items(run: Run, items: tuple[ApprovalItem, ...]) -> tuple[ApprovalItem, ...]:
    """The items, with what their tools show of the calls, up to the first change: what stands after it may be about
    what it changes, and is shown when its turn has come.
    """
    first_change = next((at for at, item in enumerate(items) if item.changes), len(items) - 1)
    explained = [await _explain_item(run, item) for item in items[: first_change + 1]]
    return (*explained, *items[first_change + 1 :])


async def _explain_item(run: Run, item: ApprovalItem) -> ApprovalItem:
    registry = run.engine.registry
    if item.tool not in registry or find_references(item.args):
        return item
    tool = registry.get(item.tool)
    if not isinstance(tool, ExplainingTool):
        return item
    site, tainted = CallSite(item.step_id, 1), run.state.tainted
    if await foresee_failure(run, tool, item.args, site, tainted=tainted) is not None:
        return item
    explanation = await explain_call(run, tool, item.args, build_call_context(run, site, tainted=tainted))
    return item.model_copy(update=build_shown_text(run, None, explanation))
