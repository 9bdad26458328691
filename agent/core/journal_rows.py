"""What the journal's drivers share: columns, what events mean for a run's row, refusals, in-process wake-ups."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from agent.core.codec import whole
from agent.core.errors import ConflictError, NotFoundError, StaleEpochError
from agent.core.events import Draft, Event, RunCancelled, RunClaimed, RunFailed, RunSuspended, RunWaiting
from agent.core.journal import RunRow
from agent.core.models import RunStatus

ROW = (
    "run_id, owner, room, status, hidden, title, conversation_id, epoch, last_seq, created_at, updated_at, "
    "worker, lease_until"
)
EVENT = "run_id, seq, epoch, type, v, step_id, attempt, data, at"
LAST_SEQ = 2**63 - 1
"""The largest number a database can compare; positions come from clients."""
WORDS = "SELECT payload FROM signals WHERE run_id = ? AND kind IN ('approve', 'reject', 'answer')"
"""What was said of a run's approvals so far."""
TITLE_CHARS = 80
IDLE = (
    "(status <> 'awaiting_approval' OR lease_until <= {now} OR EXISTS "
    "(SELECT 1 FROM signals WHERE signals.run_id = runs.run_id AND signals.at >= runs.updated_at))"
)
"""Which runs nobody holds are to be taken up: a run that waits for a person only with their word, or when its time is
over. What was said before it began to wait has been obeyed."""
CHECK_BYTES = 65_536
"""What must fit for the store to count as working: a few events of the largest kind."""


def title_of(prompt: str) -> str:
    """A run's title: the beginning of its prompt in one line."""
    return " ".join(whole(prompt[: 4 * TITLE_CHARS]).split())[:TITLE_CHARS]


def ages(drafts: Sequence[Draft]) -> list[float]:
    """How long ago each of them happened, in seconds. To be asked before the store's clock is: what was noted after the
    last append then comes after it in time too."""
    ticks = monotonic()
    return [0.0 if draft.noted is None else max(0.0, ticks - draft.noted) for draft in drafts]


def run_row(row: tuple[Any, ...]) -> RunRow:
    """A row of `ROW`."""
    run_id, owner, room, status, hidden, *rest = row
    return RunRow(run_id, owner, room, status, bool(hidden), *rest)


def status_after(events: Sequence[Event]) -> tuple[RunStatus | None, bool]:
    """The status the events give their run, None when they say nothing of it; and whether the run has ended."""
    status: RunStatus | None = None
    for event in events:
        match event.body:
            case RunFailed():
                return "failed", True
            case RunCancelled():
                return "cancelled", True
            case body if body.terminal:
                return "succeeded", True
            case RunClaimed():
                status = "running"
            case RunSuspended():
                status = "queued"
            case RunWaiting():
                status = "awaiting_approval"
    return status, False


def check_order(run_id: str, drafts: Sequence[Draft]) -> None:
    """Raise `ConflictError` when something would follow the event that ends the run."""
    if any(draft.body.terminal for draft in drafts[:-1]):
        raise ConflictError(f"run {run_id}: nothing can follow the event that ends a run", agent_id="journal")


def check_undecided(run_id: str, word: Mapping[str, object], earlier: Iterable[Sequence[Any]]) -> None:
    """Raise `ConflictError` when one of the rows of `WORDS` is a word on an approval that this one is on too."""
    meant = _approvals(word)
    for (payload,) in earlier:
        if both := meant & _approvals(json.loads(payload)):
            raise ConflictError(f"{min(both)!r} of run {run_id!r} is decided already; look at what became of the run")


def _approvals(word: Mapping[str, object]) -> set[str]:
    names = word.get("approvals")
    return {str(name) for name in names} if isinstance(names, list) else set()


def refusal(run_id: str, epoch: int, row: tuple[Any, ...] | None) -> StaleEpochError | ConflictError | NotFoundError:
    """Why an append was refused, from the row's (epoch, terminal, worker)."""
    if row is None:
        return no_run(run_id)
    if row[0] != epoch:
        return StaleEpochError(
            f"run {run_id} is at epoch {row[0]} in the hands of {row[2] or 'nobody'}; this writer had epoch {epoch} "
            "and must stop",
            agent_id="journal",
        )
    return ConflictError(f"run {run_id} has ended; nothing can be added to its log", agent_id="journal")


def no_run(run_id: str) -> NotFoundError:
    """There is no such run, or it is somebody else's: the same words."""
    return NotFoundError(f"there is no run {run_id!r}", agent_id="journal")


class Wakeups:
    """Who waits for which run in this process."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    async def wait(self, run_id: str, arrived: Callable[[], Awaitable[bool]], timeout_s: float) -> None:
        """Return once `arrived`, or woken, or when the time is over. `arrived` is asked again every poll."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(run_id, set()).add(woken)
        deadline = loop.time() + timeout_s
        try:
            while not woken.done() and not await arrived():
                left = deadline - loop.time()
                if left <= 0:
                    return
                await asyncio.wait([woken], timeout=min(left, self._poll_s))
        finally:
            waiting = self._waiting.get(run_id, set())
            waiting.discard(woken)
            if not waiting:
                self._waiting.pop(run_id, None)

    def wake(self, run_id: str) -> None:
        """Wake those who wait for this run."""
        for waiter in self._waiting.get(run_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def wake_all(self) -> None:
        """Wake everybody: something may have been missed."""
        for run_id in list(self._waiting):
            self.wake(run_id)
