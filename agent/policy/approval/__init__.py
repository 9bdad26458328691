"""When a person must approve something, what they are asked, and what their reply decides.

- `rules`: whether a plan or a call needs an approval; `effect_arguments`: which of its values a person must allow;
- `digest`: the request, bound to the items, the plan's version and the tools' descriptions;
- `question`: the request as Markdown; `outgoing`: its first lines, where something goes and what leaves;
- `reply`: which run a message answers, and what its words decide;
- `signal`: the decision on its way to the run, and the events it becomes;
- `open_requests`: what an owner is asked; `plan_values`: which calls an approved plan showed.

Only `reply` and `open_requests` read runs; the rest is pure. `agent/execution/approvals.py` asks about one
call, `agent/execution/stages/approve.py` about a plan, and `agent/runs/decisions.py` submits what a person decided.
"""

from agent.policy.approval.digest import (
    ToolFingerprint,
    build_approval_request,
    compute_digest,
    compute_tool_digest,
)
from agent.policy.approval.open_requests import (
    OpenApproval,
    WaitingRuns,
    find_waiting_run,
    list_open_approvals,
    read_open_approvals,
)
from agent.policy.approval.outgoing import format_outgoing
from agent.policy.approval.plan_values import is_approved_with_plan
from agent.policy.approval.question import (
    APPROVAL_PREFIX,
    CONFIRMED_SOURCE,
    OWN_SOURCE,
    describe_items,
    format_approval_question,
    format_named_approval,
    format_question,
    format_reference,
    format_value,
    is_from_outside,
    parse_reference,
    split_approval_ids,
)
from agent.policy.approval.read_claims import describe_read_claim, list_read_servers
from agent.policy.approval.reply import (
    ASK_PREFIX,
    ASK_TOOL,
    ConversationTrust,
    find_reply,
    is_stray_decision,
    parse_decision,
)
from agent.policy.approval.rules import (
    asks_about_changes,
    changes_several,
    find_approval_reason,
    find_plan_approval,
    get_approved_item,
    get_call_decision,
    get_plan_feedback,
    is_plan_approved,
    is_plan_awaiting_approval,
    list_plan_items,
)
from agent.policy.approval.signal import (
    build_decision_events,
    build_expiry_events,
    build_signal_payload,
    list_addressed_requests,
)

__all__ = [
    "APPROVAL_PREFIX",
    "ASK_PREFIX",
    "ASK_TOOL",
    "CONFIRMED_SOURCE",
    "ConversationTrust",
    "OWN_SOURCE",
    "OpenApproval",
    "ToolFingerprint",
    "WaitingRuns",
    "asks_about_changes",
    "build_approval_request",
    "build_decision_events",
    "build_expiry_events",
    "build_signal_payload",
    "changes_several",
    "compute_digest",
    "compute_tool_digest",
    "describe_items",
    "find_approval_reason",
    "find_plan_approval",
    "find_reply",
    "find_waiting_run",
    "format_approval_question",
    "format_named_approval",
    "format_outgoing",
    "format_question",
    "format_reference",
    "format_value",
    "describe_read_claim",
    "get_approved_item",
    "list_read_servers",
    "get_call_decision",
    "get_plan_feedback",
    "is_approved_with_plan",
    "is_from_outside",
    "is_plan_approved",
    "is_plan_awaiting_approval",
    "is_stray_decision",
    "list_addressed_requests",
    "list_open_approvals",
    "list_plan_items",
    "parse_decision",
    "parse_reference",
    "read_open_approvals",
    "split_approval_ids",
]
