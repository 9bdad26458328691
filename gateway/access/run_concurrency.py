"""Limits how many runs of an API key execute in parallel, across all gateways that share a rate limiter."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from agent.core import events as ev
from agent.core.errors import RateLimitError
from gateway.access.rate_limiter import RateLimiter

log = logging.getLogger(__name__)

SLOT_SECONDS = 15.0
"""How long the slot of a run stays taken after its process was killed."""
RENEWAL_SECONDS = 4.0
RELEASING_EVENTS = frozenset({ev.RunSuspended, ev.RunWaiting, ev.RunSucceeded, ev.RunFailed, ev.RunCancelled})
"""Events after which no process executes the run, for now or for good."""


class MeteredRunConcurrency:
    """Implements `agent.runs.service.RunConcurrency`."""

    def __init__(self, rate_limiter: RateLimiter) -> None:
        self._rate_limiter = rate_limiter
        self._releases: set[asyncio.Task[None]] = set()

    async def acquire(self, key: str, run_id: str, most: int) -> None:
        """See `RunConcurrency.acquire`."""
        read = await self._rate_limiter.acquire(_meter_name(key), run_id, 1, limit=most, seconds=SLOT_SECONDS)
        if not read.is_allowed:
            runs = "run" if most == 1 else "runs"
            raise RateLimitError(f"the key {key} allows {most} {runs} at the same time; wait for one to end")

    async def release(self, key: str, run_id: str) -> None:
        """See `RunConcurrency.release`."""
        await self._rate_limiter.replace(_meter_name(key), run_id, 1, 0)

    def start_release(self, key: str, run_id: str) -> None:
        """Releases a slot in a task of its own, for callers that cannot wait."""
        task = asyncio.create_task(self.release(key, run_id), name=f"{run_id} place")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def renew_slots(self, held: Callable[[], Mapping[str, str]]) -> None:
        """Renews the slots of the runs that this process executes until cancelled. `held` returns run ids with their
        keys.
        """
        # Not `agent.storage.leases.keep_renewed`: slots are counted, so none can be lost to another holder.
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            for run_id, key in held().items():
                try:
                    await self._rate_limiter.replace(_meter_name(key), run_id, 1, 1, seconds=SLOT_SECONDS)
                except Exception:  # the other slots must be renewed in any case
                    log.exception("renewing the slots of parallel runs failed")
                if run_id not in held():  # it ended meanwhile: its slot was released before this renewal took it again
                    await self.release(key, run_id)


def _meter_name(key: str) -> str:
    return f"runs:{key}"
