"""The native stream: every event under its own name with its seq as id, then the response."""

import json
from collections.abc import Sequence

from agent.core.events import Event
from agent.core.failures import AgentFailure
from agent.runs.response import build_response
from gateway.render.errors import build_native_error, to_json
from gateway.render.sse import format_frame


def build_event_frame(event: Event) -> str:
    """An event's frame. A client that reconnects sends its id as `Last-Event-ID`."""
    return format_frame(json.dumps(event.to_public_json(), ensure_ascii=False), event=event.type, event_id=event.seq)


def build_response_frame(events: Sequence[Event]) -> str:
    """The whole response, sent after the terminal event."""
    return format_frame(build_response(events).model_dump_json(), event="response")


def build_failure_frame(failure: AgentFailure) -> str:
    """The frame of a failure, sent in place of the response."""
    return format_frame(to_json(build_native_error(failure)), event="error")
