"""Shared by the journal's drivers: columns, effects of events on a run's row, refusals, wake-ups."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from agent.core.errors import ConflictError, NotFoundError, StaleEpochError
from agent.core.events import (
    AnswerFinished,
    Event,
    EventBody,
    EventDraft,
    RunCancelled,
    RunClaimed,
    RunFailed,
    RunSucceeded,
    RunSuspended,
    RunWaiting,
    TextLabel,
)
from agent.core.models import RunStatus
from agent.core.surrogates import replace_surrogates, to_storable_text
from agent.storage.journal import RunRow

RUN_COLUMNS = (
    "run_id, owner, room, status, hidden, title, conversation_id, epoch, last_seq, created_at, updated_at, "
    "worker, lease_until"
)
SELECT_ENDS = " UNION ALL ".join(
    f"SELECT * FROM (SELECT {RUN_COLUMNS} FROM runs WHERE owner = ? AND conversation_id = ? AND NOT hidden "  # noqa: S608 - constants only
    f"ORDER BY created_at {direction}, run_id {direction} LIMIT 1) AS {name}"
    for name, direction in (("oldest", "ASC"), ("newest", "DESC"))
)
"""Selects the oldest and the newest run of a conversation. Values: owner and conversation, twice."""
IS_SEPARATED = "SELECT 1 FROM runs WHERE run_id = {} AND conversation_id IS NULL"
"""Finds a run whose conversation was deleted while it was in progress. `{}` is the mark of a value."""
EVENT_COLUMNS = "run_id, seq, epoch, type, v, step_id, attempt, data, at"
MAX_SEQ = 2**63 - 1
"""The largest number the databases can compare. Positions come from clients."""
SELECT_DECISIONS = "SELECT payload FROM signals WHERE run_id = ? AND kind IN ('approve', 'reject', 'answer')"
"""Selects the decisions on a run's approvals so far."""
INSERT_BLOB = "INSERT INTO blobs (checksum, data) VALUES (?,?) ON CONFLICT DO NOTHING"
INSERT_BLOB_REFERENCE = (
    "INSERT INTO blob_references (run_id, checksum) SELECT ?, checksum FROM blobs WHERE checksum = ? "
    "ON CONFLICT DO NOTHING"
)
"""Records that a run's log refers to a blob. A fork refers to those of the run it was made from."""
INSERT_ANSWER_DIGEST = (
    "INSERT INTO answer_digests (run_id, digest, owner, trusted, private) SELECT run_id, ?, owner, ?, ? FROM runs "
    "WHERE run_id = ? ON CONFLICT DO NOTHING"
)
INSERT_REQUEST_WORDS = "INSERT INTO request_words (run_id, words) VALUES (?,?)"
MAX_TITLE_CHARS = 80
MAX_SEARCHED_CHARS = 20_000
"""Longest beginning of a request that a search of runs reads: a request may hold a whole book."""
IS_WAITING_OVER = (
    "(status <> 'awaiting_approval' OR lease_until <= {now} OR EXISTS "
    "(SELECT 1 FROM signals WHERE signals.run_id = runs.run_id AND signals.at >= runs.updated_at))"
)
"""The condition on released runs that may continue. A run that waits for a person continues only with a new signal or
when its time is over; signals from before the wait have been processed."""
CHECK_BYTES = 65_536
"""How much the write check writes: as much as a few events of the largest kind."""


def make_title(prompt: str) -> str:
    """A run's title: the start of its prompt on one line."""
    beginning = prompt[: 4 * MAX_TITLE_CHARS]
    storable = beginning if beginning.isascii() else replace_surrogates(beginning)
    return " ".join(storable.split())[:MAX_TITLE_CHARS]


def make_search_words(text: str) -> str:
    """What a search of runs compares, of a request or of the words searched for: in lower case, each white space one
    space. Databases compare lower case by their locale, or ASCII only.
    """
    beginning = text[:MAX_SEARCHED_CHARS]
    storable = beginning if beginning.isprintable() else to_storable_text(beginning)
    return " ".join(storable.lower().split())


def compute_ages(drafts: Sequence[EventDraft]) -> list[float]:
    """The seconds since each draft happened. Call it before reading the store's clock, so that a draft noted
    after the last append also gets a later time.
    """
    ticks = monotonic()
    return [0.0 if draft.monotonic_at is None else max(0.0, ticks - draft.monotonic_at) for draft in drafts]


def parse_run_row(row: tuple[Any, ...]) -> RunRow:
    """Converts a row of `RUN_COLUMNS`."""
    run_id, owner, room, status, hidden, *rest = row
    return RunRow(run_id, owner, room, status, bool(hidden), *rest)


def parse_ends(rows: Sequence[tuple[Any, ...]]) -> tuple[RunRow, RunRow] | None:
    """Converts the rows of `SELECT_ENDS`, which may come in any order; None without any."""
    run_rows = sorted((parse_run_row(row) for row in rows), key=lambda row: (row.created_at, row.run_id))
    return (run_rows[0], run_rows[-1]) if run_rows else None


def build_owner_filter(owner: str | None, place: str = "?") -> str:
    """The condition on the owner, which is bound as the parameter `place`. None matches every owner, without
    using an index.
    """
    return f"CAST({place} AS TEXT) IS NULL" if owner is None else f"owner = {place}"


def list_blob_references(events: Sequence[Event]) -> list[tuple[str, str]]:
    """The values of `INSERT_BLOB_REFERENCE` for the blobs that these events refer to."""
    return [(event.run_id, checksum) for event in events for checksum in event.body.list_blobs()]


def find_labelled_answer(events: Sequence[Event | EventDraft]) -> AnswerFinished | None:
    """The answer among the events that clients may send back, or None if there is none with a label."""
    answers = (event.body for event in events if isinstance(event.body, AnswerFinished))
    return next((answer for answer in answers if answer.label is not None and answer.digests), None)


def build_answer_label(trusted: object, private: object) -> TextLabel:
    """Converts the columns of `answer_digests` to the label of an answer."""
    return TextLabel(source="answer", trusted=bool(trusted), private=bool(private))


def derive_status(events: Sequence[Event | EventDraft]) -> tuple[RunStatus | None, bool]:
    """The status that the events give their run (None: unchanged), and whether the run has ended."""
    for event in reversed(events):
        read_status = _STATUS_AFTER.get(type(event.body))
        if read_status is not None:
            return read_status(event.body), event.body.terminal
    return None, False


_STATUS_AFTER: Mapping[type[EventBody], Callable[[Any], RunStatus]] = {
    RunClaimed: lambda _: "running",
    RunSuspended: lambda _: "queued",
    RunWaiting: lambda _: "awaiting_approval",
    RunSucceeded: lambda body: body.status,
    RunFailed: lambda _: "failed",
    RunCancelled: lambda _: "cancelled",
}
"""The events that change their run's status, and the status after them."""


def check_terminal_last(run_id: str, drafts: Sequence[EventDraft]) -> None:
    """Raises `ConflictError` if a draft follows one that ends the run."""
    if any(draft.body.terminal for draft in drafts[:-1]):
        raise ConflictError(f"run {run_id}: nothing can follow the event that ends a run", agent_id="journal")


def check_undecided(run_id: str, word: Mapping[str, object], earlier: Iterable[Sequence[Any]]) -> None:
    """Raises `ConflictError` if an earlier signal already decides one of the approvals that this signal is about."""
    meant = _get_approval_ids(word)
    for (payload,) in earlier:
        if both := meant & _get_approval_ids(json.loads(payload)):
            raise ConflictError(f"{min(both)!r} of run {run_id!r} is decided already; see the state of the run")


def _get_approval_ids(word: Mapping[str, object]) -> set[str]:
    names = word.get("approvals")
    return {str(name) for name in names} if isinstance(names, list) else set()


def build_append_error(
    run_id: str, epoch: int, row: tuple[Any, ...] | None
) -> StaleEpochError | ConflictError | NotFoundError:
    """The reason why an append was refused, from the row's (epoch, terminal, worker)."""
    if row is None:
        return build_run_not_found_error(run_id)
    if row[0] != epoch:
        return StaleEpochError(
            f"run {run_id} is at epoch {row[0]}, held by {row[2] or 'nobody'}; this writer had epoch {epoch} "
            "and must stop",
            agent_id="journal",
        )
    return ConflictError(f"run {run_id} has ended; nothing can be added to its log", agent_id="journal")


def build_run_not_found_error(run_id: str) -> NotFoundError:
    """The error for an absent run; for another owner's run the words are the same."""
    return NotFoundError(f"there is no run {run_id!r}", agent_id="journal")


class WaiterRegistry:
    """The waiters of this process, by run."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    async def wait(self, run_id: str, arrived: Callable[[], Awaitable[bool]], timeout_s: float) -> None:
        """Waits until `arrived` is true, a wake-up, or the end of the time. Polls `arrived`."""
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
        """Wakes the waiters of this run."""
        for waiter in self._waiting.get(run_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def wake_all(self) -> None:
        """Wakes all waiters, since a notification may have been missed."""
        for run_id in list(self._waiting):
            self.wake(run_id)
