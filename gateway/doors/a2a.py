"""The Agent2Agent protocol (A2A): the agent card, and runs as tasks over JSON-RPC and server-sent events.

Imports the A2A SDK, so `lazy_a2a.py` loads this module at the first request. Methods of protocol 1.0; those of 0.3 are
served by the SDK's compatibility layer.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from importlib.metadata import version
from typing import Never

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    StringList,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils import errors as a2a_errors
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request

from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError, RoomUnknownError, TooLargeError
from agent.core.models import ENDED_STATUSES, AgentRequest, JsonObject, Room
from agent.core.run_state import fold
from agent.runs.approval_replies import submit_text
from agent.runs.service import AcceptedRun
from gateway.auth.authentication import Caller
from gateway.bootstrap import Stepgate
from gateway.doors.lazy_a2a import RPC_PATH
from gateway.doors.run_intake import accept_run
from gateway.render.a2a import StreamEvent, TaskEventStream, build_task, get_context_id

PROTOCOL_VERSIONS = ("1.0", "0.3")
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
        """Returns the agent card as JSON, with the fields of protocol 0.3 too."""
        return agent_card_to_dict(build_agent_card(stepgate, base_url))


def build_agent_card(stepgate: Stepgate, base_url: str) -> AgentCard:
    """Returns the card of the agent at `base_url`. Each room is a skill; where keys are required, only the default one
    is shown, because anybody may read the card.
    """
    requires_key = stepgate.authenticator.requires_key
    default = stepgate.rooms.get(None, None)
    return AgentCard(
        name="Stepgate",
        description="Plans a task, runs the plan with tools and skills under supervision, and answers with its trace.",
        version=version("stepgate"),
        supported_interfaces=[
            AgentInterface(url=base_url + RPC_PATH, protocol_binding="JSONRPC", protocol_version=one)
            for one in PROTOCOL_VERSIONS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "application/json", "image/png", "image/jpeg"],
        default_output_modes=["text/markdown"],
        skills=[_describe_room(room) for room in ([default] if requires_key else stepgate.rooms)],
        security_schemes=(
            {"bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))}
            if requires_key
            else {}
        ),
        security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})] if requires_key else [],
    )


def _describe_room(room: Room) -> AgentSkill:
    return AgentSkill(
        id=room.id,
        name=room.name or room.id,
        description=room.description or f"The room {room.id}: send its id as `room` in the message's metadata.",
        tags=["room"],
    )


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
    """The methods of the protocol over the runs of a gateway. A task is a run; its context is a conversation."""

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Starts a run, or answers one that waits. Returns when it has ended or waits, or at once if the client asks
        for that.
        """
        call = _get_call(context)
        service, owner = call.stepgate.service, call.caller.owner
        with _translate_errors():
            run = await _accept_message(call, params)
            if not params.configuration.return_immediately:
                await service.wait_until_end(run.run_id, owner=owner, waits=False, seen_seq=run.last_seq)
            return build_task(await service.read_events(run.run_id, owner=owner), _get_history_length(params))

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        """As `on_message_send`, with everything that happens as events."""
        call = _get_call(context)
        with _translate_errors(), call.stepgate.authenticator.open_stream(call.caller):
            run = await _accept_message(call, params)
            async for event in _stream_run(call, run.run_id, run.last_seq):
                yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[StreamEvent, None]:
        """Streams a task that has not ended: first the task as it is, then what happens."""
        call = _get_call(context)
        with _translate_errors(), call.stepgate.authenticator.open_stream(call.caller):
            row = await call.stepgate.service.get_run(params.id, owner=call.caller.owner)
            if row.status in ENDED_STATUSES:
                raise a2a_errors.UnsupportedOperationError(f"the task has ended ({row.status}); read it with GetTask")
            async for event in _stream_run(call, params.id, row.last_seq):
                yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Returns a task."""
        call = _get_call(context)
        with _translate_errors():
            events = await call.stepgate.service.read_events(params.id, owner=call.caller.owner)
            return build_task(events, _get_history_length(params))

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancels a task, and waits until it has stopped, at most `CANCEL_SECONDS`."""
        call = _get_call(context)
        service, owner = call.stepgate.service, call.caller.owner
        with _translate_errors():
            try:
                await service.cancel_run(params.id, owner=owner, reason="cancelled by the A2A client")
            except ConflictError as error:
                raise a2a_errors.TaskNotCancelableError(error.message) from error
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await service.wait_until_end(params.id, owner=owner)
            return build_task(await service.read_events(params.id, owner=owner))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Refuses: the protocol wants totals and filters that the store has no index for."""
        raise a2a_errors.UnsupportedOperationError("tasks are not listed here; GET /v1/runs lists them")

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


async def _accept_message(call: _Call, params: SendMessageRequest) -> AcceptedRun:
    """Returns the run that answers the message: the one it names, which must wait for a person, or a new one."""
    message = params.message
    text, images = _read_parts(message)
    if params.configuration.HasField("task_push_notification_config"):
        _refuse_push_notifications()
    if message.task_id:
        return await _reply(call, message, text)
    request = AgentRequest(
        prompt=text,
        images=images,
        room=_read_room(params),
        # The server names a context that the client did not: its next message may continue the conversation.
        conversation_id=message.context_id or f"ctx_{secrets.token_hex(16)}",
    )
    return await accept_run(call.http, call.stepgate, call.caller, request)


async def _reply(call: _Call, message: Message, text: str) -> AcceptedRun:
    """Submits the message to the waiting run that it names. Raises `A2AError` if that run does not wait."""
    service, owner, run_id = call.stepgate.service, call.caller.owner, message.task_id
    row = await service.get_run(run_id, owner=owner)
    if message.context_id and message.context_id != get_context_id(
        fold(run_id, await service.read_events(run_id, owner=owner))
    ):
        raise a2a_errors.InvalidParamsError("the task belongs to another context; leave contextId out")
    if row.status != "awaiting_approval":
        raise a2a_errors.UnsupportedOperationError(
            f"the task takes no message ({row.status}); send one without taskId, with its contextId, to go on"
        )
    return await submit_text(service, call.caller.principal, run_id, text)


def _read_parts(message: Message) -> tuple[str, tuple[str, ...]]:
    """Returns the text and the images of a message. Data is added to the text as JSON.

    Raises `ContentTypeNotSupportedError` for any other part.
    """
    texts: list[str] = []
    images: list[str] = []
    for part in message.parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            texts.append(part.text)
        elif kind == "data":
            texts.append(json.dumps(MessageToDict(part.data), ensure_ascii=False))
        elif kind in ("url", "raw") and part.media_type.startswith("image/"):
            images.append(_get_image_url(part))
        else:
            name = part.media_type or kind or "empty"
            raise a2a_errors.ContentTypeNotSupportedError(f"a part of type {name[:80]!r}: send text, data or images")
    return "\n".join(texts), tuple(images)


def _get_image_url(part: Part) -> str:
    if part.WhichOneof("content") == "url":
        return str(part.url)
    encoded = MessageToDict(part)["raw"]  # base64, as JSON holds bytes
    return f"data:{part.media_type};base64,{encoded}"


def _read_room(params: SendMessageRequest) -> str | None:
    """Returns the room that the metadata of the message, or of the request, names."""
    for metadata in (params.message.metadata, params.metadata):
        room = MessageToDict(metadata).get("room")
        if isinstance(room, str) and room:
            return room
    return None


async def _stream_run(call: _Call, run_id: str, seen_seq: int) -> AsyncIterator[StreamEvent]:
    """Yields the task as it was at `seen_seq`, then what happens, until the run ends or waits for a person."""
    service, stream = call.stepgate.service, TaskEventStream()
    is_task_sent = False
    following = service.follow_events(run_id, owner=call.caller.owner, waits=False, seen_seq=seen_seq)
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


def _get_call(context: ServerCallContext) -> _Call:
    call = context.state[_CALL_KEY]
    assert isinstance(call, _Call)
    return call


def _get_history_length(params: SendMessageRequest | GetTaskRequest) -> int | None:
    """Returns the most messages of history that the client wants; None without a limit."""
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
