"""`BuilderConversations`: every message is a run in the builder's room; the run's results are added to the
conversation.

The event log is the truth. A conversation stores the id of the run that answers it, so only one run answers at a time,
across processes and crashes. When the run ends, `conversation_completion.py` adds its results.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError, RateLimitError, StoreError
from agent.core.models import AgentRequest, JsonObject, Room
from agent.core.principal import Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import read_open_approvals
from agent.runs.decisions import require_same_question, submit_text
from agent.runs.intake_ports import RequestHandler
from agent.runs.run_origin import RunOrigin
from agent.runs.service import AcceptedRun, AgentService, make_run_id
from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
from gateway.features.pipeline_builder.engine.conversation_completion import ConversationCompletion
from gateway.features.pipeline_builder.engine.conversation_store import CONVERSATION_PREFIX
from gateway.features.pipeline_builder.engine.errors import LLMNotConfiguredError
from gateway.features.pipeline_builder.engine.messages import WINDOW_SECONDS, ConversationMessage, list_chat_history
from gateway.features.pipeline_builder.engine.records import Conversation, ConversationStatus

MESSAGE_CHARS = 20_000
HISTORY_MESSAGES = 40
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """The operator's settings for conversations."""

    room: str
    requires_model: bool
    messages_per_minute: int
    archive_days: float


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A message to a pipeline conversation."""

    conversation_id: str
    text: str
    approvals: tuple[str, ...] | None = None
    """The ids of the approvals that the client displays; None: it does not say."""


def make_message_handler(conversations: "BuilderConversations") -> RequestHandler[MessageRequest]:
    """The handler of messages to conversations."""

    async def accept(caller: Principal, request: MessageRequest, run_id: str | None) -> AcceptedRun:
        return await conversations.send(request, principal=caller, run_id=run_id)

    return RequestHandler(MessageRequest, accept)


class BuilderConversations:
    """The conversations of this gateway.

    `has_model` says whether a model is configured now. A short-lived process sets `follows=False`: it leaves the
    results of its runs to the gateway, because messages may be kept in memory there.
    """

    def __init__(
        self,
        builder: PipelineBuilder,
        service: AgentService[Any],
        terms: ConversationSettings,
        *,
        has_model: Callable[[], bool],
        clock: Callable[[], float],
        follows: bool = True,
    ) -> None:
        self.builder = builder
        self._service = service
        self._settings = terms
        self._has_model = has_model
        self._follows = follows
        self._clock = clock
        self._completion = ConversationCompletion(builder, service, clock)

    async def create(self, source_id: str | None, *, owner: str, copied_from: str | None = None) -> Conversation:
        """Starts a conversation about a source.

        With `copied_from` it takes over another conversation's pipeline, and, unless another source is given, its
        source, analysis and uncertainties. Raises `LLMNotConfiguredError`, `NotFoundError` for the source or the other
        conversation, and `BadRequestError` if neither names a source.
        """
        self._require_model()
        await self._archive_old()
        original = await self.get(copied_from, owner=owner) if copied_from is not None else None
        wanted = source_id or (original.source_id if original is not None else None)
        if wanted is None:
            gone = f": {original.id} no longer has one" if original is not None else ""
            raise BadRequestError(f"name a source, see GET /v1/sources{gone}", agent_id="builder", param="source_id")
        source = await self.builder.sources.get(wanted, owner)
        if original is None:
            return await self.builder.store.add(owner, source_id=source.id)
        is_same = source.id == original.source_id
        made = await self.builder.store.add(
            owner,
            source_id=source.id,
            pipeline=original.pipeline,
            analysis=original.analysis if is_same else None,
            tainted=original.tainted,
        )
        if is_same:
            await self.builder.inherit_uncertainties(made, original)
        await self.builder.update_summary(made)
        return await self.builder.get(made.id, owner)

    async def get(self, conversation_id: str, *, owner: str) -> Conversation:
        """A conversation including the results of its last run. Raises `NotFoundError`."""
        return await self._completion.get_completed(conversation_id, owner)

    async def list_messages(self, conversation: Conversation) -> list[ConversationMessage]:
        """The messages that have not expired."""
        return await self.builder.messages.read(conversation.id)

    async def get_waiting_state(self, conversation: Conversation) -> RunState | None:
        """The state of its run that waits for a person; None if it waits for nobody."""
        run_id = conversation.run_id
        row = await self._completion.get_run_row(conversation, run_id) if run_id is not None else None
        if row is None or row.status != "awaiting_approval":
            return None
        return await self._read_run_state(row.run_id, conversation.owner)

    async def send(self, message: MessageRequest, *, principal: Principal, run_id: str | None = None) -> AcceptedRun:
        """Adds a message; the run that answers it is stored when this returns. If the last answer ended with a question
        for approval, the message is the reply to it.

        Raises `NotFoundError`, `ConversationNotActiveError`, `LLMNotConfiguredError` for a message that starts a run,
        `ConflictError` while another message is being answered, `RateLimitError`, `BadRequestError`, `ScopeError` for a
        reply the principal may not give, and what `require_same_question` and `AgentService.start_run` raise."""
        owner, text = principal.owner, message.text
        conversation = await self.get(message.conversation_id, owner=owner)
        self.builder.require_active(conversation)
        if not text.strip() or len(text) > MESSAGE_CHARS:
            has = f"this one has {len(text):,}" if text.strip() else "this one is empty"
            raise BadRequestError(f"a message has 1 to {MESSAGE_CHARS:,} characters, and {has}", param="message")
        if conversation.run_id is None:
            self._require_model()
        await self._count_message(owner)
        async with self._lock(conversation):
            fresh = await self.get(conversation.id, owner=owner)
            self.builder.require_active(fresh)
            if fresh.run_id is not None:
                return await self._answer_question(fresh, fresh.run_id, message, principal)
            require_same_question(message.approvals, ())
            request = await self._build_request(fresh, text)
            return await self._start_run(fresh, request, principal, run_id)

    def handles_room(self, room: Room) -> bool:
        """Whether requests in this room belong to a pipeline conversation."""
        return room.id == self._settings.room

    async def find_id(self, name: str, *, owner: str) -> str | None:
        """The id of the conversation with this id or of this chat; None if there is none."""
        conversation = await self.builder.store.get(name, owner)
        return conversation.id if conversation is not None else None

    async def forget_messages(self, name: str) -> None:
        """Deletes the messages of a conversation before they expire. Raises `StoreError`."""
        await self.builder.messages.delete(name)

    async def get_id_for_chat(self, chat_id: str, *, owner: str) -> str:
        """The id of the conversation of a chat or session at another door, or with this id; creates it at first
        use."""
        conversation = await self.builder.store.get(chat_id, owner) or await self.builder.store.add(
            owner, chat_id=chat_id
        )
        return (await self.get(conversation.id, owner=owner)).id

    async def get_id_for_call(self, name: str | None, *, owner: str, may_start: bool) -> str:
        """The id of the conversation that a single tool call names; see `RoomConversations`."""
        stored = await self.builder.store.get(name, owner) if name is not None else None
        if stored is None and (not may_start or (name is not None and name.startswith(CONVERSATION_PREFIX))):
            raise NotFoundError(
                f"there is no conversation {(name or '')[:100]!r}; name one that an earlier call returned",
                agent_id="builder",
            )
        if stored is None:
            return (await self.builder.store.add(owner, chat_id=name)).id
        conversation = await self.get(stored.id, owner=owner)
        if conversation.run_id is not None:
            raise self._make_busy_error(conversation)
        return conversation.id

    async def send_request(
        self,
        conversation_id: str,
        request: AgentRequest,
        *,
        principal: Principal,
        run_id: str | None = None,
        wire_request: JsonObject | None = None,
    ) -> AcceptedRun:
        """Adds a request of another door as a message. Its history is the request's own `messages` if there are any,
        else the stored messages. Replies to approval questions are submitted before. `wire_request` is stored with the
        run.

        Raises `ConversationNotActiveError`, `ConflictError` while a message is being answered, `RateLimitError`, and
        what `AgentService.start_run` raises.
        """
        conversation = await self.builder.get(conversation_id, principal.owner)
        self.builder.require_active(conversation)
        await self._count_message(conversation.owner)
        async with self._lock(conversation):
            fresh = await self.get(conversation.id, owner=conversation.owner)
            self.builder.require_active(fresh)
            if fresh.run_id is not None:
                raise self._make_busy_error(fresh)
            own = await self._build_request(fresh, request.prompt)
            joined = {
                "room": own.room,
                "conversation_id": own.conversation_id,
                "messages": own.messages if request.messages is None else request.messages,
                "metadata": {**request.metadata, **own.metadata},
            }
            joined_request = request.model_copy(update=joined)
            return await self._start_run(fresh, joined_request, principal, run_id, wire_request)

    async def wait_for_run(self, conversation_id: str, sent: AcceptedRun, *, owner: str) -> RunState:
        """The run's state, once it has ended or waits for a person; the conversation knows of it then."""
        await self._service.wait_until_end(sent.run_id, owner=owner, waits=False, seen_seq=sent.last_seq)
        state = await self._read_run_state(sent.run_id, owner)
        await self.get(conversation_id, owner=owner)
        return state

    async def apply(
        self, conversation_id: str, collection: str, *, force: bool, owner: str, by: str | None = None
    ) -> Conversation:
        """Applies the proposed pipeline; `by` is recorded. See `PipelineBuilder.apply`.

        Raises `ConflictError` while a message is being answered. A pending approval question is withdrawn.
        """
        async with self._hold_idle_conversation(conversation_id, owner) as conversation:
            return await self.builder.apply(conversation, collection, force=force, by=by or owner)

    async def abandon(self, conversation_id: str, *, owner: str, by: str | None = None) -> Conversation:
        """Ends a conversation without applying anything; see `apply`."""
        async with self._hold_idle_conversation(conversation_id, owner) as conversation:
            return await self.builder.abandon(conversation, by=by)

    async def list_newest(
        self, owner: str, *, limit: int, before: Conversation | None, status: ConversationStatus | None, archived: bool
    ) -> list[Conversation]:
        """Conversations as `ConversationStore.list_newest`. Reading archives nothing: it shows those that have
        ended long enough ago as archived then.
        """
        seconds = self._settings.archive_days * DAY_SECONDS
        newest = await self.builder.store.list_newest(
            owner, limit=limit, before=before, status=status, archived=archived, archive_before=self._clock() - seconds
        )
        if not archived:
            return newest
        return [replace(one, archived=one.updated + seconds) if one.archived is None else one for one in newest]

    def _require_model(self) -> None:
        if self._settings.requires_model and not self._has_model():
            raise LLMNotConfiguredError(
                "LLM provider not configured: connect a model (`stepgate models use`, or AGENT_LLM_BASE_URL), or "
                "let rules lead conversations (AGENT_CONVERSATIONS_REQUIRE_LLM=false), which understand exact "
                "commands only",
                agent_id="builder",
            )

    async def _archive_old(self) -> None:
        """Archives conversations that ended more than `archive_days` ago."""
        await self.builder.store.archive(self._clock() - self._settings.archive_days * DAY_SECONDS)

    async def resume(self) -> None:
        """Completes runs that ended while no process watched, follows running ones, archives old ones. Raises
        `StoreError`."""
        for conversation in await self.builder.store.list_unfinished():
            if not await self._completion.complete_if_ended(conversation):
                self._completion.follow(conversation, conversation.run_id or "")
        await self.builder.finish_half_applied()
        await self._archive_old()

    async def aclose(self) -> None:
        """Stops following runs. The next start completes them."""
        await self._completion.aclose()

    async def _build_request(self, conversation: Conversation, text: str) -> AgentRequest:
        """Builds the run's request: the message after those that have not expired."""
        earlier = await self.builder.messages.read(conversation.id, active=True)
        return AgentRequest(
            prompt=text,
            room=self._settings.room,
            conversation_id=conversation.id,
            messages=list_chat_history(earlier)[-HISTORY_MESSAGES:],
            metadata={"builder_conversation": conversation.id},
        )

    async def _count_message(self, owner: str) -> None:
        """Counts a message of this user. Raises `RateLimitError` above the limit."""
        if await self.builder.messages.count_message(owner) > self._settings.messages_per_minute:
            left = await self.builder.messages.get_seconds_until_reset(owner)
            raise RateLimitError(
                f"more than {self._settings.messages_per_minute} messages in {WINDOW_SECONDS:.0f} s; try again in "
                f"{ceil(left)} s",
                agent_id="builder",
                retry_after_s=round(left, 3),
            )

    async def _start_run(
        self,
        conversation: Conversation,
        request: AgentRequest,
        principal: Principal,
        run_id: str | None,
        wire_request: JsonObject | None = None,
    ) -> AcceptedRun:
        """Starts the run that answers this message."""
        request = self._service.redact_request(request)
        run_id = run_id or make_run_id()
        if not await self.builder.store.claim(conversation, run_id):
            raise self._make_busy_error(conversation)
        messages = self.builder.messages
        try:
            await messages.add(conversation.id, messages.make_message("user", request.prompt))
        except StoreError:
            await self.builder.store.release_claim(conversation, run_id)
            raise
        try:
            origin = RunOrigin(wire_request=wire_request or {})
            await self._service.start_run(request, principal, run_id=run_id, origin=origin)
        except StoreError:  # it may have been stored all the same; the next reader will see
            raise
        except AgentError:
            await self.builder.store.release_claim(conversation, run_id)
            raise
        if self._follows:
            self._completion.follow(conversation, run_id)
        return AcceptedRun(run_id, conversation.owner)

    async def _answer_question(
        self, conversation: Conversation, run_id: str, message: MessageRequest, principal: Principal
    ) -> AcceptedRun:
        """Submits the reply that the conversation's run waits for. Raises `ConflictError` if it waits for none, and
        what `require_same_question` raises."""
        row = await self._completion.get_run_row(conversation, run_id)
        if row is None or row.status != "awaiting_approval":
            raise self._make_busy_error(conversation)
        open_ids = [one.request.approval_id for one in await read_open_approvals(self._service, row)]
        require_same_question(message.approvals, open_ids)
        return await submit_text(self._service, principal, run_id, message.text, open_ids)

    @contextlib.asynccontextmanager
    async def _hold_idle_conversation(self, conversation_id: str, owner: str) -> AsyncIterator[Conversation]:
        """Holds the conversation while no message is being answered. Raises `NotFoundError`, `ConflictError`."""
        conversation = await self.get(conversation_id, owner=owner)
        async with self._lock(conversation):
            conversation = await self.get(conversation_id, owner=owner)
            if conversation.run_id is not None:
                row = await self._completion.get_run_row(conversation, conversation.run_id)
                if row is None or row.status != "awaiting_approval":
                    raise self._make_busy_error(conversation)
                await self._service.cancel_run(row.run_id, owner=owner, reason="decided outside of the conversation")
                await self._completion.wait_until_completed(conversation, row.run_id)
            yield await self.builder.get(conversation_id, owner)

    @contextlib.asynccontextmanager
    async def _lock(self, conversation: Conversation) -> AsyncIterator[None]:
        """Holds the conversation's lock. Raises `ConflictError` while another request holds it."""
        token = secrets.token_hex(8)
        if not await self.builder.messages.acquire_lock(conversation.id, token):
            raise self._make_busy_error(conversation)
        try:
            yield
        finally:
            await self.builder.messages.release_lock(conversation.id, token)

    def _make_busy_error(self, conversation: Conversation) -> ConflictError:
        answering = f"a message of {conversation.id} is being answered; wait for its end, or cancel it by POST "
        beginning = f"{conversation.id} is being answered or changed at this moment: look at it, then try again"
        return ConflictError(
            f"{answering}/v1/runs/{conversation.run_id}/cancel" if conversation.run_id else beginning,
            agent_id="builder",
            run_id=conversation.run_id,
        )

    async def _read_run_state(self, run_id: str, owner: str) -> RunState:
        return fold(run_id, await self._service.read_events(run_id, owner=owner))
