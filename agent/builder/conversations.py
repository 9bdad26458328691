"""`BuilderConversations`: a message is a run in the builder's room; what the run comes to is the conversation's.

The log is the truth. A conversation holds the run that answers it, so that nobody answers twice, also over processes
and crashes; when the run ends, it is settled (`settling.py`)."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from agent.builder.builder import PipelineBuilder
from agent.builder.errors import LLMNotConfiguredError
from agent.builder.messages import WINDOW_SECONDS, ConversationMessage, history
from agent.builder.records import Conversation
from agent.builder.settling import Settling
from agent.core.approval import decision_of, question
from agent.core.errors import AgentError, BadRequestError, ConflictError, RateLimitError, ScopeError, StoreError
from agent.core.fold import RunState, fold
from agent.core.models import AgentRequest, Room
from agent.core.principal import Principal
from agent.core.service import AgentService, Decision, new_run_id

MESSAGE_CHARS = 20_000
HISTORY_MESSAGES = 40
DAY_SECONDS = 86_400.0
_DECISIONS: dict[str, Decision] = {"approved": "approve", "rejected": "reject", "answered": "answer"}


@dataclass(frozen=True, slots=True)
class Terms:
    """What the operator has set for conversations."""

    room: str
    requires_model: bool
    messages_per_minute: int
    archive_days: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is being answered: by which run, and the seq that was heard before."""

    run_id: str
    heard: int = 0


class BuilderConversations:
    """The conversations of this gateway. `has_model` says whether a model can be asked at all. A process that does not
    live on (`follows`) leaves what its runs came to for those that do: messages may be kept in memory."""

    def __init__(
        self,
        builder: PipelineBuilder,
        service: AgentService[Any],
        terms: Terms,
        *,
        has_model: bool,
        clock: Callable[[], float],
        follows: bool = True,
    ) -> None:
        self.builder = builder
        self._service = service
        self._terms = terms
        self._has_model = has_model
        self._follows = follows
        self._clock = clock
        self._settling = Settling(builder, service, clock)

    async def create(self, source_id: str | None, *, owner: str, begun_from: str | None = None) -> Conversation:
        """Begin a conversation about a source; with what another one came to (`begun_from`): its pipeline, and, unless
        another source is given, its source and what is known and doubtful of that.

        `LLMNotConfiguredError`, `NotFoundError` for the source or the other conversation, `BadRequestError` where
        neither names a source."""
        if self._terms.requires_model and not self._has_model:
            raise LLMNotConfiguredError(
                "LLM provider not configured: set AGENT_LLM_BASE_URL or AGENT_MODEL_FAST, or let rules carry "
                "conversations (AGENT_CONVERSATIONS_REQUIRE_LLM=false)",
                agent_id="builder",
            )
        known = await self.get(begun_from, owner=owner) if begun_from is not None else None
        wanted = source_id or (known.source_id if known is not None else None)
        if wanted is None:
            gone = f": {known.id} has none any more" if known is not None else ""
            raise BadRequestError(f"name a source, see GET /v1/sources{gone}", agent_id="builder", param="source_id")
        source = await self.builder.sources.get(wanted, owner)
        if known is None:
            return await self.builder.store.add(owner, source_id=source.id)
        is_same = source.id == known.source_id
        made = await self.builder.store.add(
            owner,
            source_id=source.id,
            pipeline=known.pipeline,
            analysis=known.analysis if is_same else None,
            tainted=known.tainted,
        )
        if is_same:
            await self.builder.inherit(made, known)
        await self.builder.summarise(made)
        return await self.builder.get(made.id, owner)

    async def get(self, conversation_id: str, *, owner: str) -> Conversation:
        """A conversation, with what its last run came to. `NotFoundError`."""
        return await self._settling.settled(conversation_id, owner)

    async def messages(self, conversation: Conversation) -> list[ConversationMessage]:
        """Its messages, as far as they have not expired."""
        return await self.builder.messages.read(conversation.id)

    async def question(self, conversation: Conversation) -> str:
        """What its run asks of a person; empty when it waits for nobody."""
        run_id = conversation.run_id
        row = await self._settling.row(conversation, run_id) if run_id is not None else None
        if row is None or row.status != "awaiting_approval":
            return ""
        return question(await self._state(row.run_id, conversation.owner))

    async def send(
        self,
        conversation_id: str,
        text: str,
        *,
        principal: Principal,
        may_approve: bool = True,
    ) -> Sent:
        """Take a message; the run that answers it is on disk when this returns. Where the last answer ended with a
        question for approval, the message is the reply to it: `ScopeError` of those who may not give it.

        Raises `NotFoundError`, `ConversationNotActiveError`, `ConflictError` while another one is being answered,
        `RateLimitError`, `BadRequestError`, and what `AgentService.start` raises."""
        owner = principal.owner
        conversation = await self.get(conversation_id, owner=owner)
        self.builder.must_be_active(conversation)
        if not text.strip() or len(text) > MESSAGE_CHARS:
            has = f"this one has {len(text):,}" if text.strip() else "this one says nothing"
            raise BadRequestError(f"a message has 1 to {MESSAGE_CHARS:,} characters, and {has}", param="message")
        await self._count(owner)
        async with self._alone(conversation):
            fresh = await self.get(conversation_id, owner=owner)
            self.builder.must_be_active(fresh)
            if fresh.run_id is not None:
                return await self._reply(fresh, fresh.run_id, text, principal, may_approve=may_approve)
            request = await self._request(fresh, text)
            return await self._begin(fresh, request, self._service.of(principal))

    def takes(self, room: Room) -> bool:
        """Whether what is asked in this room belongs to a conversation of ours."""
        return room.id == self._terms.room

    async def of_chat(self, chat_id: str, *, owner: str) -> Conversation:
        """The conversation of a chat or session of another door, or of this id; made where there is none yet."""
        found = await self.builder.store.get(chat_id, owner) or await self.builder.store.add(owner, chat_id=chat_id)
        return await self.get(found.id, owner=owner)

    async def join(self, conversation: Conversation, request: AgentRequest, *, principal: Principal) -> Sent:
        """Answer a request of another door as a message of this conversation: by the caller's own `messages`, where
        they send some, else by what was said before. A question that waits for approval is answered elsewhere.

        Raises `ConversationNotActiveError`, `ConflictError` while a message is being answered, `RateLimitError`, and
        what `AgentService.start` raises."""
        self.builder.must_be_active(conversation)
        await self._count(conversation.owner)
        async with self._alone(conversation):
            fresh = await self.get(conversation.id, owner=conversation.owner)
            self.builder.must_be_active(fresh)
            if fresh.run_id is not None:
                raise self._busy(fresh)
            own = await self._request(fresh, request.prompt)
            joined = {
                "room": own.room,
                "conversation_id": own.conversation_id,
                "messages": own.messages if request.messages is None else request.messages,
                "metadata": {**request.metadata, **own.metadata},
            }
            return await self._begin(fresh, request.model_copy(update=joined), self._service.of(principal))

    async def finished(self, conversation_id: str, sent: Sent, *, owner: str) -> RunState:
        """The run's state, once it has ended or waits for a person; the conversation knows of it then."""
        await self._service.until_over(sent.run_id, owner=owner, waits=False, heard=sent.heard)
        state = await self._state(sent.run_id, owner)
        await self.get(conversation_id, owner=owner)
        return state

    async def apply(
        self, conversation_id: str, collection: str, *, force: bool, owner: str, by: str | None = None
    ) -> Conversation:
        """Apply the proposed pipeline, `by` whom is recorded; see `PipelineBuilder.apply`. `ConflictError` while a
        message is being answered; a question that waits for an approval is withdrawn."""
        async with self._between_messages(conversation_id, owner) as conversation:
            return await self.builder.apply(conversation, collection, force=force, by=by or owner)

    async def abandon(self, conversation_id: str, *, owner: str, by: str | None = None) -> Conversation:
        """End a conversation without applying anything; see `apply`."""
        async with self._between_messages(conversation_id, owner) as conversation:
            return await self.builder.abandon(conversation, by=by)

    async def archive(self) -> list[str]:
        """Archive what was applied or abandoned long ago; the ids."""
        return await self.builder.store.archive(self._clock() - self._terms.archive_days * DAY_SECONDS)

    async def resume(self) -> None:
        """Settle what ended while nobody looked, follow what goes on, archive what is old. Raises `StoreError`."""
        for conversation in await self.builder.store.under_way():
            if not await self._settling.settle(conversation):
                self._settling.follow(conversation, conversation.run_id or "")
        await self.builder.resume()
        await self.archive()

    async def aclose(self) -> None:
        """Let go of the runs that are being followed; they are settled at the next start."""
        await self._settling.aclose()

    async def _request(self, conversation: Conversation, text: str) -> AgentRequest:
        """What the run is asked: the message, after those that have not expired."""
        earlier = await self.builder.messages.read(conversation.id, active=True)
        return AgentRequest(
            prompt=text,
            room=self._terms.room,
            conversation_id=conversation.id,
            messages=history(earlier)[-HISTORY_MESSAGES:],
            metadata={"builder_conversation": conversation.id},
        )

    async def _count(self, owner: str) -> None:
        """Count a message of this user. `RateLimitError` for one too many."""
        if await self.builder.messages.sent(owner) > self._terms.messages_per_minute:
            left = await self.builder.messages.window_left(owner)
            raise RateLimitError(
                f"more than {self._terms.messages_per_minute} messages in {WINDOW_SECONDS:.0f} s; try again in "
                f"{ceil(left)} s",
                agent_id="builder",
                retry_after_s=round(left, 3),
            )

    async def _begin(self, conversation: Conversation, request: AgentRequest, service: AgentService[Any]) -> Sent:
        """A run of its own for this message."""
        request = service.screened(request)
        run_id = new_run_id()
        if not await self.builder.store.claim(conversation, run_id):
            raise self._busy(conversation)
        messages = self.builder.messages
        try:
            await messages.add(conversation.id, messages.message("user", request.prompt))
        except StoreError:
            await self.builder.store.unclaim(conversation, run_id)
            raise
        try:
            await service.start(request, owner=conversation.owner, run_id=run_id)
        except StoreError:  # it may have been stored all the same; whoever looks next will see
            raise
        except AgentError:
            await self.builder.store.unclaim(conversation, run_id)
            raise
        if self._follows:
            self._settling.follow(conversation, run_id)
        return Sent(run_id)

    async def _reply(
        self, conversation: Conversation, run_id: str, text: str, principal: Principal, *, may_approve: bool
    ) -> Sent:
        """The word the conversation's run waits for. `ConflictError` when it waits for none."""
        row = await self._settling.row(conversation, run_id)
        if row is None or row.status != "awaiting_approval":
            raise self._busy(conversation)
        if not may_approve:
            raise ScopeError(f"the API key {principal.key} lacks the scope 'approve'", scope="approve")
        decision, reason = decision_of(text)
        heard = await self._service.decide(
            run_id, _DECISIONS[decision], owner=conversation.owner, by=principal.name, reason=reason
        )
        return Sent(run_id, heard)

    @contextlib.asynccontextmanager
    async def _between_messages(self, conversation_id: str, owner: str) -> AsyncIterator[Conversation]:
        """The conversation while no message of it is being answered. `NotFoundError`, `ConflictError`."""
        conversation = await self.get(conversation_id, owner=owner)
        async with self._alone(conversation):
            conversation = await self.get(conversation_id, owner=owner)
            if conversation.run_id is not None:
                row = await self._settling.row(conversation, conversation.run_id)
                if row is None or row.status != "awaiting_approval":
                    raise self._busy(conversation)
                await self._service.cancel(row.run_id, owner=owner, reason="decided outside of the conversation")
                await self._settling.until_settled(conversation, row.run_id)
            yield await self.builder.get(conversation_id, owner)

    @contextlib.asynccontextmanager
    async def _alone(self, conversation: Conversation) -> AsyncIterator[None]:
        """The lock of a conversation. `ConflictError` while somebody else has it."""
        token = secrets.token_hex(8)
        if not await self.builder.messages.take(conversation.id, token):
            raise self._busy(conversation)
        try:
            yield
        finally:
            await self.builder.messages.give_back(conversation.id, token)

    def _busy(self, conversation: Conversation) -> ConflictError:
        answering = f"a message of {conversation.id} is being answered; wait for its end, or cancel it by POST "
        beginning = f"{conversation.id} is being answered or changed at this moment: look at it, then try again"
        return ConflictError(
            f"{answering}/v1/runs/{conversation.run_id}/cancel" if conversation.run_id else beginning,
            agent_id="builder",
            run_id=conversation.run_id,
        )

    async def _state(self, run_id: str, owner: str) -> RunState:
        return fold(run_id, await self._service.read(run_id, owner=owner))
