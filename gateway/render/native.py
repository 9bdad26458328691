"""The native stream: every event under its own name with its seq as id, then the response."""

import json
from collections.abc import Sequence

from agent.core.errors import AgentFailure
from agent.core.events import Event
from agent.core.response import respond
from gateway.render.errors import native_error, to_json
from gateway.sse import frame


def event_frame(event: Event) -> str:
    """An event; a client that reconnects sends its id as `Last-Event-ID`."""
    return frame(json.dumps(event.wire(), ensure_ascii=False), event=event.type, event_id=event.seq)


def response_frame(events: Sequence[Event]) -> str:
    """The whole response, after the terminal event."""
    return frame(respond(events).model_dump_json(), event="response")


def failure_frame(failure: AgentFailure) -> str:
    """Why there is no response."""
    return frame(to_json(native_error(failure)), event="error")
