"""The open approval requests of an owner or of all, by id."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.core.errors import NotFoundError
from agent.core.events import ApprovalRequested, Event, RunWaiting
from agent.core.run_reducer import fold
from agent.policy.approval.question import format_question
from agent.storage.journal import RunRow


class WaitingRuns(Protocol):
    """The runs that wait, and what they wait for. `AgentService` implements it."""

    async def list_waiting_runs(self, *, owner: str | None) -> list[RunRow]:
        """The newest runs that wait for a person, hidden ones too; None: of all owners."""
        ...

    async def get_run(self, run_id: str, *, owner: str) -> RunRow:
        """A run's row. Raises `NotFoundError`."""
        ...

    async def read_events(self, run_id: str, *, owner: str) -> list[Event]:
        """A run's events. Raises `NotFoundError`."""
        ...

    async def find_conversation_ends(self, conversation_id: str, *, owner: str) -> tuple[RunRow, RunRow] | None:
        """The oldest and the newest run of a conversation; None if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class OpenApproval:
    """An approval request that nobody has decided on.

    `asked_at` is UTC seconds since 1970. `asked_with` are the ids of all requests of the same question.
    """

    run: RunRow
    request: ApprovalRequested
    asked_at: float
    asked_with: tuple[str, ...]

    @property
    def question(self) -> str:
        """The question as a person is shown it, as Markdown."""
        return format_question((self.request,), self.run.run_id)


async def list_open_approvals(reader: WaitingRuns, owner: str | None) -> list[OpenApproval]:
    """The open approval requests of an owner (None: of all owners), newest first. Expired ones are left out."""
    return await _read_all(reader, await reader.list_waiting_runs(owner=owner))


async def list_open_approvals_of(reader: WaitingRuns, owner: str, run_ids: Sequence[str]) -> list[OpenApproval]:
    """The open approval requests of these runs of an owner, newest first. Other owners' runs are left out."""
    rows = []
    for run_id in run_ids:
        with contextlib.suppress(NotFoundError):
            rows.append(await reader.get_run(run_id, owner=owner))
    return await _read_all(reader, [row for row in rows if row.status == "awaiting_approval"])


async def _read_all(reader: WaitingRuns, runs: Sequence[RunRow]) -> list[OpenApproval]:
    """The open approval requests of runs, newest first."""
    open_approvals = []
    for run in runs:
        with contextlib.suppress(NotFoundError):  # deleted meanwhile
            open_approvals += await read_open_approvals(reader, run)
    return sorted(open_approvals, key=lambda one: one.asked_at, reverse=True)


async def find_waiting_run(reader: WaitingRuns, conversation_id: str, *, owner: str) -> RunRow | None:
    """The newest run of a conversation that waits for a person."""
    rows = await reader.list_waiting_runs(owner=owner)
    return next((row for row in rows if row.conversation_id == conversation_id and not row.hidden), None)


async def read_open_approvals(reader: WaitingRuns, run: RunRow) -> list[OpenApproval]:
    """The open approval requests of a run, oldest first."""
    events = await reader.read_events(run.run_id, owner=run.owner)
    asked_at = {event.body.approval_id: event.at for event in events if isinstance(event.body, ApprovalRequested)}
    waits = [event.body.approvals for event in events if isinstance(event.body, RunWaiting)]
    asked_with = waits[-1] if waits else ()
    return [
        OpenApproval(
            run,
            request,
            asked_at[request.approval_id],
            asked_with if request.approval_id in asked_with else (request.approval_id,),
        )
        for request in fold(run.run_id, events).list_open_approvals(time.time())
    ]
