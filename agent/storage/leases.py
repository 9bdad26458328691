"""Renewal of a lease: a right that one holder has for some seconds at a time, so that it ends with its process.

Ingestion jobs and collection locks each hold one row and use `keep_renewed`. Two other holders do not:

- Run claims (`agent/runs/run_worker.py`) are fenced by the run's epoch, and all runs of a worker are renewed by one
  statement of the journal, in the loop that also applies signals and recovers runs.
- Run concurrency (`gateway/limits/run_concurrency.py`) counts slots of an API key in the rate limiter, in Redis or this
  process. Nobody owns a slot and none can be lost: renewing one writes it again, even if it has expired.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agent.core.errors import StoreError

log = logging.getLogger(__name__)


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
