"""Passes the requests of HTTP doors to `RunIntake.accept`, once for each `Idempotency-Key`."""

from fastapi import Request

from agent.core.models import Webhook
from agent.runs.service import AcceptedRun
from gateway.auth.authentication import Caller
from gateway.bootstrap import Stepgate
from gateway.idempotency.middleware import start_once

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
