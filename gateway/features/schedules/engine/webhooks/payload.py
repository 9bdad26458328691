"""The body of a webhook: the status and answer of an ended run."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from agent.core.events import Event
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.runs.response import build_response

MAX_ANSWER_CHARS: Final = 16_000
"""Longest answer in a webhook. The specification recommends bodies below 20 kB; the run's address has the whole."""
MAX_METADATA_CHARS: Final = 4_000
"""Longest metadata of a request that is repeated, as JSON."""


def build_payload(events: Sequence[Event], run_url: str) -> bytes:
    """The JSON body for a run's whole log: `type`, `timestamp` of the end, and `data`."""
    state, response = fold(events[0].run_id, events), build_response(events)
    answer, metadata = response.response, state.request.get_caller_metadata()
    data: JsonObject = {
        "id": state.run_id,
        "status": state.status,
        "answer": answer[:MAX_ANSWER_CHARS],
        "answer_truncated": len(answer) > MAX_ANSWER_CHARS,
        "url": run_url,
        "room": state.room.id,
        "owner": state.owner,
        "metadata": metadata if len(json.dumps(metadata)) <= MAX_METADATA_CHARS else {},
        "failure": state.failure.model_dump(mode="json") if state.failure is not None else None,
    }
    ended = datetime.fromtimestamp(state.updated_at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    payload = {"type": f"run.{state.status}", "timestamp": ended, "data": data}
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
