"""Records the usage of runs once they have ended, without keeping anybody waiting."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import StoreError
from agent.core.events import Event
from agent.core.run_state import RunState
from agent.storage.usage import EndedRun, UsageLedger

log = logging.getLogger(__name__)

BATCH_SECONDS = 0.1
"""How long the end of a run waits for others that are recorded with it."""
SUM_UP_SECONDS = 60.0
"""How often what is recorded is added to the sums of its day."""
PAUSE_SECONDS = 0.05
"""The pause between two transactions that sum up, in which others use the store."""
CATCH_UP_SECONDS = 600.0
"""How often runs are looked for whose process died between their end and their record."""


class UsageRecorder:
    """Writes into the ledger what ended, in the background."""

    def __init__(self, ledger: UsageLedger) -> None:
        self.ledger = ledger
        self._ended: list[EndedRun] = []
        self._has_ended = asyncio.Event()

    def record_end(self, state: RunState, event: Event) -> None:
        """Notes a run that has ended. An observer of the ends of runs."""
        key, room = state.api_key_id or "", state.room.id
        self._ended.append(EndedRun(state.run_id, state.owner, key, room, state.status, event.at, state.model_usage))
        self._has_ended.set()

    @contextlib.asynccontextmanager
    async def run(self, *, catches_up: bool) -> AsyncIterator[None]:
        """Records while entered, and what is left at the end. With `catches_up` it also sums up, and records what
        processes left that died.
        """
        tasks = [asyncio.create_task(self._record_ended(), name="usage of ended runs")]
        if catches_up:
            tasks.append(asyncio.create_task(self._catch_up(), name="usage of runs that other processes left"))
            tasks.append(asyncio.create_task(self._sum_up(), name="sums of usage"))
        try:
            yield
        finally:
            await cancel_and_wait(*tasks)
            await self._record_batch()

    async def _record_ended(self) -> None:
        """Records runs as they end, those of a moment together: a transaction costs more than its rows."""
        while True:
            await self._has_ended.wait()
            await asyncio.sleep(BATCH_SECONDS)
            await self._record_batch()

    async def _record_batch(self) -> None:
        runs, self._ended = self._ended, []
        self._has_ended.clear()
        if not runs:
            return
        try:
            await self.ledger.record_runs(runs)
        except StoreError as error:  # the next start finds the runs again
            log.warning("the usage of %d runs cannot be recorded now: %s", len(runs), error.message)

    async def _catch_up(self) -> None:
        """Records runs whose process died between their end and their record."""
        while True:
            try:
                while unrecorded := await self.ledger.find_unrecorded():
                    for run_id in unrecorded:
                        await self.ledger.record(run_id)
                await self.ledger.mark_caught_up()
            except StoreError as error:
                log.warning("usage of earlier runs cannot be recorded now: %s", error.message)
            await asyncio.sleep(CATCH_UP_SECONDS)

    async def _sum_up(self) -> None:
        while True:
            pause = SUM_UP_SECONDS
            try:
                pause = PAUSE_SECONDS if await self.ledger.sum_up() else SUM_UP_SECONDS
            except StoreError as error:
                log.warning("usage cannot be summed up now: %s", error.message)
            await asyncio.sleep(pause)
