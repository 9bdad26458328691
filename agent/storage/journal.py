"""The contract of the journal: runs, their events, signals and blobs, behind one protocol for every driver.

One run has one writer. `claim` raises the run's epoch, and an append with an older epoch fails with `StaleEpochError`
before anything is written. Drivers: `journal_sqlite.py` and `journal_postgres.py`. The suite in
`tests/contract/journal_contract.py` tests any driver.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from agent.core.events import Event, EventDraft, RunCreated, TextLabel
from agent.core.models import RunStatus
from agent.storage.audit import AuditRow

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
    """A message from outside to the worker that holds a run: cancel, approve, reject or answer."""

    id: int
    run_id: str
    kind: SignalKind
    payload: dict[str, object]
    at: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to append to a run. `events` is its whole log at the time of the claim.

    `former_worker` held the run until then without releasing it: it has ended, or was silent for longer than its lease.
    """

    run_id: str
    epoch: int
    events: tuple[Event, ...]
    former_worker: str | None = None
    is_new: bool = False
    """Whether the run was created by this claim, so that nobody can have sent it a signal before."""


class RunAppend(NamedTuple):
    """The events to append to the log of one run, by the holder of this epoch."""

    run_id: str
    epoch: int
    drafts: Sequence[EventDraft]


class Journal(Protocol):
    """Durable storage of runs. Every method is one transaction: when it returns, its writes survive the death of the
    process; when it raises, nothing was written. All raise `StoreError` (`StoreFullError` for a full disk). If a caller
    is cancelled, its call may or may not have been executed.
    """

    async def create_run(
        self, run_id: str, body: RunCreated, *, worker: str | None, lease_s: float, queue: str = ""
    ) -> Claim:
        """Stores a new run with its first event (seq 1, epoch 1), claimed by `worker`.

        Without `worker` nobody holds the run (the claim gives no right), and a job for it is put into `queue` in the
        same transaction, where the driver has a queue. `queue` is kept with the run: its later jobs go there too.

        Lone surrogates in texts become U+FFFD, here and in `append`; the returned events equal the stored ones. Raises
        `ConflictError` if the id exists, `TooLargeError` for values that are nested too deeply.
        """
        ...

    async def claim(self, run_id: str, *, worker: str, lease_s: float) -> Claim | None:
        """Claims an unfinished run whose lease has expired, that was released, or that `worker` itself holds.

        Returns None if the run is finished, absent, or held under a valid lease. Raises `StoreError` if the log cannot
        be read (`StoreNewerError` for an event of a newer version); the run is not claimed then.
        """
        ...

    async def list_claimable_runs(self, *, dead_workers: Sequence[str] = (), limit: int = 100) -> list[str]:
        """Ids of unfinished runs that nobody holds: never claimed, lease expired, or held by one of
        `dead_workers`.

        Clears the leases of dead workers in the same transaction, so that `claim` accepts those runs.
        """
        ...

    async def list_workers(self) -> list[str]:
        """The distinct workers that hold unfinished runs."""
        ...

    async def renew_leases(self, worker: str, run_ids: Sequence[str], *, lease_s: float) -> None:
        """Extends the leases of these runs if `worker` still holds them and they are unfinished.

        Never extends a run that another worker has claimed. Leases of runs that are not named continue to expire.
        """
        ...

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Appends events in one transaction, with consecutive seqs and the store's time.

        Raises `StaleEpochError` if another claim has raised the epoch, `ConflictError` if the log already ends with a
        terminal event or one of these follows a terminal one, `NotFoundError` for an unknown run. A terminal event also
        sets the row's status, releases the lease and deletes the `answer.delta` events.
        """
        ...

    def append_now(self, *appends: RunAppend) -> list[tuple[Event, ...]] | None:
        """Does what `append` does, for several runs in one transaction, if nobody has to wait for it.

        Returns None, with nothing changed, if somebody has to wait, or if `append` would refuse one of them.
        """
        ...

    async def release(self, run_id: str, epoch: int) -> None:
        """Releases the lease without ending the run. Does nothing if another worker has claimed it since."""
        ...

    async def park(self, run_id: str, epoch: int, *, until: float, after_signal: int) -> bool:
        """Releases the lease while the run waits for a person, at most until `until` (UTC seconds).

        Anyone with a reply may claim a parked run. `list_claimable_runs` returns it once a signal has arrived since or
        the time is over. Returns False and changes nothing if a signal newer than `after_signal` exists or the run was
        claimed since.
        """
        ...

    async def read_events(self, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Events with `seq > after`, oldest first; an empty list for an unknown run.

        Seqs have no gaps while the run lasts. After its end there are gaps in place of `answer.delta` events;
        `answer.finished` has the whole text.
        """
        ...

    async def get_run(self, run_id: str, *, owner: str | None) -> RunRow:
        """The row of a run. Raises `NotFoundError` if it is absent or another owner's. `owner` None, which only
        the operator may use, stands for every owner.
        """
        ...

    async def list_runs(
        self,
        *,
        owner: str | None,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
        include_hidden: bool = False,
    ) -> list[RunRow]:
        """The runs of an owner (None: of all owners, for the operator), newest first. `before` is the id of the
        run to continue after. Hidden runs are left out unless `include_hidden`.

        Returns nothing if the run `before` is absent or another owner's.
        """
        ...

    async def find_conversation_ends(self, conversation_id: str, *, owner: str) -> tuple[RunRow, RunRow] | None:
        """The oldest and the newest run of an owner's conversation that are not hidden; None without any."""
        ...

    async def send_signal(
        self, run_id: str, kind: SignalKind, payload: dict[str, object], *, record: AuditRow | None = None
    ) -> None:
        """Stores a signal for the run's worker and wakes it. Writes `record` to the audit record in the same
        transaction.

        If nobody holds the run and it has a queue, a job for it is put there in the same transaction. Raises
        `NotFoundError` for an unknown run. An approval is decided once: a signal about `approvals` of which one
        is decided already raises `ConflictError`, also if both arrive at the same moment.
        """
        ...

    async def read_signals(self, run_id: str, *, after: int = 0) -> list[Signal]:
        """Signals with `id > after`, oldest first. They are kept, so that a crash loses none."""
        ...

    async def put_blob(self, data: bytes, *, run_id: str) -> str:
        """Stores bytes under their SHA-256 (hex) for a run and returns it. They stay until no run refers to them.

        Storing the same bytes again changes nothing. Raises `NotFoundError` for an unknown run.
        """
        ...

    async def get_blob(self, checksum: str) -> bytes:
        """The bytes of a blob. Raises `NotFoundError`."""
        ...

    async def wait_for_events(self, run_id: str, *, after: int, timeout_s: float) -> None:
        """Waits until the run may have events after `after` or new signals, or the time is over.

        A wake-up may be spurious, and across processes it may be missed: callers read again after every return.
        """
        ...

    async def check_writable(self) -> None:
        """Raises `StoreError` unless a write would succeed now."""
        ...

    async def close(self) -> None:
        """Completes accepted work and releases the files."""
        ...


class ConversationStore(Protocol):
    """The turns of conversations, by owner. `AgentRequest.conversation_id` names one."""

    async def list_turns(
        self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None
    ) -> list[tuple[str, str]]:
        """The newest `limit` turns as (role, text), oldest first; an empty list for an unknown conversation.

        With `parent`, those of the branch that ends with this run; with `root`, none of a run.
        """
        ...

    async def list_answer_runs(
        self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None
    ) -> list[str]:
        """The ids of the runs that wrote the answers among the turns that `list_turns` returns, in their order. Of a
        message that a client added, it is the item's id.
        """
        ...

    async def find_last_run(self, owner: str, conversation_id: str, *, parent: str | None = None) -> str | None:
        """The id of the run that wrote the newest turn of a conversation, or of the branch that ends with
        `parent`; None if it has no turns.
        """
        ...

    async def is_tainted(self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None) -> bool:
        """Whether any of the turns that `list_turns` returns relies on untrusted content."""
        ...

    async def add_exchange(
        self, owner: str, conversation_id: str, run_id: str, question: str, answer: str | None, *, tainted: bool = False
    ) -> bool:
        """Adds one exchange, or a question alone that got no answer. Adding the same run again changes nothing.

        False, and nothing is added, if the conversation was deleted while the run was in progress.

        `tainted` means that the answer relies on untrusted content.
        """
        ...

    async def find_answer_labels(self, owner: str, digests: Sequence[str]) -> dict[str, TextLabel]:
        """The labels of those of the digests that belong to answers of this owner's runs.

        Of answers alike, the most trusted counts: the text is the same, and nothing from outside was needed for it.
        """
        ...
