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
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import format_named_approval
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
    # The run has ended with a question. The reply to it starts a run that belongs to the same task.
    "awaiting_input": TaskState.TASK_STATE_INPUT_REQUIRED,
    "succeeded": TaskState.TASK_STATE_COMPLETED,
    # The protocol has no word for it: the answer exists, and the task's metadata say that it is partial.
    "partial": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}


def build_task(runs: Sequence[Sequence[ev.Event]], history_length: int | None = None) -> Task:
    """A task as far as the logs of its runs go, oldest run first. No log may be empty.

    All runs but the last one have ended with a question, and the next one's request answers it. `history_length` is the
    most messages to include, the newest ones; None for all.
    """
    states = [fold(events[0].run_id, events) for events in runs]
    task_id, last = states[0].run_id, states[-1]
    history = []
    for state in states:
        history.append(_make_message(state, task_id, "request", Role.ROLE_USER, state.request.prompt))
        if state is not last and state.answer is not None:
            history.append(_make_message(state, task_id, "question", Role.ROLE_AGENT, state.answer.text))
    has_answer = last.answer is not None and last.status != "awaiting_input"
    return Task(
        id=task_id,
        context_id=get_context_id(last),
        status=build_status(runs[-1], task_id),
        artifacts=[_make_artifact(last.answer.text)] if last.answer is not None and has_answer else [],
        history=history if history_length is None else history[len(history) - min(history_length, len(history)) :],
        metadata=_build_metadata(runs[-1]),
    )


def build_status(events: Sequence[ev.Event], task_id: str) -> TaskStatus:
    """The current status of a task by the log of its last run. Its message is what the task asks for, or why it
    failed.
    """
    state = fold(events[0].run_id, events)
    is_answered = state.answer is not None and state.status != "awaiting_input"
    words = "" if is_answered else build_response(events).response
    if words and (needed := format_named_approval(state)):
        words = f"{words}\n\nSomething else of this task was approved before. To approve this, send: `{needed}`"
    return TaskStatus(
        state=STATES[state.status],
        timestamp=_to_timestamp(events[-1].at),
        message=_make_message(state, task_id, f"status-{state.seq}", Role.ROLE_AGENT, words) if words else None,
    )


def get_context_id(state: RunState) -> str:
    """The run's conversation; a run outside of a conversation is a context of its own."""
    return state.request.conversation_id or state.run_id


class TaskEventStream:
    """Encodes the events of a task's last run as the events of its stream: first the task, then what changes.

    `earlier` are the logs of the runs before it.
    """

    def __init__(self, earlier: Sequence[Sequence[ev.Event]] = ()) -> None:
        self._earlier = earlier
        self._status = StatusLines()
        self._asks_user = False
        self._events: list[ev.Event] = []
        self._streamed: str | None = None
        """The text of the answer that was sent; None before its first piece."""

    def skip(self, events: Sequence[ev.Event]) -> None:
        """Takes in what happened before the stream began. Its client gets it with the task."""
        for event in events:
            self._events.append(event)
            self._status.format_event(event)

    def encode_task(self) -> Task:
        """The task as it is now: the first event of a stream."""
        return build_task([*self._earlier, self._events])

    def encode(self, event: ev.Event) -> Iterator[StreamEvent]:
        """Yields what the event adds to the stream."""
        self._events.append(event)
        line = self._status.format_event(event)
        match event.body:
            case ev.InputRequested():
                self._asks_user = True
            case ev.AnswerStarted() | ev.AnswerDelta() | ev.AnswerFinished() if self._asks_user:
                return  # the question is the message of the status that follows
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
                yield self._encode_status(build_status(self._events, self._task_id), _build_metadata(self._events))
            case _ if line is not None:
                message = _make_message(
                    self._created_state, self._task_id, f"status-{event.seq}", Role.ROLE_AGENT, line
                )
                working = TaskState.TASK_STATE_WORKING
                yield self._encode_status(
                    TaskStatus(state=working, timestamp=_to_timestamp(event.at), message=message), None
                )
            case _:
                return

    @property
    def _task_id(self) -> str:
        return (self._earlier[0] if self._earlier else self._events)[0].run_id

    @property
    def _created_state(self) -> RunState:
        """The run as it was created, which names its conversation: folding the whole log for each piece of an answer
        would take the square of the answer's length.
        """
        return fold(self._events[0].run_id, self._events[:1])

    def _encode_status(self, status: TaskStatus, metadata: Struct | None) -> TaskStatusUpdateEvent:
        return TaskStatusUpdateEvent(
            task_id=self._task_id, context_id=get_context_id(self._created_state), status=status, metadata=metadata
        )

    def _encode_text(self, text: str, *, append: bool, is_last: bool) -> TaskArtifactUpdateEvent:
        return TaskArtifactUpdateEvent(
            task_id=self._task_id,
            context_id=get_context_id(self._created_state),
            artifact=_make_artifact(text),
            append=append,
            last_chunk=is_last,
        )


def _build_metadata(events: Sequence[ev.Event]) -> Struct:
    """The metadata that the protocol has no field for: status, steps, sources and citations of the run."""
    response = build_response(events)
    trace: JsonObject = response.model_dump(mode="json", include={"steps", "metadata"})
    metadata = trace["metadata"]
    given_metadata = metadata if isinstance(metadata, dict) else {}
    names = ("status", "room", "reason", "sources", "citations", "uncertainties", "usage", "approvals")
    copied_metadata = {name: given_metadata[name] for name in names if given_metadata.get(name)}
    return ParseDict({METADATA_KEY: {**copied_metadata, "steps": trace["steps"]}}, Struct())


def _make_artifact(text: str) -> Artifact:
    return Artifact(artifact_id=ANSWER_ID, name="answer", parts=[Part(text=text, media_type="text/markdown")])


def _make_message(state: RunState, task_id: str, name: str, role: Role, text: str) -> Message:
    return Message(
        message_id=f"{state.run_id}-{name}",
        task_id=task_id,
        context_id=get_context_id(state),
        role=role,
        parts=[Part(text=text)],
    )


def _to_timestamp(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromMilliseconds(round(seconds * 1000))
    return stamp
