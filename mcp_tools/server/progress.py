"""Progress of a run for the waiting client: steps, progress of tools, and heartbeats."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from agent.core import events as ev
from agent.core.cancellation import cancel_and_wait
from agent.core.progress import ProgressListener
from agent.run_context.run import Run
from agent.runs.service import AgentService
from agent.text.plurals import format_count
from agent.tools import Tool
from mcp_tools.server.current_principal import get_current_owner

HEARTBEAT_SECONDS = 15.0
"""The longest silence: clients reset their time-out on progress, and some give up after half a minute."""
PROGRESS_INTERVAL_SECONDS = 1.0
"""The shortest time between two lines of a tool's progress; of those that come faster, the newest is sent."""

T = TypeVar("T")
SendProgress = Callable[[float, float | None, str], Awaitable[None]]


class StepProgress:
    """Sends progress such as `step 2/5: search_files`, with the steps of the plan as the total.

    One object for each call, because the number must grow with each line. Step n of a plan is n, other lines get
    fractions. A new plan continues after the number that was reached, so the total grows with it."""

    def __init__(self, progress: SendProgress) -> None:
        self._send = progress
        self._titles: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._last_seq = 0
        self._reached = 0
        """The number of the last step, over all plans."""
        self._lines = 0
        """Lines since that step."""
        self._base = 0
        """The progress of earlier plans when the current plan was made."""
        self._total: int | None = None
        """None until there is a plan."""
        self.last_message = ""
        self.request_raised = asyncio.Event()
        """Set when a tool asks the client something that only the result of this call can carry (era 2026)."""

    async def report_event(self, event: ev.Event, *, silent: bool) -> None:
        """Records an event, and sends a line if the event starts a plan or a step. `silent` suppresses the line."""
        line = self._read_event(event)
        if line is not None and not silent and event.seq > self._last_seq:
            await self.send(line)
        self._last_seq = max(self._last_seq, event.seq)

    async def send(self, message: str) -> None:
        """Sends a line to the client."""
        self.last_message = message
        number = self._reached + self._lines / (self._lines + 4)  # grows with each line and never reaches the next step
        self._lines += 1
        await self._send(number, self._total, message)

    @contextlib.contextmanager
    def relay_tool_progress(
        self, service: AgentService[Run], run_id: str, idle_message: str
    ) -> Iterator["ProgressRelay"]:
        """Listens to the progress of the run's tools while the caller waits.

        `idle_message` is the heartbeat's text before the first line was sent.
        """
        with service.progress.listen(run_id, PROGRESS_INTERVAL_SECONDS) as listener:
            relay = ProgressRelay(self, listener, idle_message)
            try:
                yield relay
            finally:
                relay.close()

    def _read_event(self, event: ev.Event) -> str | None:
        """Updates the numbers by an event. Returns the line for it, if any."""
        match event.body:
            case ev.PlanProposed(plan=plan):
                self._titles = {step.id: step.title for step in plan.steps}
                self._numbers = {step.id: number for number, step in enumerate(plan.steps, start=1)}
                self._base = self._reached
                self._total = self._base + len(plan.steps) + 1  # the last unit is the end of the run
                return f"plan: {format_count(len(plan.steps), 'step')}"
            case ev.StepStarted() if event.step_id in self._numbers:
                number = self._numbers[event.step_id]
                if self._base + number > self._reached:
                    self._reached, self._lines = self._base + number, 0
                return f"step {number}/{len(self._numbers)}: {self._titles[event.step_id]}"
            case _:
                return None


class RequestRaisedError(Exception):
    """Raised while waiting for a run whose tool asks the client something: the call must end to carry the request."""


class ProgressRelay:
    """Waits for something while sending the client the tools' progress, or else heartbeats."""

    def __init__(self, steps: StepProgress, listener: ProgressListener, idle_message: str) -> None:
        self._steps, self._listener, self._idle_message = steps, listener, idle_message
        self._next_line: asyncio.Future[str] | None = None
        self._request_raised = asyncio.ensure_future(steps.request_raised.wait())

    async def wait_for(self, work: asyncio.Future[T]) -> T:
        """The result of `work`. Until then sends the tools' lines, and at least one line each
        `HEARTBEAT_SECONDS`. Raises `RequestRaisedError` if the client must be asked first."""
        while not work.done():
            next_line = self._next_line = self._next_line or asyncio.ensure_future(self._listener.wait_for_next())
            first = asyncio.FIRST_COMPLETED
            waiting = (work, next_line, self._request_raised)
            done, _ = await asyncio.wait(waiting, timeout=HEARTBEAT_SECONDS, return_when=first)
            if work in done:
                break  # the step's own line comes before the lines of its tool
            if self._request_raised in done:
                raise RequestRaisedError
            if next_line in done:
                self._next_line = None
                await self._steps.send(next_line.result())
            else:
                await self._steps.send(self._steps.last_message or self._idle_message)
        return work.result()

    async def send_last(self) -> None:
        """Sends the line that came while the work ended, if there is one."""
        if self._next_line is not None and self._next_line.done():
            line: str | None = self._next_line.result()
            self._next_line = None
        else:
            line = self._listener.take_unread()
        if line is not None:
            await self._steps.send(line)

    def close(self) -> None:
        """Stops listening."""
        self._request_raised.cancel()
        if self._next_line is not None:
            self._next_line.cancel()


class ToolCallRun:
    """The run behind one call of a registered tool. It is hidden from lists and is cancelled with its client's call."""

    def __init__(self, service: AgentService[Run], run_id: str, steps: StepProgress, tool: Tool) -> None:
        self._service, self._run_id, self._steps = service, run_id, steps
        self._name = tool.spec.name

    async def wait_until_finished(self, last_seq: int = 0) -> None:
        """Waits until the run ends or waits for a person or the client, and sends progress meanwhile.

        Raises what `AgentService.wait_until_stopped` raises. The client that cancels the call cancels the run."""
        ending = asyncio.ensure_future(
            self._service.wait_until_stopped(self._run_id, owner=get_current_owner(), seen_seq=last_seq)
        )
        try:
            with self._steps.relay_tool_progress(self._service, self._run_id, f"{self._name} is working") as relay:
                await relay.wait_for(ending)
                await relay.send_last()
        except RequestRaisedError:
            return
        except asyncio.CancelledError:
            await finish_despite_cancellation(
                self._service.cancel_run(self._run_id, owner=get_current_owner(), reason="cancelled by the MCP client")
            )
            raise
        finally:
            await cancel_and_wait(ending)


async def finish_despite_cancellation(work: Awaitable[None]) -> None:
    """Completes `work` although the caller is being cancelled. Ignores its error: the run may have ended meanwhile."""
    task = asyncio.ensure_future(work)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    await asyncio.wait([task])
    task.exception()
