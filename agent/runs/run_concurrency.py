"""How many runs of an API key execute in parallel. Used by `AgentService.start_run`; the gateway counts them."""

import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from agent.core.errors import AgentError
from agent.core.principal import Principal


class RunConcurrency(Protocol):
    """Limits how many runs of an API key execute in parallel."""

    async def acquire(self, key: str, run_id: str, most: int) -> None:
        """Takes one of `most` slots. Raises `RateLimitError` if all are taken."""
        ...

    async def release(self, key: str, run_id: str) -> None:
        """Releases the slot of a run that was not started."""
        ...


@contextlib.asynccontextmanager
async def hold_run_slot(
    run_concurrency: RunConcurrency | None, principal: Principal, run_id: str
) -> AsyncIterator[None]:
    """Holds one of the key's parallel runs; releases it if the run cannot be started. Does nothing for a caller without
    such a limit. Raises `RateLimitError` if all are taken.
    """
    key, most = principal.key_id, principal.parallel_runs
    if run_concurrency is None or key is None or most is None:
        yield
        return
    await run_concurrency.acquire(key, run_id, most)
    try:
        yield
    except AgentError:
        await run_concurrency.release(key, run_id)
        raise
