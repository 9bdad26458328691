"""`POST /v1/agent`: the JSON-native door, whole or as a stream of events."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from agent.core.errors import AgentError
from agent.core.events import RunFailed, RunWaiting
from agent.core.models import AgentRequest, AgentResponse
from gateway.auth import By, requires, start_run
from gateway.bootstrap import Stepgate
from gateway.doors.body import JsonRoute, refuse_unknown
from gateway.doors.replies import answered
from gateway.doors.wiring import Gateway
from gateway.render.errors import FailureBody
from gateway.render.native import event_frame, failure_frame, response_frame
from gateway.sse import sse_response

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
    status: {"model": FailureBody, "description": description} for status, description in _STATUSES.items()
}


@router.post("/v1/agent", response_model=AgentResponse, responses=ERRORS)
async def agent(body: AgentRequest, http: Request, stepgate: Gateway, caller: By) -> Response:
    """Carry out a request. With `stream: true`, every event as it happens and the response at the end."""
    refuse_unknown(await http.json(), AgentRequest)
    reply = await answered(stepgate, caller, body)
    run_id, heard = reply or (await start_run(stepgate, caller, body), 0)
    http.state.run_started = True
    headers = {"x-stepgate-run-id": run_id}
    if body.stream:
        return sse_response(_stream(stepgate, run_id, caller.owner, heard), headers)
    response = await stepgate.service.response(run_id, owner=caller.owner, heard=heard)
    return Response(response.model_dump_json(), media_type="application/json", headers=headers)


async def _stream(stepgate: Stepgate, run_id: str, owner: str, heard: int) -> AsyncIterator[str]:
    events = []
    try:
        following = stepgate.service.events(run_id, owner=owner, waits=False, heard=heard)
        async with contextlib.aclosing(following):
            async for event in following:
                events.append(event)
                if event.seq > heard:
                    yield event_frame(event)
    except AgentError as error:
        yield failure_frame(error.failure())
        return
    if events and isinstance(events[-1].body, RunFailed):
        yield failure_frame(events[-1].body.failure)
    elif events and (events[-1].body.terminal or isinstance(events[-1].body, RunWaiting)):
        yield response_frame(events)
