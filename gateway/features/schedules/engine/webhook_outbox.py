"""`WebhookOutbox`: the deliveries of webhooks, stored before their runs so that no crash loses one.

A delivery is due once its run has ended. An attempt takes it by moving its next attempt into the future: if the process
dies, the delivery is due again at that time.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import Webhook
from agent.core.surrogates import to_storable_text
from agent.storage.sql import SqlClient

DeliveryState = Literal["open", "delivered", "failed"]
ORPHAN_SECONDS: Final = 60.0
"""Time after which a delivery without a run is given up: its process died before the run was stored, or the run was
deleted."""
MAX_PER_OWNER: Final = 4
"""Deliveries of one owner that a process sends at once, so that slow receivers of one do not delay those of another."""
_COLUMNS = (
    "id, owner, run_id, url, secret_name, state, attempts, next_attempt, last_status, last_error, created, updated"
)
_ENDED = "EXISTS (SELECT 1 FROM runs r WHERE r.run_id = d.run_id AND r.terminal)"


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One delivery. Times are UTC seconds; `last_status` is the HTTP status of the last answer, if there was one."""

    id: str
    owner: str
    run_id: str
    url: str
    secret_name: str | None
    state: DeliveryState
    attempts: int
    next_attempt: float
    last_status: int | None
    last_error: str
    created: float
    updated: float


def make_delivery_id(run_id: str, url: str) -> str:
    """The id of a delivery: always the same for a run and an address, so that receivers can drop repeats."""
    return f"msg_{hashlib.sha256(f'{run_id} {url}'.encode('utf-8', 'replace')).hexdigest()[:32]}"


class WebhookOutbox:
    """The deliveries by owner. `clock` gives UTC seconds. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def register(self, owner: str, run_id: str, webhook: Webhook) -> bool:
        """Stores the delivery of a run that is about to start. Returns False if it was stored before.

        One that was given up, or is about to be, because its process died before the run was stored, starts again.
        """
        now, url = self._clock(), to_storable_text(webhook.url)
        rows = await self._statements.write(
            "INSERT INTO webhook_deliveries AS d (id, owner, run_id, url, secret_name, state, next_attempt, "
            "last_error, created, updated) VALUES (?,?,?,?,?,'open',?,'',?,?) ON CONFLICT (id) DO UPDATE SET "
            "state = 'open', secret_name = excluded.secret_name, next_attempt = excluded.next_attempt, "
            "last_error = '', updated = excluded.updated "
            "WHERE d.attempts = 0 AND (d.state = 'failed' OR d.updated < ?) RETURNING id",
            make_delivery_id(run_id, url), owner, run_id, url, webhook.secret_name, now, now, now,
            now - ORPHAN_SECONDS,
        )  # fmt: skip
        return bool(rows)

    async def discard(self, run_id: str) -> None:
        """Removes the open delivery of a run that was refused."""
        await self._statements.write(
            "DELETE FROM webhook_deliveries WHERE run_id = ? AND state = 'open' "
            "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = webhook_deliveries.run_id)",
            run_id,
        )

    async def take_due(
        self, limit: int, *, hold_s: float, in_flight: Mapping[str, int] = MappingProxyType({})
    ) -> list[WebhookDelivery]:
        """Takes deliveries that are due. Nobody else gets them for `hold_s`.

        No owner has more than `MAX_PER_OWNER` at once, with those that the caller has `in_flight`, by owner.
        """
        now = self._clock()
        busy = f"CASE owner {'WHEN ? THEN ? ' * len(in_flight)}ELSE 0 END" if in_flight else "0"
        ranked = (
            f"SELECT {_COLUMNS}, {busy} + ROW_NUMBER() OVER (PARTITION BY owner ORDER BY next_attempt, id) AS place "  # noqa: S608 - constants only
            f"FROM webhook_deliveries d WHERE state = 'open' AND next_attempt <= ? AND {_ENDED}"
        )
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM ({ranked}) ranked WHERE place <= ? ORDER BY next_attempt, id LIMIT ?",  # noqa: S608 - constants only
            *chain.from_iterable(in_flight.items()), now, MAX_PER_OWNER, limit,
        )  # fmt: skip
        due = []
        for delivery in map(_parse_row, rows):
            claimed_rows = await self._statements.write(
                "UPDATE webhook_deliveries SET attempts = attempts + 1, next_attempt = ?, updated = ? "
                "WHERE id = ? AND state = 'open' AND next_attempt = ? RETURNING attempts",
                now + hold_s, now, delivery.id, delivery.next_attempt,
            )  # fmt: skip
            if claimed_rows:
                due.append(await self.get(delivery.id, delivery.owner))
        return due

    async def record_attempt(
        self, delivery: WebhookDelivery, state: DeliveryState, *, next_attempt: float, status: int | None, error: str
    ) -> None:
        """Stores the result of an attempt, unless another one has meanwhile ended the delivery.

        An attempt that was held up until another one began may still report success, and nothing else.
        """
        await self._statements.write(
            "UPDATE webhook_deliveries SET state = ?, next_attempt = ?, last_status = ?, last_error = ?, updated = ? "
            "WHERE id = ? AND state = 'open' AND (attempts = ? OR ? = 'delivered')",
            state, next_attempt, status, to_storable_text(error), self._clock(), delivery.id, delivery.attempts, state,
        )  # fmt: skip

    async def give_up_orphans(self) -> None:
        """Ends deliveries whose run never started or was deleted."""
        now = self._clock()
        await self._statements.write(
            "UPDATE webhook_deliveries SET state = 'failed', last_error = 'the run was never started, or deleted', "
            "updated = ? WHERE state = 'open' AND updated < ? "
            "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_id = webhook_deliveries.run_id)",
            now, now - ORPHAN_SECONDS,
        )  # fmt: skip

    async def get(self, delivery_id: str, owner: str) -> WebhookDelivery:
        """A delivery. Raises `NotFoundError`."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE id = ? AND owner = ?",  # noqa: S608 - constants only
            to_storable_text(delivery_id), owner,
        )  # fmt: skip
        if not rows:
            raise NotFoundError(f"there is no delivery {delivery_id[:100]!r}")
        return _parse_row(rows[0])

    async def list_newest(
        self, owner: str, *, limit: int, run_id: str | None = None, before: str | None = None
    ) -> list[WebhookDelivery]:
        """Deliveries, newest first; those of one run, or older than `before`. Raises `NotFoundError`."""
        older = await self.get(before, owner) if before is not None else None
        at, last = (older.created, older.id) if older is not None else (1e12, "")
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE owner = ? AND run_id = COALESCE(?, run_id) "  # noqa: S608 - constants only
            "AND (created, id) < (?, ?) ORDER BY created DESC, id DESC LIMIT ?",
            owner, None if run_id is None else to_storable_text(run_id), at, last, limit,
        )  # fmt: skip
        return [_parse_row(row) for row in rows]

    async def retry(self, delivery_id: str, owner: str) -> WebhookDelivery:
        """Makes a delivery due again, with all its attempts. Raises `NotFoundError`, and `ConflictError` for a run that
        was deleted.
        """
        delivery = await self.get(delivery_id, owner)
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE webhook_deliveries SET state = 'open', attempts = 0, next_attempt = ?, updated = ? WHERE id = ? "
            "AND EXISTS (SELECT 1 FROM runs r WHERE r.run_id = webhook_deliveries.run_id) RETURNING id",
            now, now, delivery.id,
        )  # fmt: skip
        if not rows:
            raise ConflictError(f"the run of the delivery {delivery.id!r} was deleted; there is nothing to deliver")
        return await self.get(delivery.id, owner)


def _parse_row(row: Sequence[Any]) -> WebhookDelivery:
    delivery_id, owner, run_id, url, secret, state, attempts, due, status, error, created, updated = row
    return WebhookDelivery(
        delivery_id, owner, run_id, url, secret, state, int(attempts), float(due),
        None if status is None else int(status), error, float(created), float(updated),
    )  # fmt: skip
