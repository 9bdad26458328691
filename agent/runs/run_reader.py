"""`RunReader`: reads and follows runs, those of this process and of others."""

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic

from agent.core.errors import BusyError, NotFoundError
from agent.core.events import (
    ApprovalDecided,
    CancelRequested,
    Event,
    RunFailed,
    RunWaiting,
)
from agent.core.models import (
    ENDED_STATUSES,
    LOCAL_OWNER,
    AgentResponse,
    JsonObject,
    RunStatus,
)
from agent.core.run_reducer import fold
from agent.runs.response import build_response
from agent.runs.run_failed import RunFailedError
from agent.runs.run_worker import Live, RunWorker
from agent.runs.stopped_run import StoppedRun
from agent.storage.journal import Journal, RunRow

MAX_WAITING_RUNS = 200
"""The newest waiting runs of an owner among which replies and lists of questions look."""
TAIL_POLL_SECONDS = 5.0
"""How long a follower of another process's run waits before it reads again, in case a wake-up was missed."""


class RunReader(Generic[Live]):
    """The runs of this gateway for those who only look. `AgentService` adds what starts and changes them."""

    def __init__(self, journal: Journal, worker: RunWorker[Live]) -> None:
        self._journal = journal
        self.worker = worker
        """Executes this process's share of the runs."""

    async def follow_events(
        self, run_id: str, *, owner: str = LOCAL_OWNER, after: int = 0, waits: bool = True, seen_seq: int = 0
    ) -> AsyncGenerator[Event, None]:
        """Yields the events with `seq > after`, replayed and then live, up to the terminal one. Raises `NotFoundError`.

        Without `waits` it ends where the run waits for a person, except at waits up to seq `seen_seq`, which are over.
        It also ends while the gateway drains: the run continues after the restart.
        """
        async with contextlib.aclosing(self._follow_all_events(run_id, owner, after)) as events:
            async for event in events:
                yield event
                if waits or event.seq <= seen_seq or not isinstance(event.body, RunWaiting):
                    continue
                if await self._is_still_waiting(event):
                    return

    async def wait_until_stopped(self, run_id: str, *, owner: str = LOCAL_OWNER, seen_seq: int = 0) -> StoppedRun:
        """The run's log and state once it has ended or waits for a person after seq `seen_seq`.

        Raises `RunFailedError` for a failed run, `BusyError` if the gateway stops first, and `NotFoundError`.
        """
        live = self.worker.get_followable_run(run_id)
        if live is not None and live.state.owner == owner:
            await live.wait_until_stopped(seen_seq)  # one wake-up instead of one for each event
        if live is not None and live.state.owner == owner and live.events[-1].body.terminal:
            stopped = StoppedRun(live.events, live.state)
        else:
            events = [event async for event in self.follow_events(run_id, owner=owner, waits=False, seen_seq=seen_seq)]
            stopped = StoppedRun(events, fold(run_id, events))
        last = stopped.events[-1].body if stopped.events else None
        if isinstance(last, RunFailed):
            raise RunFailedError(last.failure)
        if last is None or not (last.terminal or isinstance(last, RunWaiting)):
            raise BusyError(f"the gateway is stopping; the run continues after the restart: GET /v1/runs/{run_id}")
        return stopped

    async def wait_until_end(
        self, run_id: str, *, owner: str = LOCAL_OWNER, waits: bool = True, seen_seq: int = 0
    ) -> None:
        """Finds where `follow_events` ends. Raises `NotFoundError`."""
        async with contextlib.aclosing(
            self.follow_events(run_id, owner=owner, waits=waits, seen_seq=seen_seq)
        ) as events:
            async for _ in events:
                pass

    async def wait_for_response(self, run_id: str, *, owner: str = LOCAL_OWNER, seen_seq: int = 0) -> AgentResponse:
        """The answer once the run has ended, or the question it waits with. Raises what `wait_until_stopped`
        raises.
        """
        stopped = await self.wait_until_stopped(run_id, owner=owner, seen_seq=seen_seq)
        return build_response(stopped.events, stopped.state)

    async def read_events(self, run_id: str, *, owner: str = LOCAL_OWNER, after: int = 0) -> list[Event]:
        """The events so far. Raises `NotFoundError`."""
        await self._journal.get_run(run_id, owner=owner)
        return await self._journal.read_events(run_id, after=after)

    async def get_blob_result(self, checksum: str) -> tuple[dict[str, object] | None, str]:
        """The object that a long tool result was stored as (None if it was not an object), and its
        whole text.
        """
        stored = json.loads(await self._journal.get_blob(checksum))
        value = stored.get("value")
        return value if isinstance(value, dict) else None, stored["text"]

    async def get_blob_content(self, checksum: str) -> list[JsonObject]:
        """The content blocks of a tool result besides its text."""
        blocks: list[JsonObject] = json.loads(await self._journal.get_blob(checksum))
        return blocks

    async def get_run(self, run_id: str, *, owner: str = LOCAL_OWNER) -> RunRow:
        """The run's row. Raises `NotFoundError`."""
        return await self._journal.get_run(run_id, owner=owner)

    async def list_runs(
        self,
        *,
        owner: str = LOCAL_OWNER,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
    ) -> list[RunRow]:
        """Runs, newest first."""
        return await self._journal.list_runs(owner=owner, limit=limit, before=before, status=status)

    async def find_conversation_ends(
        self, conversation_id: str, *, owner: str = LOCAL_OWNER
    ) -> tuple[RunRow, RunRow] | None:
        """The oldest and the newest run of a conversation; None if it has none."""
        return await self._journal.find_conversation_ends(conversation_id, owner=owner)

    async def list_waiting_runs(self, *, owner: str | None = LOCAL_OWNER) -> list[RunRow]:
        """The newest `MAX_WAITING_RUNS` runs that wait for a person, hidden ones too; None: of all owners."""
        return await self._journal.list_runs(
            owner=owner, status="awaiting_approval", limit=MAX_WAITING_RUNS, include_hidden=True
        )

    async def _is_still_waiting(self, event: Event) -> bool:
        """Whether the run still waits at this event."""
        later = await self._journal.read_events(event.run_id, after=event.seq)
        return not any(isinstance(other.body, ApprovalDecided | CancelRequested) for other in later)

    async def _follow_all_events(self, run_id: str, owner: str, after: int) -> AsyncGenerator[Event, None]:
        live = self.worker.get_followable_run(run_id)
        if live is not None and live.state.owner != owner:
            raise NotFoundError(f"there is no run {run_id!r}")
        if live is not None:
            async for event in live.follow_events(after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
        else:
            row = await self._journal.get_run(run_id, owner=owner)
            if row.status in ENDED_STATUSES and after >= row.last_seq:
                return
        async for event in self._tail_journal(run_id, after):
            yield event

    async def _tail_journal(self, run_id: str, after: int) -> AsyncIterator[Event]:
        """Follows a run through the journal: one of another process, or one that was released."""
        while True:
            for event in await self._journal.read_events(run_id, after=after):
                after = event.seq
                yield event
                if event.body.terminal:
                    return
            if self.worker.draining and self.worker.get_live_run(run_id) is None:
                return
            await self._journal.wait_for_events(run_id, after=after, timeout_s=TAIL_POLL_SECONDS)
