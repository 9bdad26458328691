"""Asks a person about something that a request wants: a run with one call of a tool, which waits for their decision."""

from dataclasses import replace
from typing import Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from agent.core.errors import BadRequestError, ConflictError
from agent.core.models import AgentRequest, DeferredModel, JsonObject, Room
from agent.policy.approval import read_open_approvals
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.idempotency import start_once
from gateway.bootstrap import Stepgate
from gateway.doors.approvals import OpenApprovalItem, to_item
from gateway.doors.http_runs import RUN_ID_HEADER


class WaitingCall(DeferredModel):
    """What was asked for is done once a person allows it."""

    status: Literal["awaiting_approval"] = "awaiting_approval"
    run_id: str = Field(description="the run that does it; its approve endpoint takes the decision")
    approvals: list[OpenApprovalItem]


async def ask_person(
    http: Request, stepgate: Stepgate, caller: Caller, tool: str, args: JsonObject, withheld: JsonObject | None = None
) -> Response:
    """Starts the run and returns its question, with status 202. `withheld` is shown to no reader of the run's log.

    Raises `BadRequestError` if that holds a secret of this gateway, and `ConflictError` if the run ended without
    asking.
    """
    service, withheld = stepgate.service, withheld or {}
    if service.redact_json(withheld) != withheld:
        raise BadRequestError("the request holds a secret of this gateway; name a stored credential instead")
    request = AgentRequest(metadata={"tool_calls": [{"tool": tool, "args": args}]})
    room = Room(id=stepgate.rooms.get(None, caller.owner).id, tools=(tool,), supervision="checks", memory=False)
    principal = replace(caller.principal, tools=None)  # the key's list has the tool whose work the request is, not this

    async def start(run_id: str | None) -> AcceptedRun:
        origin = RunOrigin(withheld=withheld)
        made = await service.start_run(request, principal, room=room, run_id=run_id, origin=origin)
        return AcceptedRun(made, caller.owner)

    run = await start_once(http, caller.owner, start)
    http.state.run_started, http.state.run_id = True, run.run_id
    await service.wait_until_stopped(run.run_id, owner=run.owner)
    row = await service.get_run(run.run_id, owner=run.owner)
    approvals = await read_open_approvals(service, row)
    if not approvals:
        raise ConflictError(f"nothing was done and nobody was asked; see run {run.run_id}", run_id=run.run_id)
    waiting = WaitingCall(run_id=run.run_id, approvals=[to_item(one) for one in approvals])
    headers = {RUN_ID_HEADER: run.run_id}
    return Response(waiting.model_dump_json(), 202, media_type="application/json", headers=headers)
