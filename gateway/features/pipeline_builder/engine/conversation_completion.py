"""Adds the results of ended runs to their conversations, exactly once, by the first reader that notices the end."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

from agent.core.errors import NotFoundError, StoreError
from agent.core.run_reducer import fold
from agent.runs.run_end import RunEndWatcher
from agent.runs.service import AgentService
from agent.storage.journal import RunRow
from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
from gateway.features.pipeline_builder.engine.records import Conversation
from gateway.features.pipeline_builder.engine.run_messages import build_run_messages
from gateway.features.pipeline_builder.engine.summary import append_request

log = logging.getLogger(__name__)

COMPLETION_WAIT_SECONDS: Final = 5.0
"""How long readers wait for another task that is completing the conversation. It takes milliseconds normally."""


class ConversationCompletion:
    """Completes a conversation when its run ended: stores its messages, token usage and summary."""

    def __init__(self, builder: PipelineBuilder, service: AgentService[Any], clock: Callable[[], float]) -> None:
        self._builder = builder
        self._service = service
        self._watcher = RunEndWatcher(service, "conversation", clock)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._completed_count = 0
        """Counts completed runs. A reader compares it to learn that a run completed while it read."""

    async def get_completed(self, conversation_id: str, owner: str) -> Conversation:
        """A conversation including the results of its last run. Raises `NotFoundError`."""
        taken_up = self._completed_count
        conversation = await self._builder.get(conversation_id, owner)
        if conversation.run_id is not None:
            is_stale = await self.complete_if_ended(conversation)
        else:  # its run may be settled at this moment: it is cleared first, and the rest follows
            is_stale = await self._wait_for_other(conversation) or taken_up != self._completed_count
        return await self._builder.get(conversation_id, owner) if is_stale else conversation

    async def complete_if_ended(self, conversation: Conversation) -> bool:
        """Stores the results of the conversation's run if it ended; returns whether anything changed."""
        run_id = conversation.run_id
        if run_id is None:
            return False
        progress = await self._watcher.get_progress(run_id, conversation.owner, conversation.claimed)
        if progress == "in_progress":
            return False
        if progress == "never_started":
            await self._builder.store.release_claim(conversation, run_id)
            return True
        # A second caller finds everything done: the answer is among the messages.
        async with self._locks.setdefault(conversation.id, asyncio.Lock()):
            await self._store_result(conversation, run_id)
            self._completed_count += 1
        return True

    def follow(self, conversation: Conversation, run_id: str) -> None:
        """Completes the conversation when the run ends, whether or not a client waits."""
        self._watcher.watch(run_id, conversation.owner, lambda: self._reload_and_complete(conversation))

    async def wait_until_completed(self, conversation: Conversation, run_id: str) -> None:
        """Waits until the run ended and its results are stored."""
        await self._service.wait_until_end(run_id, owner=conversation.owner)
        await self._reload_and_complete(conversation)

    async def get_run_row(self, conversation: Conversation, run_id: str) -> RunRow | None:
        """The run's row, or None while it is not in the log."""
        try:
            return await self._service.get_run(run_id, owner=conversation.owner)
        except NotFoundError:
            return None

    async def aclose(self) -> None:
        """Completes what has ended and stops following runs. The next start completes the others."""
        await self._watcher.aclose()

    async def _reload_and_complete(self, conversation: Conversation) -> bool:
        return await self.complete_if_ended(await self._builder.get(conversation.id, conversation.owner))

    async def _wait_for_other(self, conversation: Conversation) -> bool:
        """Waits until no other task completes this conversation, at most `COMPLETION_WAIT_SECONDS`; returns whether one
        did."""
        lock = self._locks.get(conversation.id)
        if lock is None or not lock.locked():
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COMPLETION_WAIT_SECONDS), lock:
                pass
        return True

    async def _store_result(self, conversation: Conversation, run_id: str) -> None:
        """Stores the results of the run, once."""
        events = await self._service.read_events(run_id, owner=conversation.owner)
        state = fold(run_id, events)
        all_requests = append_request(conversation.asked, state.request.prompt)
        if not await self._builder.store.complete_run(conversation, run_id, all_requests, state.usage):
            return
        try:
            messages = self._builder.messages
            run_messages = build_run_messages(events, state, messages.make_message)
            asking = messages.make_message("user", state.request.prompt)
            stored_messages = await messages.read(conversation.id)
            if not stored_messages or (stored_messages[-1].role, stored_messages[-1].content) != (
                "user",
                asking.content,
            ):
                run_messages.insert(0, asking)  # it is not here, but in the memory of the process that was asked
            await messages.add(conversation.id, *run_messages)
        except StoreError as error:  # they would have expired one day; the summary stays
            log.warning("the messages of %s are not kept: %s", conversation.id, error.message)
        await self._builder.update_summary(conversation)
