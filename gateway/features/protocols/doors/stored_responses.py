"""Stored responses: found by id for their owner, with their items."""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from agent.core.errors import NotFoundError
from agent.core.events import ApprovalDecided, Event, RunCreated, RunWaiting
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from gateway.access.authentication import Caller
from gateway.bootstrap import Stepgate
from gateway.features.protocols.doors.response_input import list_input_items
from gateway.features.protocols.render.responses import (
    ResponseProjection,
    find_previous_start,
    make_response_id,
    parse_response_id,
)
from gateway.render.errors import RequestFormatError

_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{32}(?:_[0-9]+)?)_(?:[0-9]+|apr_[0-9a-f]+)")
"""The id of an item; it contains that of its response."""


class StoredResponse:
    """A response of this owner: its run's events, and the seq after which it begins."""

    def __init__(self, run_id: str, start: int, events: Sequence[Event]) -> None:
        self.run_id, self.start, self.events = run_id, start, events

    @property
    def wire_request(self) -> JsonObject:
        """What the request said."""
        body = self.events[0].body
        return body.wire_request if isinstance(body, RunCreated) else {}

    @property
    def conversation_id(self) -> str | None:
        """The id of the conversation it belongs to."""
        named = self.wire_request.get("conversation")
        conversation_id = named.get("id") if isinstance(named, dict) else None
        return conversation_id if isinstance(conversation_id, str) else None

    @property
    def input_items(self) -> list[JsonObject]:
        """The items of the request, with ids: what was sent, or the decisions with which the response begins."""
        if self.start:
            return self._list_decisions()
        stored = self.wire_request.get("input")
        key = make_response_id(self.run_id).removeprefix("resp_")
        return list_input_items(stored if isinstance(stored, list) else [], key)

    @property
    def is_tainted(self) -> bool:
        """Whether its run has read text from outside, or began with a conversation that had."""
        state = fold(self.run_id, self.events)
        outputs = [step.output for step in state.steps.values()]
        return state.tainted or any(output is not None and output.tainted for output in outputs)

    def list_asked_approvals(self) -> tuple[str, ...]:
        """The ids of the approval requests that this response ended with; () if it did not wait."""
        waits = (event.body for event in self.events if event.seq > self.start and isinstance(event.body, RunWaiting))
        first = next(waits, None)
        return first.approvals if first is not None else ()

    def project(self) -> ResponseProjection:
        """The response as far as the run has gone."""
        projection = ResponseProjection(self.run_id, self.start)
        for event in self.events:
            projection.encode_event(event)
        if projection.is_waiting and not projection.is_finished:
            projection.finish_waiting()
        return projection

    def _list_decisions(self) -> list[JsonObject]:
        key = make_response_id(self.run_id, self.start).removeprefix("resp_")
        asked_key = make_response_id(self.run_id, find_previous_start(self.events, self.start)).removeprefix("resp_")
        items: list[JsonObject] = []
        for event in self.events:
            if event.seq <= self.start:
                continue
            if isinstance(event.body, RunWaiting):
                break
            if isinstance(event.body, ApprovalDecided):
                items.append({
                    "id": f"in_{key}_{len(items)}",
                    "type": "mcp_approval_response",
                    "approval_request_id": f"mcpr_{asked_key}_{event.body.approval_id}",
                    "approve": event.body.decision == "approved",
                    "reason": event.body.reason or None,
                })  # fmt: skip
        return items


async def load_response(stepgate: Stepgate, caller: Caller, text: str) -> StoredResponse:
    """A stored response of this caller. Raises `NotFoundError`, also for another owner's and for one with
    `store: false`.
    """
    missing = NotFoundError(f"Response with id '{text[:100]}' not found.")
    named = parse_response_id(text)
    if named is None:
        raise missing
    run_id, start = named
    try:
        events = await stepgate.service.read_events(run_id, owner=caller.owner)
    except NotFoundError as error:
        raise missing from error
    response = StoredResponse(run_id, start, events)
    parameters = response.wire_request.get("parameters")
    is_stored = isinstance(parameters, dict) and parameters.get("store") is not False
    if not is_stored or (start and not any(e.seq == start and isinstance(e.body, RunWaiting) for e in events)):
        raise missing
    return response


async def resolve_references(
    stepgate: Stepgate, caller: Caller, items: Sequence[JsonObject]
) -> tuple[list[JsonObject], bool]:
    """The input with each reference replaced by the item of the stored response that it names, and whether one
    of these responses relies on untrusted content.

    Raises `RequestFormatError` for an unknown item, and for one of a response that is another owner's or not stored.
    """
    loaded: dict[str, dict[JsonValue, JsonObject]] = {}
    resolved: list[JsonObject] = []
    tainted = False
    for index, item in enumerate(items):
        is_reference = item.get("type") == "item_reference" or (item.keys() <= {"id", "type"} and "id" in item)
        if not is_reference:
            resolved.append(item)
            continue
        item_id = item.get("id")
        match = _ITEM_ID.fullmatch(item_id) if isinstance(item_id, str) else None
        param = f"input[{index}].id"
        missing = RequestFormatError(f"{param}: there is no such item.", param, "invalid_value")
        if match is None:
            raise missing
        name = f"resp_{match[1]}"
        if name not in loaded:
            try:
                response = await load_response(stepgate, caller, name)
            except NotFoundError as error:
                raise missing from error
            tainted = tainted or response.is_tainted
            loaded[name] = {one["id"]: one for one in (*response.input_items, *response.project().items)}
        if item_id not in loaded[name]:
            raise missing
        resolved.append(loaded[name][item_id])
    return resolved, tainted
