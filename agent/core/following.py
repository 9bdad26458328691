"""`Following`: what the runs of a service come to is kept when they end, whether anybody waits for it or not."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from agent.core.errors import AgentError
from agent.core.service import AgentService

log = logging.getLogger(__name__)

BEGINNING_SECONDS: Final = 30.0
"""How long a run may be written down without being in the log: longer, and who wrote it down died before it began."""


class Following:
    """The runs one service follows, each in a task of its own. `what` a run is to the service stands in the log."""

    def __init__(self, service: AgentService[Any], what: str) -> None:
        self._service = service
        self._what = what
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def follow(self, run_id: str, owner: str, settle: Callable[[], Awaitable[object]]) -> None:
        """`settle` when the run ends, or is left to the next start. What cannot be settled now is by who looks next."""
        task = asyncio.create_task(self._followed(run_id, owner, settle), name=f"{run_id} {self._what}")
        self._tasks[run_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))

    async def _followed(self, run_id: str, owner: str, settle: Callable[[], Awaitable[object]]) -> None:
        try:
            await self._service.until_over(run_id, owner=owner)
            await settle()
        except AgentError as error:
            log.warning("run %s of a %s is not settled yet: %s", run_id, self._what, error.message)

    async def aclose(self) -> None:
        """Let go of the runs; they are settled at the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
