"""What a client hears while it waits for a run: its steps, what its tools say of their progress, signs of life."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from agent.core import events as ev
from agent.core.progress import Listener
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.tools import Tool

HEARTBEAT_SECONDS = 15.0
"""Clients reset their time-out on progress; some give up after half a minute of silence."""
PROGRESS_SECONDS = 1.0
"""Between two lines of what tools say of their progress; of those that come faster, the newest is told."""

T = TypeVar("T")
Progress = Callable[[float, float | None, str], Awaitable[None]]


class Steps:
    """Progress as `step 2/5: search_files`; the number only grows, as the protocol asks. One for each call."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._titles: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._told = self._heard = 0
        self.last = ""

    async def hear(self, event: ev.Event, *, silent: bool) -> None:
        """Take note of an event, and tell what it begins, once."""
        line = self._line(event)
        if line is not None and not silent and event.seq > self._heard:
            await self.tell(line)
        self._heard = max(self._heard, event.seq)

    async def tell(self, message: str) -> None:
        """Tell the client."""
        self._told += 1
        self.last = message
        # How many lines there will be is not known (retries, new plans), so no total is promised.
        await self._progress(float(self._told), None, message)

    @contextlib.contextmanager
    def attending(self, service: AgentService[Run], run_id: str, otherwise: str) -> Iterator["Attendance"]:
        """Wait for things of a run while its tools are listened to; `otherwise` is said when nothing was yet."""
        with service.progress.heard(run_id, PROGRESS_SECONDS) as listener:
            attendance = Attendance(self, listener, otherwise)
            try:
                yield attendance
            finally:
                attendance.end()

    def _line(self, event: ev.Event) -> str | None:
        match event.body:
            case ev.PlanProposed(plan=plan):
                self._titles = {step.id: step.title for step in plan.steps}
                self._numbers = {step.id: number for number, step in enumerate(plan.steps, start=1)}
                return f"plan: {len(plan.steps)} {'step' if len(plan.steps) == 1 else 'steps'}"
            case ev.StepStarted() if event.step_id in self._numbers:
                number = self._numbers[event.step_id]
                return f"step {number}/{len(self._numbers)}: {self._titles[event.step_id]}"
            case _:
                return None


class Attendance:
    """Waiting that its client hears of: what the tools of the run say, or else a sign of life."""

    def __init__(self, steps: Steps, listener: Listener, otherwise: str) -> None:
        self._steps, self._listener, self._otherwise = steps, listener, otherwise
        self._hearing: asyncio.Future[str] | None = None

    async def until(self, work: asyncio.Future[T]) -> T:
        """The result of `work`, after telling what is said meanwhile, and something every `HEARTBEAT_SECONDS`."""
        while not work.done():
            hearing = self._hearing = self._hearing or asyncio.ensure_future(self._listener.next())
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait((work, hearing), timeout=HEARTBEAT_SECONDS, return_when=first)
            if work in done:
                break  # a step is told before what its tool says
            if hearing in done:
                self._hearing = None
                await self._steps.tell(hearing.result())
            else:
                await self._steps.tell(self._steps.last or self._otherwise)
        return work.result()

    def end(self) -> None:
        """Listen no more."""
        if self._hearing is not None:
            self._hearing.cancel()


class AttendedCall:
    """The run that carries out one call of `tool`. Nobody sees it in a list: without its client it has no purpose."""

    def __init__(self, service: AgentService[Run], run_id: str, steps: Steps, tool: Tool) -> None:
        self._service, self._run_id, self._steps = service, run_id, steps
        self._name = tool.spec.name

    async def finished(self, heard: int = 0) -> None:
        """Wait for its end, or for a person, with what the tool says of its progress, or else a sign of life every
        `HEARTBEAT_SECONDS`.

        Raises what `AgentService.finished` raises. The client that cancels the call cancels the run."""
        ending = asyncio.ensure_future(self._service.finished(self._run_id, heard=heard))
        try:
            with self._steps.attending(self._service, self._run_id, f"{self._name} is working") as attendance:
                await attendance.until(ending)
        except asyncio.CancelledError:
            await even_if_cancelled(self._service.cancel(self._run_id, reason="cancelled by the MCP client"))
            raise
        finally:
            ending.cancel()
            await asyncio.wait([ending])


async def even_if_cancelled(work: Awaitable[None]) -> None:
    """Finish `work` although the caller is being cancelled; a run that has ended meanwhile is no error."""
    task = asyncio.ensure_future(work)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    await asyncio.wait([task])
    task.exception()
