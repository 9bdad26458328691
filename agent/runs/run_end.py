"""`RunEndWatcher`: stores a service's results when its runs end, whether a client waits or not."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, NotFoundError
from agent.core.models import ENDED_STATUSES
from agent.runs.service import AgentService

log = logging.getLogger(__name__)

RUN_START_SECONDS: Final = 30.0
"""Seconds within which a recorded run appears in the log. After that, the process that recorded it died before it
started.
"""

CLOSE_SECONDS: Final = 5.0
"""Seconds that `RunEndWatcher.aclose` spends on storing results. Each takes milliseconds normally."""


class RunEndWatcher:
    """Watches the runs of tasks or of conversations, each in its own task.

    `kind` names them in log messages. `clock` returns UTC seconds.
    """

    def __init__(self, service: AgentService[Any], kind: str, clock: Callable[[], float]) -> None:
        self._service = service
        self._kind = kind
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._unstored: dict[str, Callable[[], Awaitable[object]]] = {}

    def watch(self, run_id: str, owner: str, store_result: Callable[[], Awaitable[object]]) -> None:
        """Calls `store_result` when the run has ended or is left to the next start, and again when the watcher closes
        first: it may be called twice, and stores nothing for a run in progress. If it fails, the next reader of the
        task or conversation stores the result.
        """
        self._unstored[run_id] = store_result
        task = asyncio.create_task(self._wait_and_store(run_id, owner), name=f"{run_id} {self._kind}")
        self._tasks[run_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))

    async def get_progress(
        self, run_id: str, owner: str, recorded_at: float
    ) -> Literal["in_progress", "ended", "never_started"]:
        """The state of a run that was recorded at `recorded_at`."""
        try:
            row = await self._service.get_run(run_id, owner=owner)
        except NotFoundError:
            return "in_progress" if self._clock() - recorded_at < RUN_START_SECONDS else "never_started"
        return "ended" if row.status in ENDED_STATUSES else "in_progress"

    async def aclose(self) -> None:
        """Stores the results of runs that have ended and stops watching. Results of other runs, and those that take
        longer than `CLOSE_SECONDS`, are stored at the next start.
        """
        await cancel_and_wait(*self._tasks.values())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                for run_id in list(self._unstored):
                    await self._store(run_id)

    async def _wait_and_store(self, run_id: str, owner: str) -> None:
        try:
            await self._service.wait_until_end(run_id, owner=owner)
        except AgentError as error:
            self._log_unstored(run_id, error)
            del self._unstored[run_id]
        else:
            await self._store(run_id)

    async def _store(self, run_id: str) -> None:
        """Stores the result of a run. A cancelled attempt is made again, by `aclose` or at the next start."""
        try:
            await self._unstored[run_id]()
        except AgentError as error:
            self._log_unstored(run_id, error)
        del self._unstored[run_id]

    def _log_unstored(self, run_id: str, error: AgentError) -> None:
        log.warning("the result of run %s of a %s is not stored yet: %s", run_id, self._kind, error.message)
