"""The journal's contract: runs, their events, signals and blobs, behind one protocol for every driver.

One run has one writer: `claim` raises the run's epoch, and an append that names an older epoch is refused with
`StaleEpochError` before anything is written. Drivers: `journal_sqlite.py`; the contract suite in
`tests/contract/journal_contract.py` is what any other must pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.core.audit import AuditValues
from agent.core.events import Draft, Event, RunCreated
from agent.core.models import RunStatus

SignalKind = Literal["cancel", "approve", "reject", "answer"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as lists show it. Times are UTC seconds since 1970."""

    run_id: str
    owner: str
    room: str
    status: RunStatus
    hidden: bool
    title: str
    conversation_id: str | None
    epoch: int
    last_seq: int
    created_at: float
    updated_at: float
    worker: str | None = None
    lease_until: float = 0.0


@dataclass(frozen=True, slots=True)
class Signal:
    """A word from outside to the owner of a run."""

    id: int
    run_id: str
    kind: SignalKind
    payload: dict[str, object]
    at: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to append to a run. `events` is its whole log at the moment of the claim."""

    run_id: str
    epoch: int
    events: tuple[Event, ...]


class Journal(Protocol):
    """Durable storage of runs. Every method is one transaction: when it returns, what it wrote survives the death
    of the process; when it raises, nothing of it was written. All raise `StoreError` (full disk: `StoreFullError`)
    when the store fails. Cancelling a caller does not say whether its call was carried out."""

    async def create_run(self, run_id: str, body: RunCreated, *, worker: str, lease_s: float) -> Claim:
        """Store a new run with its first event (seq 1, epoch 1), already claimed by `worker`.

        Half characters in texts (lone surrogates) become U+FFFD here and in `append`; the events returned are the
        events stored. Raises `ConflictError` when the id is taken, `TooLargeError` for values nested too deeply."""
        ...

    async def claim(self, run_id: str, *, worker: str, lease_s: float) -> Claim | None:
        """Take an unfinished run whose lease is over, whose owner let go, or that is `worker`'s own.

        None when it is finished, absent, or held by a living lease. A log that cannot be read raises
        `StoreError` (`StoreNewerError` for an event of a newer version) and the run is not claimed."""
        ...

    async def claimable(self, *, dead_workers: Sequence[str] = (), limit: int = 100) -> list[str]:
        """Ids of unfinished runs nobody holds: never held, lease over, or held by one of `dead_workers`.

        Rows of dead workers lose their lease in the same transaction, so that `claim` takes them."""
        ...

    async def workers(self) -> list[str]:
        """The distinct workers that hold unfinished runs."""
        ...

    async def renew(self, worker: str, run_ids: Sequence[str], *, lease_s: float) -> None:
        """Prolong the lease of these runs where `worker` still holds them and they are unfinished.

        Never revives a run claimed by another; a run that is not named is left to its lease."""
        ...

    async def append(self, run_id: str, epoch: int, drafts: Sequence[Draft]) -> tuple[Event, ...]:
        """Add events in one transaction, with consecutive seqs and the store's time.

        Raises `StaleEpochError` when another claim has raised the epoch, `ConflictError` when the log already
        ends in a terminal event or one of these follows a terminal one, `NotFoundError` for an unknown run. A
        terminal event also sets the row's status, releases the lease and prunes the `answer.delta` events."""
        ...

    async def release(self, run_id: str, epoch: int) -> None:
        """Give the lease back without ending the run. Does nothing when another has claimed it since."""
        ...

    async def park(self, run_id: str, epoch: int, *, until: float, after_signal: int) -> bool:
        """Give the lease back while the run waits for a person, at most until `until` (UTC seconds).

        A parked run can be claimed by whoever has a word for it; `claimable` names it once a signal has arrived since,
        or the time is over. False, and nothing is changed, when a signal newer than `after_signal` is there already,
        or the run has been claimed since."""
        ...

    async def read(self, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Events with `seq > after`, oldest first. Empty for an unknown run.

        Seqs have no gaps while the run lasts. Once it has ended, gaps stand where `answer.delta` events were; the
        whole text is in `answer.finished`."""
        ...

    async def get(self, run_id: str, *, owner: str | None) -> RunRow:
        """The row of a run; `NotFoundError` when absent or another owner's. Without an owner, which only the operator
        may leave open, anybody's."""
        ...

    async def list_runs(
        self, *, owner: str | None, limit: int = 50, before: str | None = None, status: RunStatus | None = None
    ) -> list[RunRow]:
        """Runs of an owner (None: of all, for the operator) that are not hidden, newest first; `before` is a run id to
        page from.

        Nothing comes before a run that is absent or another owner's."""
        ...

    async def signal(
        self, run_id: str, kind: SignalKind, payload: dict[str, object], *, record: AuditValues | None = None
    ) -> None:
        """Leave a word for the owner of a run, and wake it; `record` is written to the audit record with it, or both
        are not. `NotFoundError` for an unknown run.

        A person decides once: a word on `approvals` of which an earlier word has decided any is a `ConflictError`, also
        when both are given at the same moment."""
        ...

    async def take_signals(self, run_id: str, *, after: int = 0) -> list[Signal]:
        """Signals with `id > after`, oldest first; kept, so that a crash loses none."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Store bytes by their SHA-256 (hex), which is returned; storing twice is storing once."""
        ...

    async def get_blob(self, checksum: str) -> bytes:
        """The bytes of a blob; `NotFoundError` when absent."""
        ...

    async def wait(self, run_id: str, *, after: int, timeout_s: float) -> None:
        """Return when the run may hold events after `after` or signals arrived, or when the time is over.

        A wake-up can be spurious and, across processes, be missed: callers read again after every return."""
        ...

    async def check(self) -> None:
        """Raise `StoreError` unless a write would succeed now."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and release the files."""
        ...


class ConversationStore(Protocol):
    """The turns of conversations, by owner. `AgentRequest.conversation_id` names one."""

    async def history(self, owner: str, conversation_id: str, *, limit: int = 40) -> list[tuple[str, str]]:
        """The newest `limit` turns as (role, text), oldest first; empty for an unknown conversation."""
        ...

    async def tainted(self, owner: str, conversation_id: str, *, limit: int = 40) -> bool:
        """Whether any of the newest `limit` turns rests on something from outside."""
        ...

    async def remember(
        self, owner: str, conversation_id: str, run_id: str, question: str, answer: str, *, tainted: bool = False
    ) -> None:
        """Add one exchange; adding the same run twice is adding it once.

        `tainted` says that the answer rests on something from outside."""
        ...
