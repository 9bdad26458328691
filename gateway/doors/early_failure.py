"""Detects runs that fail before the first byte of their stream, while a failure can still have an HTTP status."""

import asyncio
import contextlib
from typing import Any

from agent.core.events import AnswerDelta, AnswerFinished, RequestUnderstood, RunFailed, RunWaiting, ToolCalled
from agent.runs.run_failed import RunFailedError
from agent.runs.service import AcceptedRun, AgentService

FIRST_BYTE_SECONDS = 2.0
"""How long the response headers of a stream wait for its first byte."""
_ANSWER_EVENTS = (AnswerDelta, AnswerFinished, ToolCalled, RunWaiting)
_PROGRESS_EVENTS = (*_ANSWER_EVENTS, RequestUnderstood)


async def raise_early_failure(service: AgentService[Any], run: AcceptedRun, *, shows_work: bool = False) -> None:
    """Waits until the run has new output, at most `FIRST_BYTE_SECONDS`.

    A client that shows progress (`shows_work`) waits only until work has started. Raises `RunFailedError` if the run
    fails before: after a 200 it could only be reported by a frame.
    """
    awaited = _PROGRESS_EVENTS if shows_work else _ANSWER_EVENTS
    with contextlib.suppress(TimeoutError):
        async with (
            asyncio.timeout(FIRST_BYTE_SECONDS),
            contextlib.aclosing(
                service.follow_events(run.run_id, owner=run.owner, waits=False, seen_seq=run.last_seq)
            ) as events,
        ):
            async for event in events:
                if isinstance(event.body, RunFailed):
                    raise RunFailedError(event.body.failure)
                if event.seq > run.last_seq and isinstance(event.body, awaited):
                    return
