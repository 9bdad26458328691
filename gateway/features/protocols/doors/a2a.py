"""The Agent2Agent protocol (A2A): the agent card, and runs as tasks over JSON-RPC and server-sent events.

Imports the A2A SDK, so `lazy_a2a.py` loads this module at the first request. Methods of protocol 1.0; those of 0.3 are
served by the SDK's compatibility layer.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Never

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils import errors as a2a_errors
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request

from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError, RoomUnknownError, TooLargeError
from agent.core.models import ENDED_STATUSES, AgentRequest, ChatMessage, JsonObject
from agent.core.models.words import read_stored_role
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import format_named_approval, parse_decision, split_approval_ids
from agent.runs.decisions import submit_text
from agent.runs.input_replies import build_reply_request, derive_reply_id
from agent.runs.intake_requests import ChatRequest, ContextMessage
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.key_watch import KeyWatch
from gateway.bootstrap import Stepgate
from gateway.doors.http_runs import accept_run
from gateway.features.protocols.doors.a2a_card import build_agent_card
from gateway.features.protocols.doors.a2a_parts import MessageContent, read_parts
from gateway.features.protocols.doors.a2a_tasks import RunTask, find_task, list_tasks, read_task_events
from gateway.features.protocols.render.a2a import StreamEvent, TaskEventStream, build_task, get_context_id

CANCEL_SECONDS = 5.0
"""How long `tasks/cancel` waits until the run has stopped."""
_INVALID = (BadRequestError, RoomUnknownError, TooLargeError)
_CALL_KEY = "stepgate_call"


class A2ADoor:
    """The agent card and the dispatcher of one gateway."""

    def __init__(self) -> None:
        handler = RunTaskHandler()
        self._dispatcher = JsonRpcDispatcher(handler, _ContextBuilder(), enable_v0_3_compat=True)
        self.handle_request = self._dispatcher.handle_requests

    @staticmethod
    def build_card(stepgate: Stepgate, base_url: str) -> JsonObject:
        """The agent card as JSON, with the fields of protocol 0.3 too."""
        return agent_card_to_dict(build_agent_card(stepgate, base_url))


class _Call(User):
    """One HTTP request and its caller."""

    def __init__(self, http: Request) -> None:
        self.http = http
        self.caller: Caller = http.state.caller
        self.stepgate: Stepgate = http.app.state.stepgate

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller has a key."""
        return self.caller.key is not None

    @property
    def user_name(self) -> str:
        """The owner of what the caller reads and writes."""
        return self.caller.owner


class _ContextBuilder(ServerCallContextBuilder):
    """Passes the HTTP request, whose caller the door has verified, to the handler."""

    def build(self, request: Request) -> ServerCallContext:
        call = _Call(request)
        return ServerCallContext(user=call, state={"headers": dict(request.headers), _CALL_KEY: call})


class RunTaskHandler(RequestHandler):
    """The methods of the protocol over the runs of a gateway. See `a2a_tasks`; a context is a conversation."""

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Starts a run, or answers one that waits. Returns when it has ended or waits, or at once if the client asks
        for that.
        """
        call = _get_call(context)
        service, owner = call.stepgate.service, call.caller.owner
        with _translate_errors():
            task, seen_seq = await _accept_message(call, params)
            if not params.configuration.return_immediately:
                await service.wait_until_end(task.run_ids[-1], owner=owner, waits=False, seen_seq=seen_seq)
            return build_task(await read_task_events(service, task, owner), _get_history_length(params))

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        """As `on_message_send`, with everything that happens as events."""
        call = _get_call(context)
        with _translate_errors(), call.stepgate.authenticator.open_stream(call.caller) as watch:
            task, seen_seq = await _accept_message(call, params)
            async for event in _follow(_stream_task(call, task, seen_seq), watch):
                yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        """Streams a task that has not ended: first the task as it is, then what happens."""
        call = _get_call(context)
        with _translate_errors(), call.stepgate.authenticator.open_stream(call.caller) as watch:
            task = await find_task(call.stepgate.service, params.id, call.caller.owner)
            if task.last.status in ENDED_STATUSES and task.last.status != "awaiting_input":
                ended_note = f"the task has ended ({task.last.status}); read it with GetTask"
                raise a2a_errors.UnsupportedOperationError(ended_note)
            async for event in _follow(_stream_task(call, task, task.last.last_seq), watch):
                yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """A task."""
        call = _get_call(context)
        service, owner = call.stepgate.service, call.caller.owner
        with _translate_errors():
            task = await find_task(service, params.id, owner)
            return build_task(await read_task_events(service, task, owner), _get_history_length(params))

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancels a task, and waits until it has stopped, at most `CANCEL_SECONDS`."""
        call = _get_call(context)
        service, owner = call.stepgate.service, call.caller.owner
        with _translate_errors():
            task = await find_task(service, params.id, owner)
            run_id = task.run_ids[-1]
            try:
                await service.cancel_run(run_id, owner=owner, reason="cancelled by the A2A client")
            except ConflictError as error:
                raise a2a_errors.TaskNotCancelableError(error.message) from error
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await service.wait_until_end(run_id, owner=owner)
            return build_task(await read_task_events(service, task, owner))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Lists the caller's tasks, the last changed first."""
        call = _get_call(context)
        with _translate_errors():
            return await list_tasks(call.stepgate.service, params, call.caller.owner)

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refuses: there is one card."""
        raise a2a_errors.ExtendedAgentCardNotConfiguredError

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refuses push notifications."""
        _refuse_push_notifications()

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refuses push notifications."""
        _refuse_push_notifications()

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Refuses push notifications."""
        _refuse_push_notifications()

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Refuses push notifications."""
        _refuse_push_notifications()


async def _accept_message(call: _Call, params: SendMessageRequest) -> tuple[RunTask, int]:
    """The task of the message, and how much of its last run the client has seen: the task that the message
    names, which must wait for a person, or a new one.
    """
    message = params.message
    if params.configuration.HasField("task_push_notification_config"):
        _refuse_push_notifications()
    content = await read_parts(message.parts)
    if message.task_id:
        return await _reply(call, message, content)
    # The server names a context that the client did not: its next message may continue the conversation.
    context_id = message.context_id or f"ctx_{secrets.token_hex(16)}"
    request = AgentRequest(
        prompt=content.text, images=content.images, room=_read_room(params), conversation_id=context_id
    )
    run = await accept_run(call.http, call.stepgate, call.caller, await _attach_files(call, request, content))
    return await _find_task_of(call, run.run_id), run.last_seq


async def _attach_files(call: _Call, request: AgentRequest, content: MessageContent) -> ContextMessage | ChatRequest:
    """The request with the files of its message as untrusted context, after the stored conversation."""
    if not content.files:
        return ContextMessage(request)
    owner, context_id = call.caller.owner, request.conversation_id or ""
    turns = await call.stepgate.sessions.list_turns(owner, [context_id]) if request.messages is None else []
    history = [ChatMessage(role=read_stored_role(one.role), content=one.text) for one in turns]
    files = [ChatMessage(role="user", content=text) for text in content.files]
    messages = (*(request.messages or ()), *history, *files)
    named = request.model_copy(update={"messages": messages})
    return ChatRequest(named, context_id or None, tainted=True, names_what_it_answers=True)


async def _reply(call: _Call, message: Message, content: MessageContent) -> tuple[RunTask, int]:
    """Submits the message to the task that it names. Raises `A2AError` if that task does not wait for a person."""
    service, owner = call.stepgate.service, call.caller.owner
    task = await find_task(service, message.task_id, owner)
    state = fold(task.run_ids[-1], await service.read_events(task.run_ids[-1], owner=owner))
    if message.context_id and message.context_id != get_context_id(state):
        raise a2a_errors.InvalidParamsError("the task belongs to another context; leave contextId out")
    if task.last.status == "awaiting_input":
        answer = build_reply_request(state, content.text, content.images)
        await _start_reply(call, task, await _attach_files(call, answer, content))
        return await find_task(service, message.task_id, owner), 0
    if task.last.status != "awaiting_approval":
        raise a2a_errors.UnsupportedOperationError(
            f"the task does not accept messages ({task.last.status}); "
            "to continue, send one without taskId, with its contextId"
        )
    if content.files or content.images:
        raise a2a_errors.InvalidParamsError("the task waits for a decision: send text, such as 'approve'")
    words, approvals = _read_decision(state, content.text)
    run = await submit_text(service, call.caller.principal, task.run_ids[-1], words, approvals)
    return task, run.last_seq


def _read_decision(state: RunState, text: str) -> tuple[str, tuple[str, ...]]:
    """The words of a reply, and the approval ids that it answers: those in it, or else all that are open.

    Raises `A2AError` for a yes without ids where `format_named_approval` asks for them.
    """
    words, named = split_approval_ids(text)
    needed = format_named_approval(state)
    if needed and not named and parse_decision(text)[0] == "approved":
        raise a2a_errors.UnsupportedOperationError(
            f"something else of this task was approved before; to approve what it asks now, send: {needed}"
        )
    return words, named or tuple(request.approval_id for request in state.list_open_approvals(time.time()))


async def _start_reply(call: _Call, task: RunTask, request: ContextMessage | ChatRequest) -> AcceptedRun:
    """Starts the run that goes on from the question of a task. Of two replies at the same moment one is refused."""
    call.http.state.run_started = True
    run_id = derive_reply_id(task.run_ids[-1])
    return await call.stepgate.intake.accept(call.caller.principal, request, run_id=run_id)


async def _find_task_of(call: _Call, run_id: str) -> RunTask:
    return RunTask((run_id,), await call.stepgate.service.get_run(run_id, owner=call.caller.owner))


def _read_room(params: SendMessageRequest) -> str | None:
    """The room that the metadata of the message, or of the request, names."""
    for metadata in (params.message.metadata, params.metadata):
        room = MessageToDict(metadata).get("room")
        if isinstance(room, str) and room:
            return room
    return None


def _follow(events: AsyncGenerator[StreamEvent, None], watch: KeyWatch | None) -> AsyncGenerator[StreamEvent, None]:
    return events if watch is None else watch.follow(events)


async def _stream_task(call: _Call, task: RunTask, seen_seq: int) -> AsyncGenerator[StreamEvent, None]:
    """Yields the task as its last run was at `seen_seq`, then what happens, until that run ends or waits."""
    service, owner, run_id = call.stepgate.service, call.caller.owner, task.run_ids[-1]
    stream = TaskEventStream((await read_task_events(service, task, owner))[:-1])
    is_task_sent = False
    following = service.follow_events(run_id, owner=owner, waits=False, seen_seq=seen_seq)
    async with contextlib.aclosing(following) as events:
        async for event in events:
            if event.seq <= seen_seq:
                stream.skip([event])
                continue
            if not is_task_sent:
                is_task_sent = True
                if seen_seq:
                    yield stream.encode_task()
                else:  # a new run: its first event is its creation
                    stream.skip([event])
                    yield stream.encode_task()
                    continue
            for one in stream.encode(event):
                yield one
    if not is_task_sent:  # it had ended with a question
        yield stream.encode_task()


def _get_call(context: ServerCallContext) -> _Call:
    call = context.state[_CALL_KEY]
    assert isinstance(call, _Call)
    return call


def _get_history_length(params: SendMessageRequest | GetTaskRequest) -> int | None:
    """The most messages of history that the client wants; None without a limit."""
    settings = params.configuration if isinstance(params, SendMessageRequest) else params
    return settings.history_length if settings.HasField("history_length") else None


def _refuse_push_notifications() -> Never:
    raise a2a_errors.PushNotificationNotSupportedError


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Raises our errors as those of the protocol."""
    try:
        yield
    except NotFoundError as error:
        raise a2a_errors.TaskNotFoundError(error.message) from error
    except ConflictError as error:
        raise a2a_errors.UnsupportedOperationError(error.message) from error
    except _INVALID as error:
        raise a2a_errors.InvalidParamsError(error.message, data={"code": error.code}) from error
    except AgentError as error:
        raise a2a_errors.InternalError(error.message, data={"code": error.code}) from error
