"""Leases: a right that one holder has for some seconds at a time, so that it ends with its process.

Ingestion jobs, their batches and collection locks each hold one row and use `keep_renewed`. Two other holders do not:

- Run claims (`agent/runs/run_worker.py`) are fenced by the run's epoch, and all runs of a worker are renewed by one
  statement of the journal, in the loop that also applies signals and recovers runs.
- Run concurrency (`gateway/access/run_concurrency.py`) counts slots of an API key in the rate limiter, in Redis or this
  process. Nobody owns a slot and none can be lost: renewing one writes it again, even if it has expired.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import StoreError
from agent.storage.sql import SqlClient

log = logging.getLogger(__name__)

T = TypeVar("T")


class LeaseLostError(Exception):
    """Raised when another holder has the lease."""


async def hold_lease(work: Coroutine[object, object, T], renewal: Coroutine[object, object, None]) -> T:
    """Awaits `work` while `renewal` runs beside it; both end before this does.

    Raises `LeaseLostError` if the renewal ends first: the work is cancelled then.
    """
    working, renewing = asyncio.create_task(work), asyncio.create_task(renewal)
    try:
        await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise LeaseLostError
        return working.result()
    finally:
        await cancel_and_wait(working, renewing)


async def keep_renewed(renew: Callable[[], Awaitable[bool]], *, name: str, every_s: float) -> None:
    """Calls `renew` every `every_s` seconds. Returns once it returns False: another holder has the lease then.

    A store that fails is logged with `name` and asked again: the lease lasts longer than one interval.
    """
    while True:
        await asyncio.sleep(every_s)
        try:
            if not await renew():
                return
        except StoreError as error:
            log.warning("the lease on %s was not renewed: %s", name, error.message)


class HousekeepingLease:
    """The lease on work that one gateway of a fleet does at a time, with the time up to which the work is done.

    `clock` gives UTC seconds since 1970. The clocks of machines may differ by less than `seconds`. Methods raise
    `StoreError`.
    """

    def __init__(
        self, statements: SqlClient, name: str, *, holder: str, seconds: float, clock: Callable[[], float]
    ) -> None:
        self._statements = statements
        self._name = name
        self._holder = holder
        self._seconds = seconds
        self._clock = clock

    async def take(self) -> bool:
        """Takes or renews the lease. Returns False while another process holds it."""
        now = self._clock()
        rows = await self._statements.write(
            "INSERT INTO housekeeping (name, holder, until, done) VALUES (?,?,?,0) ON CONFLICT (name) DO UPDATE SET "
            "holder = excluded.holder, until = excluded.until "
            "WHERE housekeeping.holder = excluded.holder OR housekeeping.until < ? RETURNING name",
            self._name, self._holder, now + self._seconds, now,
        )  # fmt: skip
        return bool(rows)

    async def release(self, *, done: float | None = None) -> None:
        """Releases the lease if this process holds it; `done` records up to which time the work is done."""
        await self._statements.write(
            "UPDATE housekeeping SET until = 0, done = coalesce(?, done) WHERE name = ? AND holder = ?",
            done, self._name, self._holder,
        )  # fmt: skip

    async def get_done(self) -> float:
        """Up to which time the work is done; 0 if it never was."""
        rows = await self._statements.read("SELECT done FROM housekeeping WHERE name = ?", self._name)
        return float(rows[0][0]) if rows else 0.0
