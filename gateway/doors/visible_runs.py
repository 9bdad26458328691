"""Whose runs a caller reads. What an administrator reads of other owners is in the audit record before it is sent."""

from typing import Literal

from agent.storage.audit import AuditEvent
from agent.storage.journal import RunRow
from gateway.access.authentication import Caller
from gateway.bootstrap import Stepgate

RunPart = Literal["run", "events", "prompts", "artifact"]


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
