"""Builds approval requests, each bound by a digest to what the person is shown. Pure, except for random ids."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.core.models import JsonObject
from agent.policy.approval.question import APPROVAL_PREFIX

APPROVAL_ID_BYTES = 16
"""Random bytes of an approval's id: who has not read it cannot name it (128 bits, as a UUID)."""

ToolFingerprint = Callable[[str], JsonObject]
"""The description of a tool by its name. An approval is void if the description changes."""


def build_approval_request(
    items: tuple[ApprovalItem, ...],
    reason: str,
    *,
    plan_version: int,
    pin: ToolFingerprint,
    expires_at: float,
    call_id: str | None = None,
) -> ApprovalRequested:
    """Builds an approval request, bound by its digest to the items, the plan's version and the tools' descriptions."""
    return ApprovalRequested(
        approval_id=f"{APPROVAL_PREFIX}{secrets.token_hex(APPROVAL_ID_BYTES)}",
        digest=compute_digest(items, plan_version, pin),
        plan_version=plan_version,
        reason=reason,
        items=items,
        tools={name: compute_tool_digest(name, pin) for name in sorted({item.tool for item in items})},
        call_id=call_id,
        expires_at=expires_at,
    )


def compute_digest(items: Iterable[ApprovalItem], plan_version: int, pin: ToolFingerprint) -> str:
    """The SHA-256 (hex) of the items, the plan's version and the current descriptions of the tools."""
    items = tuple(items)
    content = {
        "version": plan_version,
        "items": [
            item.model_dump(mode="json", exclude={"sources", "roles", "shown", "shown_sha256", "read_claim"})
            for item in items
        ],
        "tools": {name: pin(name) for name in sorted({item.tool for item in items})},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def compute_tool_digest(name: str, pin: ToolFingerprint) -> str:
    """The SHA-256 (hex) of a tool's current description."""
    return hashlib.sha256(json.dumps(pin(name), sort_keys=True, ensure_ascii=True).encode()).hexdigest()
