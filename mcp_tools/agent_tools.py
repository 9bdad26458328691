"""The tools that are the agent itself, as MCP clients call them: `agent_run`, `run_get`, `run_cancel`."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core import events as ev
from agent.core.models import AgentRequest, JsonObject
from agent.core.response import respond
from agent.core.service import ENDED, AgentService
from agent.execution.run import Run
from agent.tools import ToolAnnotations, flat_schema

HEARTBEAT_SECONDS = 15.0
"""Clients reset their time-out on progress; some give up after half a minute of silence."""
TEXT_CHARS = 24_000
"""About 8,000 tokens: what a client puts into its model's context without being asked."""

Progress = Callable[[float, float | None, str], Awaitable[None]]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentRunInput(_Input):
    """Arguments of `agent_run`."""

    task: str = Field(min_length=1, description="what to do, complete with names, links and figures")
    room: str = Field(default="", description="the assistant to ask; empty for the default one")
    skills: list[str] = Field(default=[], description="use only these skills; empty for all")
    wait_s: float = Field(default=50, ge=0, le=600, description="seconds to wait before returning status 'working'")


class RunGetInput(_Input):
    """Arguments of `run_get`."""

    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")
    wait_s: float = Field(default=0, ge=0, le=600, description="seconds to wait for the end of the run")


class RunCancelInput(_Input):
    """Arguments of `run_cancel`."""

    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")


class RunReport(BaseModel):
    """A run as these tools return it."""

    run_id: str
    status: str = Field(description="working, complete, partial, aborted, failed or cancelled")
    response: str
    steps: list[dict[str, JsonValue]] = Field(description="what was done, in order")
    citations: list[dict[str, JsonValue]] = Field(description="the sources the answer cites")


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One of these tools."""

    name: str
    description: str
    input_model: type[_Input]
    annotations: ToolAnnotations
    work: Callable[["AgentTools", Any, Progress], Awaitable[RunReport]]

    @property
    def input_schema(self) -> JsonObject:
        """Flat, always with `properties`."""
        return flat_schema(self.input_model)


class AgentTools:
    """Carries the tools out on the service of this gateway."""

    def __init__(self, service: AgentService[Run]) -> None:
        self._service = service

    async def run(self, args: AgentRunInput, progress: Progress) -> RunReport:
        """Start a run and follow it. The client that cancels the call cancels the run."""
        metadata: JsonObject = {"skills": list(args.skills)} if args.skills else {}
        request = AgentRequest(prompt=args.task, room=args.room or None, metadata=metadata)
        run_id = await self._service.start(request)
        try:
            await self._follow(run_id, args.wait_s, progress)
        except asyncio.CancelledError:
            await _even_if_cancelled(self._service.cancel(run_id, reason="cancelled by the MCP client"))
            raise
        return await self._report(run_id)

    async def get(self, args: RunGetInput, progress: Progress) -> RunReport:
        """A run, after waiting for its end."""
        await self._service.get(args.run_id)
        if args.wait_s:
            await self._follow(args.run_id, args.wait_s, progress)
        return await self._report(args.run_id)

    async def cancel(self, args: RunCancelInput, progress: Progress) -> RunReport:
        """Stop a run; one that has ended stays as it is."""
        row = await self._service.get(args.run_id)
        if row.status not in ENDED:
            await self._service.cancel(args.run_id, reason="cancelled by the MCP client")
            await self._follow(args.run_id, HEARTBEAT_SECONDS, progress)
        return await self._report(args.run_id)

    async def _follow(self, run_id: str, wait_s: float, progress: Progress) -> None:
        """Tell each step as progress until the run ends or the time is over; never silent for long."""
        steps = _StepCounter()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s), contextlib.aclosing(self._service.events(run_id)) as events:
                following = asyncio.ensure_future(anext(events, None))
                try:
                    while True:
                        done, _ = await asyncio.wait([following], timeout=HEARTBEAT_SECONDS)
                        if not done:
                            await steps.tell(progress, steps.last or "working")
                            continue
                        event = following.result()
                        if event is None:
                            return
                        if (line := steps.line(event)) is not None:
                            await steps.tell(progress, line)
                        following = asyncio.ensure_future(anext(events, None))
                finally:
                    following.cancel()
                    await asyncio.wait([following])

    async def _report(self, run_id: str) -> RunReport:
        response = respond(await self._service.read(run_id))
        status = str(response.metadata["status"])
        return RunReport(
            run_id=run_id,
            status="working" if status in ("queued", "running") else status,
            response=response.response,
            steps=[step.model_dump(mode="json", exclude_none=True, exclude={"detail"}) for step in response.steps],
            citations=response.metadata["citations"],
        )


class _StepCounter:
    """Progress as `step 2/5: search_files`; the number only grows, as the protocol asks."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._told = 0
        self.last = ""

    def line(self, event: ev.Event) -> str | None:
        match event.body:
            case ev.PlanProposed(plan=plan):
                self._titles = {step.id: step.title for step in plan.steps}
                self._numbers = {step.id: number for number, step in enumerate(plan.steps, start=1)}
                return f"plan: {len(plan.steps)} steps"
            case ev.StepStarted() if event.step_id in self._numbers:
                number = self._numbers[event.step_id]
                return f"step {number}/{len(self._numbers)}: {self._titles[event.step_id]}"
            case _:
                return None

    async def tell(self, progress: Progress, message: str) -> None:
        self._told += 1
        self.last = message
        # How many lines there will be is not known (retries, new plans), so no total is promised.
        await progress(float(self._told), None, message)


async def _even_if_cancelled(work: Awaitable[None]) -> None:
    """Finish `work` although the caller is being cancelled; a run that has ended meanwhile is no error."""
    task = asyncio.ensure_future(work)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    await asyncio.wait([task])
    task.exception()


AGENT_TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(
            "agent_run",
            "Give the agent a whole task: it plans, runs the steps with skills and tools, checks them and answers. "
            "Returns the answer with its steps; status 'working' means: call run_get with the run_id.",
            AgentRunInput,
            ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True),
            AgentTools.run,
        ),
        AgentTool(
            "run_get",
            "Look at a run that agent_run started: its status, steps and answer so far.",
            RunGetInput,
            ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
            AgentTools.get,
        ),
        AgentTool(
            "run_cancel",
            "Stop a run that agent_run started. What is known by then stands in its answer.",
            RunCancelInput,
            ToolAnnotations(read_only=False, destructive=True, idempotent=True, open_world=False),
            AgentTools.cancel,
        ),
    )
}
"""By name, in the order they are listed."""
