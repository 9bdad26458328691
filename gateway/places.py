"""`RunPlaces`: how many runs of an API key are carried out at the same time, by all gateways that share meters."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from agent.core import events as ev
from agent.core.errors import RateLimitError
from agent.core.fold import RunState
from gateway.meters import Meters

log = logging.getLogger(__name__)

PLACE_SECONDS = 15.0
"""How long a place is held for a run of a process that was killed."""
RENEWAL_SECONDS = 4.0
_GIVEN_UP = (ev.RunSuspended, ev.RunWaiting)
"""Events after which nobody carries the run out, for now."""


class RunPlaces:
    """Implements `agent.core.service.Places`."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._freeing: set[asyncio.Task[None]] = set()

    async def take(self, key: str, run_id: str, most: int) -> None:
        """See `Places.take`."""
        read = await self._meters.take(_meter(key), run_id, 1, limit=most, seconds=PLACE_SECONDS)
        if not read.taken:
            runs = "run" if most == 1 else "runs"
            raise RateLimitError(f"the key {key} allows {most} {runs} at the same time; wait for one to end")

    async def free(self, key: str, run_id: str) -> None:
        """See `Places.free`."""
        await self._meters.replace(_meter(key), run_id, 1, 0)

    def observe(self, state: RunState, event: ev.Event) -> None:
        """An observer of runs: the place of one that ended, or is put down, is free again."""
        if state.key is None or not (event.body.terminal or isinstance(event.body, _GIVEN_UP)):
            return
        task = asyncio.create_task(self.free(state.key, event.run_id), name=f"{event.run_id} place")
        self._freeing.add(task)
        task.add_done_callback(self._freeing.discard)

    async def keep(self, held: Callable[[], Mapping[str, str]]) -> None:
        """Hold the places of the runs that are carried out here, by id with their keys, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            for run_id, key in held().items():
                try:
                    await self._meters.replace(_meter(key), run_id, 1, 1, seconds=PLACE_SECONDS)
                except Exception:  # whatever it is, the next ones have places too
                    log.exception("a defect in holding the places of runs")
                if run_id not in held():  # it ended meanwhile, and its place was given back before it was taken again
                    await self.free(key, run_id)


def _meter(key: str) -> str:
    return f"runs:{key}"
