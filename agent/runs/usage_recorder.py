"""Records the usage of runs once they have ended, without keeping anybody waiting."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from agent.core.errors import StoreError
from agent.core.events import Event
from agent.core.run_state import RunState
from agent.storage.usage import UsageLedger

log = logging.getLogger(__name__)


class UsageRecorder:
    """Writes into the ledger what ended, in the background. `observe_event` is a run observer."""

    def __init__(self, ledger: UsageLedger) -> None:
        self.ledger = ledger
        self._ended: asyncio.Queue[str] = asyncio.Queue()

    def observe_event(self, state: RunState, event: Event) -> None:
        """Notes a run that has ended."""
        if event.body.terminal:
            self._ended.put_nowait(state.run_id)

    @contextlib.asynccontextmanager
    async def run(self, *, catches_up: bool) -> AsyncIterator[None]:
        """Records while entered, and what is left at the end. With `catches_up` also what earlier processes left."""
        tasks = [asyncio.create_task(self._record_ended(), name="usage of ended runs")]
        if catches_up:
            tasks.append(asyncio.create_task(self._catch_up(), name="usage of runs that earlier processes left"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            while not self._ended.empty():
                await self._record(self._ended.get_nowait())

    async def _record_ended(self) -> None:
        while True:
            await self._record(await self._ended.get())

    async def _catch_up(self) -> None:
        """Records runs whose process died between their end and their record."""
        try:
            for run_id in await self.ledger.find_unrecorded():
                await self._record(run_id)
        except StoreError as error:
            log.warning("usage of earlier runs cannot be recorded: %s", error.message)

    async def _record(self, run_id: str) -> None:
        try:
            await self.ledger.record(run_id)
        except StoreError as error:  # the next start finds the run again
            log.warning("the usage of run %s cannot be recorded now: %s", run_id, error.message)
