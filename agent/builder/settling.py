"""What the runs of conversations come to, put into the conversations: by whoever looks first, once."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

from agent.builder.builder import PipelineBuilder
from agent.builder.from_log import messages_of
from agent.builder.records import Conversation
from agent.builder.summary import kept_words
from agent.core.errors import NotFoundError, StoreError
from agent.core.fold import fold
from agent.core.following import BEGINNING_SECONDS, Following
from agent.core.journal import RunRow
from agent.core.service import ENDED, AgentService

log = logging.getLogger(__name__)

SETTLING_SECONDS: Final = 5.0
"""How long those who look wait for what is being written down; it takes milliseconds while the stores work."""


class Settling:
    """Settles a conversation when its run has ended: its messages, tokens and summary are the conversation's then."""

    def __init__(self, builder: PipelineBuilder, service: AgentService[Any], clock: Callable[[], float]) -> None:
        self._builder = builder
        self._service = service
        self._clock = clock
        self._following = Following(service, "conversation")
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._taken_up = 0
        """How many runs were taken up: who reads a conversation meanwhile may have seen the half of it."""

    async def settled(self, conversation_id: str, owner: str) -> Conversation:
        """A conversation, with what its last run came to. `NotFoundError`."""
        taken_up = self._taken_up
        conversation = await self._builder.get(conversation_id, owner)
        if conversation.run_id is not None:
            is_stale = await self.settle(conversation)
        else:  # its run may be settled at this moment: it is cleared first, and the rest follows
            is_stale = await self._others_settled(conversation) or taken_up != self._taken_up
        return await self._builder.get(conversation_id, owner) if is_stale else conversation

    async def settle(self, conversation: Conversation) -> bool:
        """Take up what the conversation's run came to, if it has ended by now; whether anything has changed."""
        run_id = conversation.run_id
        if run_id is None:
            return False
        row = await self.row(conversation, run_id)
        if row is None:
            if self._clock() - conversation.claimed < BEGINNING_SECONDS:
                return False
            await self._builder.store.unclaim(conversation, run_id)
            return True
        if row.status not in ENDED:
            return False
        # Whoever comes second finds everything done: the answer is among the messages.
        async with self._locks.setdefault(conversation.id, asyncio.Lock()):
            await self._take_up(conversation, run_id)
            self._taken_up += 1
        return True

    def follow(self, conversation: Conversation, run_id: str) -> None:
        """Settle the run when it ends, whether anybody waits for it or not."""
        self._following.follow(run_id, conversation.owner, lambda: self._settle_anew(conversation))

    async def until_settled(self, conversation: Conversation, run_id: str) -> None:
        """Return when the run has ended and is settled."""
        await self._service.until_over(run_id, owner=conversation.owner)
        await self._settle_anew(conversation)

    async def row(self, conversation: Conversation, run_id: str) -> RunRow | None:
        """The run's row; None while it is not in the log."""
        try:
            return await self._service.get(run_id, owner=conversation.owner)
        except NotFoundError:
            return None

    async def aclose(self) -> None:
        """Let go of the runs that are being followed; they are settled at the next start."""
        await self._following.aclose()

    async def _settle_anew(self, conversation: Conversation) -> bool:
        return await self.settle(await self._builder.get(conversation.id, conversation.owner))

    async def _others_settled(self, conversation: Conversation) -> bool:
        """Wait until nobody settles this conversation, at most `SETTLING_SECONDS`; whether anybody did."""
        lock = self._locks.get(conversation.id)
        if lock is None or not lock.locked():
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLING_SECONDS), lock:
                pass
        return True

    async def _take_up(self, conversation: Conversation, run_id: str) -> None:
        """What the run has come to, once."""
        events = await self._service.read(run_id, owner=conversation.owner)
        state = fold(run_id, events)
        asked = kept_words(conversation.asked, state.request.prompt)
        if not await self._builder.store.settle(conversation, run_id, asked, state.usage):
            return
        try:
            messages = self._builder.messages
            found = messages_of(events, state, messages.message)
            asking = messages.message("user", state.request.prompt)
            known = await messages.read(conversation.id)
            if not known or (known[-1].role, known[-1].content) != ("user", asking.content):
                found.insert(0, asking)  # it is not here, but in the memory of the process that was asked
            await messages.add(conversation.id, *found)
        except StoreError as error:  # they would have expired one day; the summary stays
            log.warning("the messages of %s are not kept: %s", conversation.id, error.message)
        await self._builder.summarise(conversation)
