"""A run as a task of the Agent2Agent protocol: the task object, and the events of its stream.

Imports the A2A SDK, so only the loaded A2A door imports this module.
"""

from collections.abc import Iterator, Mapping, Sequence

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from agent.core import events as ev
from agent.core.models import JsonObject, RunStatus
from agent.core.run_state import RunState, fold
from agent.runs.response import build_response
from gateway.render.status import StatusLines

StreamEvent = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent

ANSWER_ID = "answer"
"""The id of the artifact that holds a run's answer."""
METADATA_KEY = "stepgate"
STATES: Mapping[RunStatus, TaskState] = {
    "queued": TaskState.TASK_STATE_SUBMITTED,
    "running": TaskState.TASK_STATE_WORKING,
    "awaiting_approval": TaskState.TASK_STATE_INPUT_REQUIRED,
    # The run has ended with a question; the answer to it is a new message of the same context.
    "awaiting_input": TaskState.TASK_STATE_COMPLETED,
    "succeeded": TaskState.TASK_STATE_COMPLETED,
    # The protocol has no word for it: the answer exists, and the task's metadata say that it is partial.
    "partial": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}


def build_task(events: Sequence[ev.Event], history_length: int | None = None) -> Task:
    """Returns a run as a task, as far as its log goes. The log must not be empty.

    `history_length` is the most messages to include; None for all.
    """
    state = fold(events[0].run_id, events)
    context_id = get_context_id(state)
    history = [_make_message(state, "request", Role.ROLE_USER, state.request.prompt)]
    return Task(
        id=state.run_id,
        context_id=context_id,
        status=build_status(events),
        artifacts=[_make_artifact(state.answer.text)] if state.answer is not None else [],
        history=history if history_length is None else history[:history_length],
        metadata=_build_metadata(events),
    )


def build_status(events: Sequence[ev.Event]) -> TaskStatus:
    """Returns the current status of a run. Its message is the question of a waiting run, or why it failed."""
    state = fold(events[0].run_id, events)
    words = "" if state.answer is not None else build_response(events).response
    return TaskStatus(
        state=STATES[state.status],
        timestamp=_to_timestamp(events[-1].at),
        message=_make_message(state, f"status-{state.seq}", Role.ROLE_AGENT, words) if words else None,
    )


def get_context_id(state: RunState) -> str:
    """Returns the run's conversation; a run outside of a conversation is a context of its own."""
    return state.request.conversation_id or state.run_id


class TaskEventStream:
    """Encodes the events of one run as the events of a task's stream: first the task, then what changes."""

    def __init__(self) -> None:
        self._status = StatusLines()
        self._events: list[ev.Event] = []
        self._streamed: str | None = None
        """The text of the answer that was sent; None before its first piece."""

    def skip(self, events: Sequence[ev.Event]) -> None:
        """Takes in what happened before the stream began. Its client gets it with the task."""
        for event in events:
            self._events.append(event)
            self._status.format_event(event)

    def encode_task(self) -> Task:
        """Returns the task as it is now: the first event of a stream."""
        return build_task(self._events)

    def encode(self, event: ev.Event) -> Iterator[StreamEvent]:
        """Yields what the event adds to the stream."""
        self._events.append(event)
        line = self._status.format_event(event)
        match event.body:
            case ev.AnswerStarted():
                self._streamed = None  # the next piece replaces the text of an earlier stream
            case ev.AnswerDelta(kind="text" | "refusal", text=text):
                yield self._encode_text(text, append=self._streamed is not None, is_last=False)
                self._streamed = (self._streamed or "") + text
            case ev.AnswerFinished(text=text):
                streamed = self._streamed or ""
                is_continued = bool(streamed) and text.startswith(streamed)
                rest = text[len(streamed) :] if is_continued else text
                yield self._encode_text(rest, append=is_continued, is_last=True)
            case body if body.terminal or isinstance(body, ev.RunWaiting):
                yield self._encode_status(build_status(self._events), _build_metadata(self._events))
            case _ if line is not None:
                state = fold(event.run_id, self._events)
                message = _make_message(state, f"status-{event.seq}", Role.ROLE_AGENT, line)
                working = TaskState.TASK_STATE_WORKING
                yield self._encode_status(
                    TaskStatus(state=working, timestamp=_to_timestamp(event.at), message=message), None
                )
            case _:
                return

    def _encode_status(self, status: TaskStatus, metadata: Struct | None) -> TaskStatusUpdateEvent:
        state = fold(self._events[0].run_id, self._events)
        return TaskStatusUpdateEvent(
            task_id=state.run_id, context_id=get_context_id(state), status=status, metadata=metadata
        )

    def _encode_text(self, text: str, *, append: bool, is_last: bool) -> TaskArtifactUpdateEvent:
        state = fold(self._events[0].run_id, self._events)
        return TaskArtifactUpdateEvent(
            task_id=state.run_id,
            context_id=get_context_id(state),
            artifact=_make_artifact(text),
            append=append,
            last_chunk=is_last,
        )


def _build_metadata(events: Sequence[ev.Event]) -> Struct:
    """Returns what the protocol has no field for: status, steps, sources and citations of the run."""
    response = build_response(events)
    trace: JsonObject = response.model_dump(mode="json", include={"steps", "metadata"})
    metadata = trace["metadata"]
    known = metadata if isinstance(metadata, dict) else {}
    names = ("status", "room", "reason", "sources", "citations", "uncertainties", "usage", "approvals")
    shown = {name: known[name] for name in names if known.get(name)}
    return ParseDict({METADATA_KEY: {**shown, "steps": trace["steps"]}}, Struct())


def _make_artifact(text: str) -> Artifact:
    return Artifact(artifact_id=ANSWER_ID, name="answer", parts=[Part(text=text, media_type="text/markdown")])


def _make_message(state: RunState, name: str, role: Role, text: str) -> Message:
    return Message(
        message_id=f"{state.run_id}-{name}",
        task_id=state.run_id,
        context_id=get_context_id(state),
        role=role,
        parts=[Part(text=text)],
    )


def _to_timestamp(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromMilliseconds(round(seconds * 1000))
    return stamp
