"""Results of the client's own tools: finds the run that ended with the calls, and starts the run that goes on.

The new run's id follows from the earlier one's, so that the same results sent twice are one run.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from agent.core.errors import BadRequestError, ConflictError, NotFoundError
from agent.core.events import GivenPlan
from agent.core.models import AgentRequest, ChatMessage, Room
from agent.core.principal import Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.runs.input_replies import derive_reply_id
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AcceptedRun, AgentService

CALL_PREFIX = "call_"


async def find_client_results(
    service: AgentService[Any], owner: str, request: AgentRequest, room: Room
) -> GivenPlan | None:
    """The plan to go on with, and the results that the request ends with; None if it brings no results.

    Raises `BadRequestError` for results of unknown calls, of calls of several runs, and if one is missing.
    """
    results = _list_results(request) if room.offers_client_tools else []
    if not results:
        return None
    origin = await _load_origin(service, owner, results[0].tool_call_id or "")
    if origin.room.id != room.id:
        message = f"messages: the calls were made by the model {origin.room.id!r}; send their results to it"
        raise BadRequestError(message, param="messages")
    called = [call.call_id for call in origin.client_calls.calls] if origin.client_calls is not None else []
    given: dict[str, str] = {}
    for result in results:
        call_id = result.tool_call_id or ""
        if call_id not in called:
            raise _build_unknown_call_error(call_id)
        if call_id in given:
            raise BadRequestError(f"messages: there are two results of the call {call_id!r}", param="messages")
        given[call_id] = result.content
    missing = [call_id for call_id in called if call_id not in given]
    if missing:
        message = f"messages: every call needs its result; missing: {', '.join(missing)}"
        raise BadRequestError(message, param="messages")
    if origin.plan is None:
        raise _build_unknown_call_error(called[0])
    return GivenPlan(plan=origin.plan, from_run=origin.run_id, client_results=given)


async def start_continuation(
    service: AgentService[Any],
    caller: Principal,
    request: AgentRequest,
    room: Room,
    origin: RunOrigin,
    given: GivenPlan,
) -> AcceptedRun:
    """Starts the run that goes on with a given plan, or returns it if the same results were sent before.

    Raises `ConflictError` if other results were sent before, and what `AgentService.start_run` raises.
    """
    run_id = derive_reply_id(given.from_run)
    try:
        goes_on = RunOrigin(wire_request=origin.wire_request, tainted=origin.tainted, given=given)
        await service.start_run(request, caller, room=room, run_id=run_id, origin=goes_on)
    except ConflictError as error:
        earlier = fold(run_id, await service.read_events(run_id, owner=caller.owner))
        sent = service.redact_json({**given.client_results})
        if earlier.given is None or earlier.given.client_results != sent:
            message = f"these calls were answered before with other results; run {run_id!r} went on with those"
            raise ConflictError(message) from error
    return AcceptedRun(run_id, caller.owner)


def _list_results(request: AgentRequest) -> Sequence[ChatMessage]:
    """The tool messages that the conversation ends with, in their order; [] if something follows them."""
    messages = request.messages or ()
    position = len(messages) if request.prompt_position is None else request.prompt_position
    tail = list(takewhile(lambda message: message.role == "tool", reversed(messages[position:])))
    return tail[::-1]


async def _load_origin(service: AgentService[Any], owner: str, call_id: str) -> RunState:
    """The run that ended with this call."""
    run_id = f"run_{call_id.removeprefix(CALL_PREFIX).rpartition('_')[0]}"
    try:
        state = fold(run_id, await service.read_events(run_id, owner=owner))
    except NotFoundError as error:
        raise _build_unknown_call_error(call_id) from error
    if state.client_calls is None or state.status != "awaiting_input":
        raise _build_unknown_call_error(call_id)
    return state


def _build_unknown_call_error(call_id: str) -> BadRequestError:
    message = (
        f"messages: no run of yours waits for the result of the call {call_id[:100]!r}; "
        "send the results of the calls that the last answer made, or a message of the user"
    )
    return BadRequestError(message, param="messages")
