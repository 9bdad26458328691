"""`POST /v1/agent`: the JSON door, answering as a whole or as a stream of events."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from agent.core import models
from agent.core.errors import BadRequestError
from agent.core.events import Event, RunFailed, RunWaiting
from agent.core.models import AgentResponse, DeferredModel, RunStatus, Webhook
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.dependencies import get_caller, get_event_stream, get_gateway, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.http_runs import RUN_ID_HEADER, accept_run, cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import refuse_unknown_fields
from gateway.render.deferred_response import DeferredResponse
from gateway.render.errors import FailureBody
from gateway.render.native import build_event_frame, build_failure_frame, build_response_frame

router = APIRouter(tags=["agent"], route_class=JsonRoute, dependencies=[require_scope("agent")])

_STATUSES: dict[int | str, str] = {
    400: "The request is invalid",
    404: "Not found",
    409: "The current state does not allow this",
    413: "The body is too large",
    415: "The body is compressed, or is not JSON",
    429: "The provider's rate limit is reached",
    500: "An internal error",
    502: "The model or a tool failed",
    503: "The gateway is stopping or full, or its store is down",
    504: "The model or a tool timed out",
    # Without it FastAPI would document a 422 in its own shape.
    "default": "Any other failure",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FailureBody"}}},
    }
    for status, description in _STATUSES.items()
}
"""Error responses of every route's documentation. References, because FastAPI builds a validator for each model of each
route at start."""
_FAILURE_BODY: dict[int | str, dict[str, Any]] = {400: {"model": FailureBody, "description": _STATUSES[400]}}
"""Declares the schema that the references in `ERRORS` point to; one route declares it for all."""


STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
"""Documents a response that may be a stream."""


class AgentRequest(models.AgentRequest):
    """The body of `POST /v1/agent`: the request, and how it is answered."""

    model_config = ConfigDict(defer_build=False)  # a body: see `DeferredModel`

    background: bool = Field(default=False, description="answer 202 at once; the run is at /v1/runs/ID")
    webhook: Webhook | None = Field(
        default=None, description="receives the end of the run (docs/schedules.md); needs `background: true`"
    )

    def to_request(self) -> models.AgentRequest:
        """The request alone, as it is stored with the run."""
        names = models.AgentRequest.model_fields
        return models.AgentRequest.model_construct(**{name: getattr(self, name) for name in names})


class BackgroundRun(DeferredModel):
    """A run that was started in the background."""

    run_id: str
    status: RunStatus
    url: str = Field(description="where the run is found")


@router.post(
    "/v1/agent",
    response_model=AgentResponse,
    responses={
        **ERRORS,
        **_FAILURE_BODY,
        **STREAM,
        202: {"model": BackgroundRun, "description": "The run goes on in the background"},
    },
)
async def run_agent(body: AgentRequest, http: Request) -> Response:
    """Execute a request. With `stream: true`, sends every event as it happens and the response at the end. With
    `background: true`, answers at once.
    """
    stepgate: Stepgate = get_gateway(http)
    caller, stream = await get_caller(http), await get_event_stream(http)
    refuse_unknown_fields(await http.json(), AgentRequest)
    if body.background:
        return await _start_in_background(body, http, stepgate, caller)
    if body.webhook is not None:
        raise BadRequestError("webhook: set 'background' to true as well", param="webhook")
    with stream.hold_slot(body.stream):
        run = await accept_run(http, stepgate, caller, body.to_request())
        if body.stream:
            return stream.build_response(
                _stream_events(stepgate, run), build_failure_frame, {RUN_ID_HEADER: run.run_id}
            )
    return DeferredResponse(partial(_respond, stepgate, run))


async def _start_in_background(body: AgentRequest, http: Request, stepgate: Stepgate, caller: Caller) -> Response:
    if body.stream:
        raise BadRequestError("stream: a run in the background is followed at /v1/runs/ID/events", param="stream")
    run = await accept_run(http, stepgate, caller, body.to_request(), webhook=body.webhook)
    row = await stepgate.service.get_run(run.run_id, owner=run.owner)
    url = f"{stepgate.settings.public_path}/v1/runs/{run.run_id}"
    started = BackgroundRun(run_id=run.run_id, status=row.status, url=url)
    headers = {RUN_ID_HEADER: run.run_id}
    return Response(started.model_dump_json(), 202, headers, media_type="application/json")


async def _respond(stepgate: Stepgate, run: AcceptedRun, http: Request) -> Response:
    response = await cancel_on_disconnect(
        http, stepgate.service.wait_for_response(run.run_id, owner=run.owner, seen_seq=run.last_seq)
    )
    return Response(response.model_dump_json(), media_type="application/json", headers={RUN_ID_HEADER: run.run_id})


async def _stream_events(stepgate: Stepgate, run: AcceptedRun) -> AsyncGenerator[str, None]:
    events: list[Event] = []
    async with contextlib.aclosing(
        stepgate.service.follow_events(run.run_id, owner=run.owner, waits=False, seen_seq=run.last_seq)
    ) as followed:
        async for event in followed:
            events.append(event)
            if event.seq > run.last_seq:
                yield build_event_frame(event)
    if events and isinstance(events[-1].body, RunFailed):
        yield build_failure_frame(events[-1].body.failure)
    elif events and (events[-1].body.terminal or isinstance(events[-1].body, RunWaiting)):
        yield build_response_frame(events)
