"""`RunIntake.accept`: the only way from a door's request to the run that answers it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent.core.errors import AgentError, BadRequestError, ConfigError, ConflictError, StoreError
from agent.core.models import AgentRequest, JsonObject, Room, Webhook
from agent.core.own_ids import OwnIds
from agent.core.principal import Principal
from agent.policy.approval import ConversationTrust
from agent.runs.client_results import find_client_results, start_continuation
from agent.runs.conversation_tree import ConversationTree
from agent.runs.decisions import refuse_stray_decision, submit_replies, submit_reply, submit_text
from agent.runs.forks import ForkRequest, start_fork
from agent.runs.intake_ports import RequestHandler, RoomConversations, WebhookRegistry
from agent.runs.intake_requests import (
    ApprovalReplies,
    ApprovalText,
    ChatRequest,
    ContextMessage,
    HiddenRequest,
    QuestionAwareRequest,
)
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AcceptedRun, AgentService, make_run_id


class RunIntake:
    """Accepts the requests of all doors.

    A request becomes a new run, the reply to a run that waits for a person, or a message of a feature's conversation.
    Each request is admitted exactly once, before anything is stored.
    """

    def __init__(
        self,
        service: AgentService[Any],
        own_ids: OwnIds,
        tree: ConversationTree,
    ) -> None:
        """`own_ids` recognises the conversations whose ids this gateway made; `tree` has their branches."""
        self.own_ids = own_ids
        self.tree = tree
        self.service = service
        self.conversations: RoomConversations | None = None
        """Those of a feature, if one has them."""
        self._webhooks: WebhookRegistry | None = None
        own: tuple[RequestHandler[Any], ...] = (
            RequestHandler(AgentRequest, self._accept_plain),
            RequestHandler(ChatRequest, self._accept_chat),
            RequestHandler(QuestionAwareRequest, self._accept_question_aware),
            RequestHandler(ContextMessage, self._accept_context_message),
            RequestHandler(HiddenRequest, self._accept_hidden),
            RequestHandler(ApprovalReplies, self._accept_replies),
            RequestHandler(ApprovalText, self._accept_text),
            RequestHandler(ForkRequest, self._start_fork),
        )
        self._handlers: dict[type[Any], RequestHandler[Any]] = {handler.kind: handler for handler in own}

    def add_kinds(
        self,
        handlers: Sequence[RequestHandler[Any]],
        conversations: RoomConversations | None = None,
        webhooks: WebhookRegistry | None = None,
    ) -> None:
        """Adds what features accept. Raises `ConfigError` if two handlers accept the same kind."""
        self.conversations = conversations
        self._webhooks = webhooks
        for handler in handlers:
            if handler.kind in self._handlers:
                raise ConfigError(f"two features accept requests of the kind {handler.kind.__name__}")
            self._handlers[handler.kind] = handler

    async def accept(
        self, caller: Principal, request: object, *, run_id: str | None = None, webhook: Webhook | None = None
    ) -> AcceptedRun:
        """The run that answers the request; it is stored.

        `request` is of a kind that a handler accepts: `AgentRequest`, those of `intake_requests`, or a feature's.
        `run_id` is the id of a new run, if one was recorded before. `webhook` is notified of the run's end. Raises what
        the handlers and `AgentService.start_run` raise, `ScopeError` for a reply that the caller may not give, and
        `BadRequestError` if no feature accepts the request or sends webhooks.
        """
        handler = self._handlers.get(type(request))
        if handler is None:
            raise BadRequestError(f"no enabled feature accepts a request of the kind {type(request).__name__}")
        if webhook is None and handler.find_webhook is not None:
            webhook = await handler.find_webhook(caller, request)
        if webhook is None:
            return await handler.accept(caller, request, run_id)
        webhooks = self._require_webhooks()

        async def start(new_id: str) -> AcceptedRun:
            return await handler.accept(caller, request, new_id)

        return await _start_with_webhook(webhooks, caller.owner, webhook, run_id or make_run_id(), start)

    async def check_webhook(self, webhook: Webhook, owner: str) -> None:
        """Raises `BadRequestError` for a webhook that cannot be used."""
        await self._require_webhooks().check(webhook, owner)

    def keeps_conversations(self, room: Room) -> bool:
        """Whether the conversations of this room are a feature's own."""
        return self._find_conversations(room) is not None

    def _require_webhooks(self) -> WebhookRegistry:
        if self._webhooks is None:
            raise BadRequestError("this gateway sends no webhooks", param="webhook")
        return self._webhooks

    async def _accept_plain(self, caller: Principal, request: AgentRequest, run_id: str | None) -> AcceptedRun:
        return await self._accept_request(caller, request, self.service.admit(request, caller.owner), run_id)

    async def _accept_question_aware(
        self, caller: Principal, message: QuestionAwareRequest, run_id: str | None
    ) -> AcceptedRun:
        room = self.service.admit(message.request, caller.owner)
        return await self._accept_request(caller, message.request, room, run_id, question=message.approvals)

    async def _accept_context_message(
        self, caller: Principal, request: ContextMessage, run_id: str | None
    ) -> AcceptedRun:
        room = self.service.admit(request.request, caller.owner)
        return await self._accept_request(caller, request.request, room, run_id, trust="never")

    async def _accept_hidden(self, caller: Principal, request: HiddenRequest, run_id: str | None) -> AcceptedRun:
        room = self.service.admit(request.request, caller.owner)
        return await self._start(caller, request.request, room, run_id, RunOrigin(hidden=True, one_off=True))

    async def _accept_replies(self, caller: Principal, request: ApprovalReplies, _: str | None) -> AcceptedRun:
        return await submit_replies(self.service, caller, request.run_id, request.replies)

    async def _accept_text(self, caller: Principal, request: ApprovalText, _: str | None) -> AcceptedRun:
        return await submit_text(self.service, caller, request.run_id, request.text, request.approvals)

    async def _start_fork(self, caller: Principal, fork: ForkRequest, run_id: str | None) -> AcceptedRun:
        row = await self.service.get_run(fork.run_id, owner=caller.owner)
        if self._find_conversations(self.service.rooms.get(row.room, caller.owner)) is not None:
            raise ConflictError(f"run {fork.run_id!r} belongs to a conversation that builds a pipeline; continue that")
        return await start_fork(self.service, caller, fork, run_id=run_id)

    async def _accept_chat(self, caller: Principal, chat: ChatRequest, run_id: str | None) -> AcceptedRun:
        request = chat.request
        room = self.service.admit(request, caller.owner)
        named = request.change(conversation_id=chat.chat_id or request.conversation_id)
        if chat.chat_id is not None and self._find_conversations(room) is not None:
            trust: ConversationTrust | None = "never" if chat.names_what_it_answers else None
            return await self._accept_request(caller, named, room, run_id, wire_request=chat.wire_request, trust=trust)
        # Without the conversation's id: the client's own messages say whether this one is a reply. A message that a
        # user sends again must not answer a question that came after it.
        reply = None if request.is_first_message else await submit_reply(self.service, caller, request)
        if reply is None and (chat.follows is not None or not named.is_first_message):
            await refuse_stray_decision(self.service, caller, named, chat.follows)
        origin = RunOrigin(wire_request=chat.wire_request, tainted=chat.tainted, prompt_addresses=chat.prompt_addresses)
        return reply or await self._start(caller, named, room, run_id, origin)

    async def _accept_request(
        self,
        caller: Principal,
        request: AgentRequest,
        room: Room,
        run_id: str | None,
        *,
        wire_request: JsonObject | None = None,
        trust: ConversationTrust | None = None,
        question: tuple[str, ...] | None = None,
    ) -> AcceptedRun:
        """`trust` is when the conversation's id counts in a decision; None: as who made it says. `question` are the
        approvals that the client displays; None: it does not say.
        """
        named = request.conversation_id
        conversations = self._find_conversations(room)
        if named is None or conversations is None:
            is_own = named is not None and self.own_ids.is_own_conversation(named, caller.owner)
            trust = trust or ("own" if is_own else "by_key")
            placed = await self.tree.place(caller.owner, request)
            begins_branch = request.parent is not None
            reply = (
                None if begins_branch else await submit_reply(self.service, caller, placed, trust, question, self.tree)
            )
            if reply is None:
                await refuse_stray_decision(self.service, caller, placed)
            origin = RunOrigin(one_off=request.messages is not None, own_conversation=is_own)
            return reply or await self._start(caller, placed, room, run_id, origin)
        if request.parent is not None:
            raise BadRequestError("parent: a conversation that builds a pipeline has no branches", param="parent")
        conversation_id = await conversations.get_id_for_chat(named, owner=caller.owner)
        request = request.model_copy(update={"conversation_id": conversation_id})
        trust = trust or ("own" if conversation_id == named else "by_key")  # the builder makes all of its ids
        reply = await submit_reply(self.service, caller, request, trust, question)
        return reply or await conversations.send_request(
            conversation_id, request, principal=caller, run_id=run_id, wire_request=wire_request
        )

    def _find_conversations(self, room: Room) -> RoomConversations | None:
        """The conversations that requests in this room belong to, if any."""
        conversations = self.conversations
        return conversations if conversations is not None and conversations.handles_room(room) else None

    async def _start(
        self, caller: Principal, request: AgentRequest, room: Room, run_id: str | None, origin: RunOrigin
    ) -> AcceptedRun:
        """A new run; the one that goes on with the results of a client's own tools, if the request brings some."""
        has_results = not origin.hidden and any(one.role == "tool" for one in request.messages or ())
        if has_results and (given := await find_client_results(self.service, caller.owner, request, room)) is not None:
            return await start_continuation(self.service, caller, request, room, origin, given)
        run_id = await self.service.start_run(request, caller, room=room, run_id=run_id, origin=origin)
        return AcceptedRun(run_id, caller.owner)


async def _start_with_webhook(
    webhooks: WebhookRegistry,
    owner: str,
    webhook: Webhook,
    run_id: str,
    start: Callable[[str], Awaitable[AcceptedRun]],
) -> AcceptedRun:
    """Stores the delivery before the run, so that a crash in between or at the run's end does not lose it."""
    is_new = await webhooks.register(owner, run_id, webhook)
    try:
        accepted = await start(run_id)
    except StoreError:  # the run may have been stored nevertheless
        raise
    except AgentError:
        if is_new:
            await webhooks.discard(run_id)
        raise
    if accepted.run_id != run_id:  # the request was the reply to a run that waited
        await webhooks.register(owner, accepted.run_id, webhook)
        await webhooks.discard(run_id)
    return accepted
