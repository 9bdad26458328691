"""Whose runs a caller reads. What an administrator reads of other owners is in the audit record before it is sent."""

from collections.abc import Sequence
from typing import Literal

from agent.core.models import JsonObject
from agent.policy.approval import OpenApproval
from agent.storage.audit import AuditEvent
from agent.storage.journal import RunRow
from gateway.access.authentication import Caller
from gateway.bootstrap import Stepgate

RunPart = Literal["run", "events", "prompts", "artifact"]
MOST_RECORDS = 1_000
"""How many records are searched for those of questions that were read before."""


async def get_visible_run(stepgate: Stepgate, caller: Caller, run_id: str, part: RunPart) -> RunRow:
    """The row of a run of which the caller reads a part. Raises `NotFoundError` for a run that the caller may not read,
    and `StoreError` if reading another owner's run cannot be recorded.
    """
    row = await stepgate.journal.get_run(run_id, owner=caller.readable_owner)
    if row.owner != caller.owner:
        await stepgate.audit.record(
            AuditEvent("run.read", run_id, owner=row.owner, by=caller.name, detail={"part": part})
        )
    return row


async def check_listed_owner(stepgate: Stepgate, caller: Caller, owner: str | None) -> None:
    """Records that the caller lists the runs of another owner; None: of all owners.

    Raises `ScopeError` if the caller may not, and `StoreError` if it cannot be recorded.
    """
    caller.require_readable(owner)
    if owner != caller.owner:
        whose = owner or "*"
        await stepgate.audit.record(AuditEvent("run.list", whose, owner=whose, by=caller.name))


async def record_read_approvals(stepgate: Stepgate, caller: Caller, read: Sequence[OpenApproval]) -> None:
    """Records which questions of other owners the caller reads, each once: an inbox is looked at every few seconds.

    Raises `StoreError` if it cannot be recorded.
    """
    others = [one for one in read if one.run.owner != caller.owner]
    if not others:
        return
    since = min(one.asked_at for one in others)
    entries = await stepgate.audit.list_entries(since=since, action="run.read", limit=MOST_RECORDS)
    recorded = {entry.detail.get("approval") for entry in entries if entry.principal == caller.name}
    for one in others:
        if one.request.approval_id not in recorded:
            detail: JsonObject = {"part": "approval", "approval": one.request.approval_id}
            await stepgate.audit.record(
                AuditEvent("run.read", one.run.run_id, owner=one.run.owner, by=caller.name, detail=detail)
            )
