"""`RunIntake.accept`: the only way from a door's request to the run that answers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.core.errors import AgentError, BadRequestError, ConflictError, StoreError
from agent.core.models import AgentRequest, JsonObject, Room, Webhook
from agent.core.own_ids import OwnIds
from agent.core.principal import Principal
from agent.runs.approval_replies import ConversationTrust, submit_replies, submit_reply, submit_text
from agent.runs.client_results import find_client_results, start_continuation
from agent.runs.conversation_tree import ConversationTree
from agent.runs.forks import ForkRequest, start_fork
from agent.runs.service import AcceptedRun, AgentService, make_run_id
from gateway.features.protocols.engine.tasks import TaskService


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request of a client that sends the whole conversation each time, such as a chat completion.

    `chat_id` names the conversation if the client sends it.
    """

    request: AgentRequest
    chat_id: str | None = None
    wire_request: JsonObject = field(default_factory=dict)
    """What the door stores with the run, to return it in its own protocol."""
    tainted: bool = False
    """Whether the conversation was loaded from this store and relies on untrusted content."""
    names_what_it_answers: bool = False
    """Whether the client's protocol names the run that a message answers (A2A): then its conversation's id does not."""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A request of a client whose protocol names the run that a message answers, and this one names none (A2A)."""

    request: AgentRequest


@dataclass(frozen=True, slots=True)
class ApprovalReplies:
    """A caller's decisions on what a run waits for, by approval id: approve or reject, and the reason."""

    run_id: str
    replies: Mapping[str, tuple[bool, str]]


@dataclass(frozen=True, slots=True)
class ApprovalText:
    """A caller's words to a run that waits: `approve`, `reject`, or what should be different."""

    run_id: str
    text: str


@dataclass(frozen=True, slots=True)
class HiddenRequest:
    """A request whose run appears in no list and belongs to no conversation.

    A client's background prompt (for a title, tags), or a single tool call over MCP.
    """

    request: AgentRequest


@dataclass(frozen=True, slots=True)
class TaskRunRequest:
    """A request to run a stored task. `origin` is added to the metadata of the run."""

    task_id: str
    origin: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """A message to a pipeline conversation."""

    conversation_id: str
    text: str


RunRequest = (
    AgentRequest
    | ChatRequest
    | ContextMessage
    | HiddenRequest
    | TaskRunRequest
    | ConversationMessage
    | ApprovalReplies
    | ApprovalText
    | ForkRequest
)


class PipelineConversations(Protocol):
    """The conversations whose messages are answered by runs in the room of pipelines."""

    def handles_room(self, room: Room) -> bool:
        """Returns whether requests in this room belong to such a conversation."""
        ...

    async def get_id_for_chat(self, chat_id: str, *, owner: str) -> str:
        """Returns the id of the conversation of a chat or session; creates it at first use."""
        ...

    async def send(
        self, conversation_id: str, text: str, *, principal: Principal, run_id: str | None = None
    ) -> AcceptedRun:
        """Adds a message, or submits the reply that the conversation's run waits for."""
        ...

    async def send_request(
        self,
        conversation_id: str,
        request: AgentRequest,
        *,
        principal: Principal,
        run_id: str | None = None,
        wire_request: JsonObject | None = None,
    ) -> AcceptedRun:
        """Adds a request of another door as a message."""
        ...


class WebhookRegistry(Protocol):
    """Where webhooks are stored before their runs. The feature `schedules` implements it."""

    async def register(self, owner: str, run_id: str, webhook: Webhook) -> bool:
        """Stores a delivery for a run that is about to start. Returns False if it was stored before."""
        ...

    async def discard(self, run_id: str) -> None:
        """Removes the delivery of a run that was refused."""
        ...


class RunIntake:
    """Accepts the requests of all doors.

    A request becomes a new run, the reply to a run that waits for a person, or a message of a pipeline conversation.
    Each request is admitted exactly once, before anything is stored.
    """

    def __init__(
        self,
        service: AgentService[Any],
        tasks: TaskService,
        conversations: PipelineConversations,
        webhooks: WebhookRegistry,
        own_ids: OwnIds,
        tree: ConversationTree,
    ) -> None:
        """`own_ids` recognises the conversations whose ids this gateway made; `tree` has their branches."""
        self.own_ids = own_ids
        self.tree = tree
        self.service = service
        self._tasks = tasks
        self._conversations = conversations
        self._webhooks = webhooks

    async def accept(
        self, caller: Principal, request: RunRequest, *, run_id: str | None = None, webhook: Webhook | None = None
    ) -> AcceptedRun:
        """Returns the run that answers the request; it is stored.

        `run_id` is the id of a new run, if one was recorded before. `webhook` is told about the run's end; that of a
        task is used without one. Raises what `AgentService.start_run`, `TaskService.start_run` and the conversations
        raise, and `ScopeError` for a reply that the caller may not give.
        """
        if webhook is None and isinstance(request, TaskRunRequest):
            webhook = await self._tasks.get_webhook(request.task_id, owner=caller.owner)
        if webhook is None:
            return await self._accept(caller, request, run_id)
        return await self._accept_with_webhook(caller, request, run_id or make_run_id(), webhook)

    async def _accept_with_webhook(
        self, caller: Principal, request: RunRequest, run_id: str, webhook: Webhook
    ) -> AcceptedRun:
        """Stores the delivery before the run, so that a crash in between or at the run's end does not lose it."""
        is_new = await self._webhooks.register(caller.owner, run_id, webhook)
        try:
            accepted = await self._accept(caller, request, run_id)
        except StoreError:  # the run may have been stored nevertheless
            raise
        except AgentError:
            if is_new:
                await self._webhooks.discard(run_id)
            raise
        if accepted.run_id != run_id:  # the request was the reply to a run that waited
            await self._webhooks.register(caller.owner, accepted.run_id, webhook)
            await self._webhooks.discard(run_id)
        return accepted

    async def _accept(self, caller: Principal, request: RunRequest, run_id: str | None) -> AcceptedRun:
        """Starts or continues the run that answers the request."""
        match request:
            case TaskRunRequest(task_id, origin):
                run_id = await self._tasks.start_run(task_id, caller, run_id=run_id, origin=origin)
                return AcceptedRun(run_id, caller.owner)
            case ConversationMessage(conversation_id, text):
                return await self._conversations.send(conversation_id, text, principal=caller, run_id=run_id)
            case HiddenRequest(hidden):
                return await self._start(caller, hidden, self.service.admit(hidden, caller.owner), run_id, hidden=True)
            case ApprovalReplies(waiting_run_id, replies):
                return await submit_replies(self.service, caller, waiting_run_id, replies)
            case ApprovalText(waiting_run_id, text):
                return await submit_text(self.service, caller, waiting_run_id, text)
            case ForkRequest():
                return await self._start_fork(caller, request, run_id)
            case ChatRequest():
                return await self._accept_chat(caller, request, run_id)
            case ContextMessage(message):
                room = self.service.admit(message, caller.owner)
                return await self._accept_request(caller, message, room, run_id, trust="never")
            case AgentRequest():
                return await self._accept_request(caller, request, self.service.admit(request, caller.owner), run_id)

    async def _start_fork(self, caller: Principal, fork: ForkRequest, run_id: str | None) -> AcceptedRun:
        row = await self.service.get_run(fork.run_id, owner=caller.owner)
        if self._conversations.handles_room(self.service.rooms.get(row.room, caller.owner)):
            raise ConflictError(f"run {fork.run_id!r} belongs to a conversation that builds a pipeline; continue that")
        return await start_fork(self.service, caller, fork, run_id=run_id)

    async def _accept_chat(self, caller: Principal, chat: ChatRequest, run_id: str | None) -> AcceptedRun:
        request = chat.request
        room = self.service.admit(request, caller.owner)
        named = request.model_copy(update={"conversation_id": chat.chat_id or request.conversation_id})
        if chat.chat_id is not None and self._conversations.handles_room(room):
            trust: ConversationTrust | None = "never" if chat.names_what_it_answers else None
            return await self._accept_request(caller, named, room, run_id, wire_request=chat.wire_request, trust=trust)
        # Without the conversation's id: the client's own messages say whether this one is a reply. A message that a
        # user sends again must not answer a question that came after it.
        return await submit_reply(self.service, caller, request) or await self._start(
            caller, named, room, run_id, origin=chat
        )

    async def _accept_request(
        self,
        caller: Principal,
        request: AgentRequest,
        room: Room,
        run_id: str | None,
        *,
        wire_request: JsonObject | None = None,
        trust: ConversationTrust | None = None,
    ) -> AcceptedRun:
        """`trust` is when the conversation's id counts in a decision; None: as who made it says."""
        named = request.conversation_id
        if named is None or not self._conversations.handles_room(room):
            is_own = named is not None and self.own_ids.is_own_conversation(named, caller.owner)
            trust = trust or ("own" if is_own else "by_key")
            placed = await self.tree.place(caller.owner, request)
            # A message of another branch answers nothing that waits in this one.
            reply = await submit_reply(self.service, caller, request, trust) if request.parent is None else None
            return reply or await self._start(caller, placed, room, run_id, one_off=request.messages is not None)
        if request.parent is not None:
            raise BadRequestError("parent: a conversation that builds a pipeline has no branches", param="parent")
        conversation_id = await self._conversations.get_id_for_chat(named, owner=caller.owner)
        request = request.model_copy(update={"conversation_id": conversation_id})
        trust = trust or ("own" if conversation_id == named else "by_key")  # the builder makes all of its ids
        return await submit_reply(self.service, caller, request, trust) or await self._conversations.send_request(
            conversation_id, request, principal=caller, run_id=run_id, wire_request=wire_request
        )

    async def _start(
        self,
        caller: Principal,
        request: AgentRequest,
        room: Room,
        run_id: str | None,
        *,
        hidden: bool = False,
        one_off: bool = False,
        origin: ChatRequest | None = None,
    ) -> AcceptedRun:
        wire_request = origin.wire_request if origin else None
        tainted = origin is not None and origin.tainted
        if not hidden and (given := await find_client_results(self.service, caller.owner, request, room)) is not None:
            return await start_continuation(
                self.service, caller, request, room, given, wire_request=wire_request, tainted=tainted
            )
        run_id = await self.service.start_run(
            request,
            caller,
            room=room,
            hidden=hidden,
            one_off=one_off,
            run_id=run_id,
            wire_request=wire_request,
            tainted=tainted,
        )
        return AcceptedRun(run_id, caller.owner)
