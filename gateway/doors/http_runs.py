"""Starts the runs of HTTP doors, once for each `Idempotency-Key`, and stops work when the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from agent.core.models import Webhook
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.idempotency import start_once
from gateway.bootstrap import Stepgate
from gateway.render.error_responses import ClientDisconnectedError

RUN_ID_HEADER = "x-stepgate-run-id"


async def accept_run(
    http: Request,
    stepgate: Stepgate,
    caller: Caller,
    request: object,
    *,
    is_repeatable: bool = False,
    webhook: Webhook | None = None,
) -> AcceptedRun:
    """The run that answers the request.

    Marks the HTTP request as one that has started a run, so that an error response names the run and asks clients not
    to repeat the request. `is_repeatable` is for a run without side effects, which may be repeated. `webhook` is
    notified of the run's end. Raises what `RunIntake.accept` raises, and `BadRequestError` for a webhook that cannot be
    used.
    """
    if webhook is not None:
        await stepgate.intake.check_webhook(webhook, caller.owner)
    accepted = await start_once(
        http,
        caller.owner,
        lambda run_id: stepgate.intake.accept(caller.principal, request, run_id=run_id, webhook=webhook),
    )
    http.state.run_started, http.state.run_id = not is_repeatable, accepted.run_id
    return accepted


T = TypeVar("T")


async def cancel_on_disconnect(http: Request, work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work`; cancels it and raises `ClientDisconnectedError` if the client disconnects.

    A run that `work` only waits for continues: its owner finds it in the list of runs. The body must have been read. A
    request with an `Idempotency-Key` is carried out to its end: its client comes back for the answer.
    """
    if "idempotency-key" in http.headers:
        return await work
    request_task = asyncio.current_task()
    assert request_task is not None
    cancellations = request_task.cancelling()
    is_disconnected = False

    async def cancel_request() -> None:
        nonlocal is_disconnected
        while (await http.receive())["type"] != "http.disconnect":
            pass
        is_disconnected = True
        request_task.cancel()

    # `work` needs no task of its own: as in `asyncio.timeout`, another task cancels this one.
    watcher = asyncio.create_task(cancel_request())
    try:
        return await work
    except asyncio.CancelledError as error:
        if is_disconnected and request_task.uncancel() <= cancellations:
            raise ClientDisconnectedError("the client disconnected before the answer was ready") from error
        raise
    finally:
        watcher.cancel()


async def notify_on_disconnect(
    frames: AsyncGenerator[str, None], hung_up: Callable[[], Awaitable[None]]
) -> AsyncGenerator[str, None]:
    """Yields the frames of a stream; calls `hung_up` if the client disconnects before the last one."""
    async with aclosing(frames):
        try:
            async for text in frames:
                yield text
        except (GeneratorExit, asyncio.CancelledError):
            await hung_up()
            raise
