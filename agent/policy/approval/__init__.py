"""When a person must approve something, what they are asked, and what their reply decides.

- `rules`: whether a plan or a call needs an approval;
- `digest`: the request, bound to the items, the plan's version and the tools' descriptions;
- `question`: the request as Markdown;
- `reply`: what a person's words decide.

All of it is pure. `agent/execution/approvals.py` asks about one call, `agent/execution/stages/approve.py` about a plan.
"""

from agent.policy.approval.digest import ToolFingerprint, build_approval_request, compute_digest
from agent.policy.approval.question import (
    CONFIRMED_SOURCE,
    OWN_SOURCE,
    format_approval_question,
    format_question,
    format_value,
)
from agent.policy.approval.reply import parse_decision
from agent.policy.approval.rules import (
    MEMORY_TOOLS,
    changes_several,
    find_approval_reason,
    get_call_decision,
    get_plan_feedback,
    has_side_effect,
    is_plan_approved,
    is_plan_awaiting_approval,
    list_plan_items,
)

__all__ = [
    "CONFIRMED_SOURCE",
    "MEMORY_TOOLS",
    "OWN_SOURCE",
    "ToolFingerprint",
    "build_approval_request",
    "changes_several",
    "compute_digest",
    "find_approval_reason",
    "format_approval_question",
    "format_question",
    "format_value",
    "get_call_decision",
    "get_plan_feedback",
    "has_side_effect",
    "is_plan_approved",
    "is_plan_awaiting_approval",
    "list_plan_items",
    "parse_decision",
]
