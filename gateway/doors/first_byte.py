"""What becomes of a run before the first byte of its stream: until then a failure can be told by a status."""

import asyncio
import contextlib
from typing import Any

from agent.core.events import AnswerDelta, AnswerFinished, RequestUnderstood, RunFailed, RunWaiting, ToolCalled
from agent.core.service import AgentService, RunFailedError

FIRST_BYTE_SECONDS = 2.0
"""How long the head of a stream waits for it."""
_SAID = (AnswerDelta, AnswerFinished, ToolCalled, RunWaiting)
_WORKING = (*_SAID, RequestUnderstood)


async def fails_at_once(
    service: AgentService[Any], run_id: str, owner: str, heard: int, *, shows_work: bool = False
) -> None:
    """Wait until the run has something to show since seq `heard`, `FIRST_BYTE_SECONDS` at most; a client that shows
    what a run is doing (`shows_work`) waits no longer than until it is begun with.

    Raises `RunFailedError` for one that fails before: after a 200 it could only be told by a frame."""
    begun = _WORKING if shows_work else _SAID
    with contextlib.suppress(TimeoutError):
        async with (
            asyncio.timeout(FIRST_BYTE_SECONDS),
            contextlib.aclosing(service.events(run_id, owner=owner, waits=False, heard=heard)) as events,
        ):
            async for event in events:
                if isinstance(event.body, RunFailed):
                    raise RunFailedError(event.body.failure)
                if event.seq > heard and isinstance(event.body, begun):
                    return
