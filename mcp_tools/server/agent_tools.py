"""The tools that start and control runs over MCP: `agent_run`, `run_get`, `run_respond` and `run_cancel`."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, model_validator

from agent.core.cancellation import cancel_and_wait
from agent.core.client_requests import AskWaitingClient, refuse_waiting_request
from agent.core.models import ENDED_STATUSES, AgentRequest, JsonObject
from agent.runs.decisions import require_approval_ids
from agent.runs.response import build_response
from agent.runs.run_intake import RunIntake
from agent.tools import ToolAnnotations, build_flat_schema
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.progress import HEARTBEAT_SECONDS, RequestRaisedError, StepProgress, finish_despite_cancellation
from mcp_tools.server.reply_runs import MAX_ANSWER_CHARS, start_reply_run

TEXT_CHARS = 24_000
"""The longest text of a result: about 8,000 tokens, because clients put it into their model's context unasked."""
MAX_REPLY_CHARS = MAX_ANSWER_CHARS
"""The longest reply to a plan."""

Decision = Literal["approve", "reject", "answer"]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentRunInput(_Input):
    """Arguments of `agent_run`."""

    task: str = Field(
        min_length=1,
        validation_alias=AliasChoices("task", "prompt"),
        description="what to do, complete with names, links and figures",
    )
    room: str = Field(default="", description="the room that handles the task; empty for the default one")
    skills: list[str] = Field(default=[], description="use only these skills; empty for all")
    approve_plan: bool = Field(default=False, description="true: the plan waits for the user's approval before it runs")
    wait_s: float = Field(default=50, ge=0, le=600, description="seconds to wait before returning status 'working'")

    @model_validator(mode="before")
    @classmethod
    def _accept_both_names(cls, data: Any) -> Any:
        """Accepts `task` and `prompt`, as other agents call it, together if they are equal."""
        if not isinstance(data, dict) or not {"task", "prompt"} <= data.keys():
            return data
        if data["task"] != data["prompt"]:
            raise ValueError("give either task or prompt; they are the same argument")
        return {name: value for name, value in data.items() if name != "prompt"}


class RunGetInput(_Input):
    """Arguments of `run_get`."""

    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")
    wait_s: float = Field(default=0, ge=0, le=600, description="seconds to wait for the end of the run")


class RunRespondInput(_Input):
    """Arguments of `run_respond`."""

    run_id: str = Field(
        min_length=1, max_length=64, description="id of the run whose status is 'awaiting_approval' or 'awaiting_input'"
    )
    decision: Decision = Field(
        default="answer",
        description="the user's own decision, never yours: approve, reject, or answer if it was neither",
    )
    answer: str = Field(
        default="",
        max_length=MAX_REPLY_CHARS,
        description="with status awaiting_input: what the user answers to the question, in their words",
    )
    text: str = Field(
        default="",
        max_length=MAX_REPLY_CHARS,
        description="with reject: the reason; with answer: what should be different, in the user's words",
    )
    approvals: list[str] = Field(
        default=[],
        max_length=100,
        description="with status awaiting_approval, required: the approval_id of each of the run's approvals that the "
        "user has seen and decided on",
    )
    plan: dict[str, JsonValue] = Field(
        default={}, description="with approve: the plan as the user changed it; empty: unchanged"
    )
    wait_s: float = Field(default=50, ge=0, le=600, description="seconds to wait before returning status 'working'")

    @model_validator(mode="before")
    @classmethod
    def _accept_approve_and_feedback(cls, data: Any) -> Any:
        """Converts `approve` (true or false) and `feedback` to `decision` and `text` if those are missing."""
        if not isinstance(data, dict) or not {"approve", "feedback"} & data.keys():
            return data
        given = {name: value for name, value in data.items() if name not in ("approve", "feedback")}
        approve, feedback = data.get("approve"), data.get("feedback") or ""
        if approve is not None and not isinstance(approve, bool):
            raise ValueError("approve must be true or false")
        word = "answer" if approve is None else "approve" if approve else "reject"
        return {"decision": word, "text": feedback, **given}

    @property
    def words(self) -> str:
        """The user's message."""
        return (self.answer or self.text).strip()

    @model_validator(mode="after")
    def _check_consistency(self) -> "RunRespondInput":
        if self.answer and (self.text or self.decision != "answer"):
            raise ValueError("give either answer, or decision with its text")
        if self.answer.strip():
            return self
        if self.decision == "answer" and not self.text.strip():
            raise ValueError("decision 'answer' needs text: the user's reply")
        if self.decision == "approve" and self.text.strip():
            raise ValueError("decision 'approve' takes no text; use 'answer' when the user wants something changed")
        if self.decision != "approve" and self.plan:
            raise ValueError("a changed plan is only allowed with decision 'approve'")
        return self


class RunCancelInput(_Input):
    """Arguments of `run_cancel`."""

    wait_s: ClassVar[float] = HEARTBEAT_SECONDS
    run_id: str = Field(min_length=1, max_length=64, description="id that agent_run returned")


AgentInput = AgentRunInput | RunGetInput | RunRespondInput | RunCancelInput


class RunReport(BaseModel):
    """A run as these tools return it."""

    run_id: str
    status: str = Field(
        description="working, awaiting_approval, awaiting_input, complete, partial, aborted, failed or cancelled"
    )
    response: str = Field(description="the answer; with awaiting_approval or awaiting_input: the question to the user")
    steps: list[dict[str, JsonValue]] = Field(description="what was done, in order")
    citations: list[dict[str, JsonValue]] = Field(description="the sources the answer cites")
    approvals: list[dict[str, JsonValue]] = Field(
        default=[],
        description="what waits for the user's decision: tools, arguments, what changes something, until when",
    )
    plan: dict[str, JsonValue] = Field(
        default={},
        description="the plan, if there is one; run_respond accepts it changed if it waits for approval as a whole "
        "(an entry of approvals has no call_id)",
    )


@dataclass(frozen=True, slots=True)
class AgentTool:
    """An agent tool as it is listed and called.

    `start_call` returns the id of the call's run. `may_ask_user`: the user may be asked while the call is open.
    """

    name: str
    description: str
    input_model: type[AgentInput]
    annotations: ToolAnnotations
    start_call: Callable[["AgentToolCall", Any], Awaitable[str]]
    may_ask_user: bool = False

    @property
    def input_schema(self) -> JsonObject:
        """The JSON schema of the arguments: flat, always with `properties`."""
        return build_flat_schema(self.input_model)


class AgentToolCall:
    """One call of an agent tool. `wait_s` limits the total time the call waits for the run, in seconds."""

    def __init__(
        self,
        intake: RunIntake,
        steps: StepProgress,
        wait_s: float,
        ask_client: AskWaitingClient = refuse_waiting_request,
    ) -> None:
        self._intake, self._service, self._steps, self._seconds_left = intake, intake.service, steps, wait_s
        self._ask_client = ask_client

    async def run(self, args: AgentRunInput) -> str:
        """Starts a run and follows it. If the client cancels the call, the run is cancelled."""
        metadata: JsonObject = {"skills": list(args.skills)} if args.skills else {}
        if args.approve_plan:
            metadata["approve_plan"] = True
        request = AgentRequest(prompt=args.task, room=args.room or None, metadata=metadata)
        run = await self._intake.accept(get_current_principal(), request)
        await self.follow_or_cancel(run.run_id)
        return run.run_id

    async def get(self, args: RunGetInput) -> str:
        """Waits for the end of a run, at most `wait_s` seconds. Returns the run's id."""
        await self._service.get_run(args.run_id, owner=get_current_owner())
        await self._report_until_done(args.run_id, 0)
        return args.run_id

    async def respond(self, args: RunRespondInput) -> str:
        """Passes the user's decision to a waiting run, then follows it as `run` does; or the answer to a question."""
        row = await self._service.get_run(args.run_id, owner=get_current_owner())
        if row.status == "awaiting_input":
            return await self.answer(args.run_id, args.words)
        plan: JsonObject | None = dict(args.plan) or None
        principal = get_current_principal()
        if row.status not in ENDED_STATUSES:  # also while other steps run: nobody decides on what they have not seen
            require_approval_ids(args.approvals, args.run_id)
        decided = await self._service.submit_decision(
            args.run_id, args.decision, principal=principal, reason=args.words, approvals=args.approvals, plan=plan
        )
        await self.follow_or_cancel(args.run_id, decided.last_seq)
        return args.run_id

    async def answer(self, run_id: str, words: str, *, is_form: bool = False) -> str:
        """Starts the run that goes on with the user's answer to the question of `run_id`, and follows it as `run` does.

        `is_form`: see `start_reply_run`.
        """
        reply_id = await start_reply_run(self._intake, run_id, words, is_form=is_form)
        await self.follow_or_cancel(reply_id)
        return reply_id

    async def cancel(self, args: RunCancelInput) -> str:
        """Stops a run. Does nothing if it has ended."""
        row = await self._service.get_run(args.run_id, owner=get_current_owner())
        if row.status not in ENDED_STATUSES:
            await self._service.cancel_run(args.run_id, owner=get_current_owner(), reason="cancelled by the MCP client")
            await self._report_until_done(args.run_id, row.last_seq)
        return args.run_id

    async def follow_or_cancel(self, run_id: str, last_seq: int = 0) -> None:
        """Follows a run from event `last_seq` on. Cancels the run if the call is cancelled."""
        try:
            await self._report_until_done(run_id, last_seq)
        except asyncio.CancelledError:
            await finish_despite_cancellation(
                self._service.cancel_run(run_id, owner=get_current_owner(), reason="cancelled by the MCP client")
            )
            raise

    async def build_report(self, run_id: str) -> RunReport:
        """The current state of the run."""
        response = build_response(await self._service.read_events(run_id, owner=get_current_owner()))
        status = str(response.metadata["status"])
        approvals = response.metadata.get("approvals", [])
        return RunReport(
            run_id=run_id,
            status="working" if status in ("queued", "running") else status,
            response=response.response,
            steps=[step.model_dump(mode="json", exclude_none=True, exclude={"detail"}) for step in response.steps],
            citations=response.metadata["citations"],
            approvals=approvals if status == "awaiting_approval" else [],
            plan=response.metadata["plan"] or {},
        )

    async def _report_until_done(self, run_id: str, last_seq: int) -> None:
        """Sends each step as progress until the run ends, waits for a person or the client, or `wait_s` is used up."""
        if not self._seconds_left:
            return
        began = time.monotonic()
        following_it = contextlib.aclosing(
            self._service.follow_events(run_id, owner=get_current_owner(), waits=False, seen_seq=last_seq)
        )
        with (
            contextlib.suppress(TimeoutError, RequestRaisedError),
            self._service.client_requests.connect(run_id, self._ask_client),
        ):
            async with asyncio.timeout(self._seconds_left), following_it as events:
                following = asyncio.ensure_future(anext(events, None))
                try:
                    with self._steps.relay_tool_progress(self._service, run_id, "working") as attendance:
                        while (event := await attendance.wait_for(following)) is not None:
                            await self._steps.report_event(event, silent=event.seq <= last_seq)
                            following = asyncio.ensure_future(anext(events, None))
                finally:
                    await cancel_and_wait(following)
        self._seconds_left = max(0.0, self._seconds_left - (time.monotonic() - began))


AGENT_TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(
            "agent_run",
            "Give the agent a whole task of several steps, such as research, comparing documents, an answer with "
            "checked citations, or a change that a person approves: it plans, runs the steps with skills and tools, "
            "checks them and answers. For one step, another tool of this list is faster. Returns the answer with its "
            "steps; status 'working' means: call run_get with the run_id; 'awaiting_approval' or 'awaiting_input': "
            "show the user the response, then call run_respond with what they say.",
            AgentRunInput,
            ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True),
            AgentToolCall.run,
            may_ask_user=True,
        ),
        AgentTool(
            "run_get",
            "Get a run that agent_run started: its status, steps and answer so far.",
            RunGetInput,
            ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
            AgentToolCall.get,
        ),
        AgentTool(
            "run_respond",
            "Pass the user's decision to a run that waits for approval, and wait for its answer. An approved "
            "run changes things: never decide for the user.",
            RunRespondInput,
            ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=True),
            AgentToolCall.respond,
            may_ask_user=True,
        ),
        AgentTool(
            "run_cancel",
            "Stop a run that agent_run started. Its answer holds the results so far.",
            RunCancelInput,
            ToolAnnotations(read_only=False, destructive=True, idempotent=True, open_world=False),
            AgentToolCall.cancel,
        ),
    )
}
"""The agent's tools by name, in the order in which they are listed."""
