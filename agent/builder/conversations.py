"""`BuilderConversations`: a message is a run in the builder's room; what the run comes to is the conversation's.

The log is the truth. A conversation holds the run that answers it, so that nobody answers twice, also over processes
and crashes; when the run ends, whoever looks first puts its messages, tokens and summary into the conversation."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from agent.builder.builder import PipelineBuilder
from agent.builder.errors import LLMNotConfiguredError
from agent.builder.from_log import messages_of
from agent.builder.messages import WINDOW_SECONDS, ConversationMessage, history
from agent.builder.records import Conversation
from agent.builder.summary import kept_words
from agent.core.approval import decision_of, question
from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError, RateLimitError, StoreError
from agent.core.fold import RunState, fold
from agent.core.journal import RunRow
from agent.core.models import AgentRequest
from agent.core.service import ENDED, AgentService, Decision, new_run_id

log = logging.getLogger(__name__)

BEGINNING_SECONDS: Final = 30.0
"""How long a run may be claimed without being in the log: longer, and who claimed it died before it could begin it."""
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
    """The conversations of this gateway. `has_model` says whether a model can be asked at all."""

    def __init__(
        self,
        builder: PipelineBuilder,
        service: AgentService[Any],
        terms: Terms,
        *,
        has_model: bool,
        clock: Callable[[], float],
    ) -> None:
        self.builder = builder
        self._service = service
        self._terms = terms
        self._has_model = has_model
        self._clock = clock
        self._following: dict[str, asyncio.Task[None]] = {}
        self._settling: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(self, source_id: str, *, owner: str) -> Conversation:
        """Begin a conversation about a source. `LLMNotConfiguredError`, `NotFoundError` for the source."""
        if self._terms.requires_model and not self._has_model:
            raise LLMNotConfiguredError(
                "LLM provider not configured: set AGENT_LLM_BASE_URL or AGENT_MODEL_FAST, or let rules carry "
                "conversations (AGENT_CONVERSATIONS_REQUIRE_LLM=false)",
                agent_id="builder",
            )
        source = await self.builder.sources.get(source_id, owner)
        return await self.builder.store.add(owner, source_id=source.id)

    async def get(self, conversation_id: str, *, owner: str) -> Conversation:
        """A conversation, with what its last run came to. `NotFoundError`."""
        conversation = await self.builder.get(conversation_id, owner)
        if conversation.run_id is not None and await self._settle(conversation):
            return await self.builder.get(conversation_id, owner)
        return conversation

    async def messages(self, conversation: Conversation) -> list[ConversationMessage]:
        """Its messages, as far as they have not expired."""
        return await self.builder.messages.read(conversation.id)

    async def question(self, conversation: Conversation) -> str:
        """What its run asks of a person; empty when it waits for nobody."""
        run_id = conversation.run_id
        row = await self._row(conversation, run_id) if run_id is not None else None
        if row is None or row.status != "awaiting_approval":
            return ""
        return question(await self._state(row.run_id, conversation.owner))

    async def send(
        self,
        conversation_id: str,
        text: str,
        *,
        owner: str,
        key: str | None = None,
        narrowed: Callable[[AgentRequest], AgentRequest] = lambda request: request,
    ) -> Sent:
        """Take a message; the run that answers it is on disk when this returns. Where the last answer ended with a
        question for approval, the message is the reply to it. `key` is the caller's API key by its id, `narrowed` what
        it leaves of a request.

        Raises `NotFoundError`, `ConversationNotActiveError`, `ConflictError` while another one is being answered,
        `RateLimitError`, `BadRequestError`, and what `AgentService.start` raises."""
        conversation = await self.get(conversation_id, owner=owner)
        self.builder.must_be_active(conversation)
        if not text.strip() or len(text) > MESSAGE_CHARS:
            raise BadRequestError(f"a message has 1 to {MESSAGE_CHARS:,} characters", param="message")
        if await self.builder.messages.sent(owner) > self._terms.messages_per_minute:
            raise RateLimitError(
                f"more than {self._terms.messages_per_minute} messages in {WINDOW_SECONDS:.0f} s; try again in a "
                "minute",
                agent_id="builder",
                retry_after_s=WINDOW_SECONDS,
            )
        async with self._alone(conversation):
            fresh = await self.get(conversation_id, owner=owner)
            self.builder.must_be_active(fresh)
            if fresh.run_id is not None:
                return await self._reply(fresh, fresh.run_id, text)
            request = await self._request(fresh, text)
            return await self._begin(fresh, narrowed(request), key)

    async def finished(self, conversation_id: str, sent: Sent, *, owner: str) -> RunState:
        """The run's state, once it has ended or waits for a person; the conversation knows of it then."""
        events = self._service.events(sent.run_id, owner=owner, waits=False, heard=sent.heard)
        async with contextlib.aclosing(events):
            async for _ in events:
                pass
        state = await self._state(sent.run_id, owner)
        await self.get(conversation_id, owner=owner)
        return state

    async def apply(self, conversation_id: str, collection: str, *, force: bool, owner: str) -> Conversation:
        """Apply the proposed pipeline, see `PipelineBuilder.apply`. `ConflictError` while a message is being answered;
        a question that waits for an approval is withdrawn."""
        async with self._between_messages(conversation_id, owner) as conversation:
            return await self.builder.apply(conversation, collection, force=force, by=owner)

    async def abandon(self, conversation_id: str, *, owner: str) -> Conversation:
        """End a conversation without applying anything; see `apply`."""
        async with self._between_messages(conversation_id, owner) as conversation:
            return await self.builder.abandon(conversation)

    async def archive(self) -> list[str]:
        """Archive what was applied or abandoned long ago; the ids."""
        return await self.builder.store.archive(self._clock() - self._terms.archive_days * DAY_SECONDS)

    async def resume(self) -> None:
        """Settle what ended while nobody looked, follow what goes on, archive what is old. Raises `StoreError`."""
        for conversation in await self.builder.store.under_way():
            if not await self._settle(conversation):
                self._follow(conversation, conversation.run_id or "")
        await self.builder.resume()
        await self.archive()

    async def aclose(self) -> None:
        """Let go of the runs that are being followed; they are settled at the next start."""
        following = list(self._following.values())
        for task in following:
            task.cancel()
        if following:
            await asyncio.wait(following)

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

    async def _begin(self, conversation: Conversation, request: AgentRequest, key: str | None) -> Sent:
        """A run of its own for this message."""
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
            await self._service.start(request, owner=conversation.owner, run_id=run_id, key=key)
        except StoreError:  # it may have been stored all the same; whoever looks next will see
            raise
        except AgentError:
            await self.builder.store.unclaim(conversation, run_id)
            raise
        self._follow(conversation, run_id)
        return Sent(run_id)

    async def _reply(self, conversation: Conversation, run_id: str, text: str) -> Sent:
        """The word the conversation's run waits for. `ConflictError` when it waits for none."""
        row = await self._row(conversation, run_id)
        if row is None or row.status != "awaiting_approval":
            raise self._busy(conversation)
        decision, reason = decision_of(text)
        heard = await self._service.decide(
            run_id, _DECISIONS[decision], owner=conversation.owner, by=conversation.owner, reason=reason
        )
        return Sent(run_id, heard)

    @contextlib.asynccontextmanager
    async def _between_messages(self, conversation_id: str, owner: str) -> AsyncIterator[Conversation]:
        """The conversation while no message of it is being answered. `NotFoundError`, `ConflictError`."""
        conversation = await self.get(conversation_id, owner=owner)
        async with self._alone(conversation):
            conversation = await self.get(conversation_id, owner=owner)
            if conversation.run_id is not None:
                row = await self._row(conversation, conversation.run_id)
                if row is None or row.status != "awaiting_approval":
                    raise self._busy(conversation)
                await self._service.cancel(row.run_id, owner=owner, reason="decided outside of the conversation")
                await self._until_settled(conversation, row.run_id)
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

    async def _row(self, conversation: Conversation, run_id: str) -> RunRow | None:
        try:
            return await self._service.get(run_id, owner=conversation.owner)
        except NotFoundError:
            return None

    def _busy(self, conversation: Conversation) -> ConflictError:
        return ConflictError(
            f"a message of {conversation.id} is being answered; wait for its end, or cancel it by POST "
            f"/v1/runs/{conversation.run_id or '{run_id}'}/cancel",
            agent_id="builder",
            run_id=conversation.run_id,
        )

    def _follow(self, conversation: Conversation, run_id: str) -> None:
        """Settle the run when it ends, whether anybody waits for it or not."""
        following = asyncio.create_task(self._settled_in_time(conversation, run_id), name=f"{run_id} conversation")
        self._following[run_id] = following
        following.add_done_callback(lambda _: self._following.pop(run_id, None))

    async def _settled_in_time(self, conversation: Conversation, run_id: str) -> None:
        try:
            await self._until_settled(conversation, run_id)
        except AgentError as error:  # whoever looks at the conversation next settles it
            log.warning("run %s of a conversation is not settled yet: %s", run_id, error.message)

    async def _until_settled(self, conversation: Conversation, run_id: str) -> None:
        async with contextlib.aclosing(self._service.events(run_id, owner=conversation.owner)) as events:
            async for _ in events:
                pass
        await self._settle(await self.builder.get(conversation.id, conversation.owner))

    async def _settle(self, conversation: Conversation) -> bool:
        """Take up what the conversation's run came to, if it has ended by now; whether anything has changed."""
        run_id = conversation.run_id
        if run_id is None:
            return False
        row = await self._row(conversation, run_id)
        if row is None:
            if self._clock() - conversation.claimed < BEGINNING_SECONDS:
                return False
            await self.builder.store.unclaim(conversation, run_id)
            return True
        if row.status not in ENDED:
            return False
        # Whoever comes second finds everything done: the answer is among the messages.
        async with self._settling.setdefault(conversation.id, asyncio.Lock()):
            await self._take_up(conversation, run_id)
        return True

    async def _take_up(self, conversation: Conversation, run_id: str) -> None:
        """What the run has come to, once."""
        events = await self._service.read(run_id, owner=conversation.owner)
        state = fold(run_id, events)
        asked = kept_words(conversation.asked, state.request.prompt)
        if not await self.builder.store.settle(conversation, run_id, asked, state.usage):
            return
        try:
            messages = self.builder.messages
            found = messages_of(events, state, messages.message)
            if not await messages.read(conversation.id):  # gone with an earlier process, while this was answered
                found.insert(0, messages.message("user", state.request.prompt))
            await messages.add(conversation.id, *found)
        except StoreError as error:  # they would have expired one day; the summary stays
            log.warning("the messages of %s are not kept: %s", conversation.id, error.message)
        await self.builder.summarise(conversation)

    async def _state(self, run_id: str, owner: str) -> RunState:
        return fold(run_id, await self._service.read(run_id, owner=owner))
