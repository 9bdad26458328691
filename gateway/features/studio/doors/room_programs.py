"""Asks a person about a change of a room that starts programs: a run with one call, which waits for their decision."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from fastapi import Request
from pydantic import Field

from agent.core.errors import BadRequestError, ConflictError
from agent.core.models import AgentRequest, DeferredModel, JsonObject, Room
from agent.policy.approval import read_open_approvals
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.idempotency import start_once
from gateway.bootstrap import Stepgate
from gateway.doors.approvals import OpenApprovalItem, to_item
from gateway.features.studio.engine.room_changes import RoomChange
from gateway.features.studio.engine.room_programs import RoomProgram
from gateway.features.studio.tools.room_programs import ROOM_PROGRAMS_TOOL, WITHHELD_CHANGE


class WaitingRoomChange(DeferredModel):
    """A change that is made once a person allows the programs which the room would start."""

    status: Literal["awaiting_approval"] = "awaiting_approval"
    run_id: str = Field(description="the run that makes the change; its approve endpoint takes the decision")
    approvals: list[OpenApprovalItem]


async def ask_about_programs(
    http: Request, stepgate: Stepgate, caller: Caller, change: RoomChange, programs: Sequence[RoomProgram]
) -> WaitingRoomChange:
    """Starts the run and returns its question. The change itself is withheld from readers of the run's log, because it
    holds the values of environment variables.

    Raises `BadRequestError` for a change that holds a secret of this gateway, and `ConflictError` if the run ended
    without asking.
    """
    service = stepgate.service
    withheld: JsonObject = {WITHHELD_CHANGE: change.model_dump(mode="json")}
    if service.redact_request(AgentRequest(metadata=withheld)).metadata != withheld:
        raise BadRequestError("the room holds a secret of this gateway; name a stored credential instead")
    room_id = change.room_id or (str(change.fields.get("name")) if change.kind == "create" else "")
    args: JsonObject = {"room_id": room_id, "servers": [program.server for program in programs]}
    request = AgentRequest(metadata={"tool_calls": [{"tool": ROOM_PROGRAMS_TOOL, "args": args}]})
    room = Room(
        id=stepgate.rooms.get(None, caller.owner).id, tools=(ROOM_PROGRAMS_TOOL,), supervision="checks", memory=False
    )
    principal = replace(caller.principal, tools=None)  # the key's list has room_create or room_edit, not this tool

    async def start(run_id: str | None) -> AcceptedRun:
        made = await service.start_run(request, principal, room=room, run_id=run_id, withheld=withheld)
        return AcceptedRun(made, caller.owner)

    run = await start_once(http, caller.owner, start)
    http.state.run_started, http.state.run_id = True, run.run_id
    await service.wait_until_stopped(run.run_id, owner=run.owner)
    row = await service.get_run(run.run_id, owner=run.owner)
    waiting = await read_open_approvals(service, row)
    if not waiting:
        raise ConflictError(f"the change was not made and nobody was asked; see run {run.run_id}", run_id=run.run_id)
    return WaitingRoomChange(run_id=run.run_id, approvals=[to_item(one) for one in waiting])
