"""The tools that are the agent itself, as MCP clients call them: `agent_run`, and `run_get`, `run_respond`,
`run_cancel` for what it began."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from agent.core.models import AgentRequest, JsonObject
from agent.core.response import respond
from agent.core.service import ENDED, AgentService
from agent.execution.run import Run
from agent.tools import ToolAnnotations, flat_schema
from mcp_tools.server_attendance import HEARTBEAT_SECONDS, Steps, even_if_cancelled

TEXT_CHARS = 24_000
"""About 8,000 tokens: what a client puts into its model's context without being asked."""
WORD_CHARS = 20_000
"""How much a person may say to a plan; as `POST /v1/runs/{id}/reply`."""

Decision = Literal["approve", "reject", "answer"]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentRunInput(_Input):
    """Arguments of `agent_run`."""

    task: str = Field(min_length=1, description="what to do, complete with names, links and figures")
    room: str = Field(default="", description="the assistant to ask; empty for the default one")
    skills: list[str] = Field(default=[], description="use only these skills; empty for all")
    approve_plan: bool = Field(default=False, description="true: the plan waits for the user's approval before it runs")
    wait_s: float = Field(default=50, ge=0, le=600, description="seconds to wait before returning status 'working'")


class RunGetInput(_Input):
    """Arguments of `run_get`."""

    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")
    wait_s: float = Field(default=0, ge=0, le=600, description="seconds to wait for the end of the run")


class RunRespondInput(_Input):
    """Arguments of `run_respond`."""

    run_id: str = Field(min_length=1, max_length=64, description="id of the run whose status is 'awaiting_approval'")
    decision: Decision = Field(
        description="the user's own word, never yours: approve, reject, or answer when it was neither"
    )
    text: str = Field(
        default="",
        max_length=WORD_CHARS,
        description="with reject: why; with answer: what should be different, in the user's words",
    )
    plan: dict[str, JsonValue] = Field(
        default={}, description="with approve: the plan as the user changed it; empty: as it was shown"
    )
    wait_s: float = Field(default=50, ge=0, le=600, description="seconds to wait before returning status 'working'")

    @model_validator(mode="before")
    @classmethod
    def _in_other_words(cls, data: Any) -> Any:
        """`approve` (true or false) and `feedback` are taken for `decision` and `text`, where these are not given."""
        if not isinstance(data, dict) or not {"approve", "feedback"} & data.keys():
            return data
        given = {name: value for name, value in data.items() if name not in ("approve", "feedback")}
        approve, feedback = data.get("approve"), data.get("feedback") or ""
        if approve is not None and not isinstance(approve, bool):
            raise ValueError("approve must be true or false")
        word = "answer" if approve is None else "approve" if approve else "reject"
        return {"decision": word, "text": feedback, **given}

    @model_validator(mode="after")
    def _of_one_mind(self) -> "RunRespondInput":
        if self.decision == "answer" and not self.text.strip():
            raise ValueError("decision 'answer' needs text: what the user said")
        if self.decision == "approve" and self.text.strip():
            raise ValueError("decision 'approve' takes no text; use 'answer' when the user wants something changed")
        if self.decision != "approve" and self.plan:
            raise ValueError("a changed plan goes with decision 'approve' only")
        return self


class RunCancelInput(_Input):
    """Arguments of `run_cancel`."""

    wait_s: ClassVar[float] = HEARTBEAT_SECONDS
    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")


AgentInput = AgentRunInput | RunGetInput | RunRespondInput | RunCancelInput


class RunReport(BaseModel):
    """A run as these tools return it."""

    run_id: str
    status: str = Field(description="working, awaiting_approval, complete, partial, aborted, failed or cancelled")
    response: str = Field(description="the answer; with awaiting_approval: the question to the user")
    steps: list[dict[str, JsonValue]] = Field(description="what was done, in order")
    citations: list[dict[str, JsonValue]] = Field(description="the sources the answer cites")
    approvals: list[dict[str, JsonValue]] = Field(
        default=[], description="what waits for the user's word: tools, arguments, what changes something, until when"
    )
    plan: dict[str, JsonValue] = Field(
        default={}, description="the plan that waits as a whole; run_respond takes it back changed"
    )


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One of these tools. `work` gives the id of its run; `asks`: the user may be asked while the call is open."""

    name: str
    description: str
    input_model: type[AgentInput]
    annotations: ToolAnnotations
    work: Callable[["AgentTools", Any], Awaitable[str]]
    asks: bool = False

    @property
    def input_schema(self) -> JsonObject:
        """Flat, always with `properties`."""
        return flat_schema(self.input_model)


class AgentTools:
    """Carries one call out on the service of this gateway. `wait_s` is for all its waiting for the run together."""

    def __init__(self, service: AgentService[Run], steps: Steps, wait_s: float) -> None:
        self._service, self._steps, self._left = service, steps, wait_s

    async def run(self, args: AgentRunInput) -> str:
        """Start a run and follow it. The client that cancels the call cancels the run."""
        metadata: JsonObject = {"skills": list(args.skills)} if args.skills else {}
        if args.approve_plan:
            metadata["approve_plan"] = True
        request = AgentRequest(prompt=args.task, room=args.room or None, metadata=metadata)
        run_id = await self._service.start(request)
        await self.carry_on(run_id)
        return run_id

    async def get(self, args: RunGetInput) -> str:
        """A run, after waiting for its end."""
        await self._service.get(args.run_id)
        await self._follow(args.run_id, 0)
        return args.run_id

    async def respond(self, args: RunRespondInput) -> str:
        """Tell a waiting run what the user decided, and follow it as `run` does."""
        plan: JsonObject | None = dict(args.plan) or None
        heard = await self._service.decide(args.run_id, args.decision, reason=args.text.strip(), plan=plan)
        await self.carry_on(args.run_id, heard)
        return args.run_id

    async def cancel(self, args: RunCancelInput) -> str:
        """Stop a run; one that has ended stays as it is."""
        row = await self._service.get(args.run_id)
        if row.status not in ENDED:
            await self._service.cancel(args.run_id, reason="cancelled by the MCP client")
            await self._follow(args.run_id, row.last_seq)
        return args.run_id

    async def carry_on(self, run_id: str, heard: int = 0) -> None:
        """Follow a run of which everything up to seq `heard` is known; cancel it with the call."""
        try:
            await self._follow(run_id, heard)
        except asyncio.CancelledError:
            await even_if_cancelled(self._service.cancel(run_id, reason="cancelled by the MCP client"))
            raise

    async def report(self, run_id: str) -> RunReport:
        """The run as it stands."""
        response = respond(await self._service.read(run_id))
        status = str(response.metadata["status"])
        approvals = response.metadata.get("approvals", [])
        whole = any(asked["call_id"] is None for asked in approvals)
        return RunReport(
            run_id=run_id,
            status="working" if status in ("queued", "running") else status,
            response=response.response,
            steps=[step.model_dump(mode="json", exclude_none=True, exclude={"detail"}) for step in response.steps],
            citations=response.metadata["citations"],
            approvals=approvals if status == "awaiting_approval" else [],
            plan=response.metadata["plan"] if whole and status == "awaiting_approval" else {},
        )

    async def _follow(self, run_id: str, heard: int) -> None:
        """Tell each step as progress until the run ends, waits for a person, or the time is over."""
        if not self._left:
            return
        began = time.monotonic()
        following_it = contextlib.aclosing(self._service.events(run_id, waits=False, heard=heard))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._left), following_it as events:
                following = asyncio.ensure_future(anext(events, None))
                try:
                    with self._steps.attending(self._service, run_id, "working") as attendance:
                        while (event := await attendance.until(following)) is not None:
                            await self._steps.hear(event, silent=event.seq <= heard)
                            following = asyncio.ensure_future(anext(events, None))
                finally:
                    following.cancel()
                    await asyncio.wait([following])
        self._left = max(0.0, self._left - (time.monotonic() - began))


AGENT_TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(
            "agent_run",
            "Give the agent a whole task: it plans, runs the steps with skills and tools, checks them and answers. "
            "Returns the answer with its steps; status 'working' means: call run_get with the run_id; "
            "'awaiting_approval': show the user the response, then call run_respond with what they say.",
            AgentRunInput,
            ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True),
            AgentTools.run,
            asks=True,
        ),
        AgentTool(
            "run_get",
            "Look at a run that agent_run started: its status, steps and answer so far.",
            RunGetInput,
            ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
            AgentTools.get,
        ),
        AgentTool(
            "run_respond",
            "Tell a run that waits for the user's approval what the user decided, and wait for its answer. An approved "
            "run changes things: never decide for the user.",
            RunRespondInput,
            ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=True),
            AgentTools.respond,
            asks=True,
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
