"""`POST /v1/agent`: the JSON-native door, whole or as a stream of events."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from agent.core.events import RunFailed, RunWaiting
from agent.core.models import AgentRequest, AgentResponse
from gateway.auth import By, Stream, requires
from gateway.awaited import Awaited
from gateway.bootstrap import Stepgate
from gateway.doors.attendance import while_heard
from gateway.doors.beginning import begun
from gateway.doors.body import JsonRoute, refuse_unknown
from gateway.doors.wiring import Gateway
from gateway.idempotency import begun_once
from gateway.render.errors import FailureBody
from gateway.render.native import event_frame, failure_frame, response_frame

router = APIRouter(tags=["agent"], route_class=JsonRoute, dependencies=[requires("agent")])

_STATUSES: dict[int | str, str] = {
    400: "The request cannot be understood",
    404: "There is no such thing",
    409: "The state of the thing forbids this",
    413: "The body is too large",
    415: "The body is not sent as plain JSON",
    429: "The provider's rate limit",
    500: "A defect",
    502: "The model or a tool failed",
    503: "Stopping, full, or the store is down",
    504: "The model or a tool was too slow",
    # Without it FastAPI would promise a 422 in a shape of its own.
    "default": "Any other failure",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FailureBody"}}},
    }
    for status, description in _STATUSES.items()
}
"""For every route's document. By reference: FastAPI builds a validator for each model of each route when it starts."""
_FAILURE_BODY: dict[int | str, dict[str, Any]] = {400: {"model": FailureBody, "description": _STATUSES[400]}}
"""What the references of `ERRORS` point at; one route declares it for all."""


STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
"""Of a door that answers by a stream where it is asked to."""


@router.post("/v1/agent", response_model=AgentResponse, responses={**ERRORS, **_FAILURE_BODY, **STREAM})
async def agent(body: AgentRequest, http: Request, stepgate: Gateway, caller: By, stream: Stream) -> Response:
    """Carry out a request. With `stream: true`, every event as it happens and the response at the end."""
    refuse_unknown(await http.json(), AgentRequest)
    with stream.taken(body.stream):
        run_id, heard = await begun_once(http, lambda new: begun(stepgate, caller, body, run_id=new))
        http.state.run_started, http.state.run_id = True, run_id
        if body.stream:
            headers = {"x-stepgate-run-id": run_id}
            return stream.response(_stream(stepgate, run_id, caller.owner, heard), failure_frame, headers)
    return Awaited(partial(_whole, stepgate, run_id, caller.owner, heard))


async def _whole(stepgate: Stepgate, run_id: str, owner: str, heard: int, http: Request) -> Response:
    response = await while_heard(http, stepgate.service.response(run_id, owner=owner, heard=heard))
    headers = {"x-stepgate-run-id": run_id}
    return Response(response.model_dump_json(), media_type="application/json", headers=headers)


async def _stream(stepgate: Stepgate, run_id: str, owner: str, heard: int) -> AsyncGenerator[str, None]:
    events = []
    async with contextlib.aclosing(stepgate.service.events(run_id, owner=owner, waits=False, heard=heard)) as following:
        async for event in following:
            events.append(event)
            if event.seq > heard:
                yield event_frame(event)
    if events and isinstance(events[-1].body, RunFailed):
        yield failure_frame(events[-1].body.failure)
    elif events and (events[-1].body.terminal or isinstance(events[-1].body, RunWaiting)):
        yield response_frame(events)
