"""`AgentService`: start, decide on and cancel runs; reading them is `RunReader`. The only way into the engine."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.core.client_requests import ClientRequests
from agent.core.errors import AgentError, BadRequestError, ConflictError
from agent.core.events import (
    ApprovalDecided,
    CancelRequested,
    Event,
    GivenPlan,
    RunCreated,
)
from agent.core.events.run import CANCELLED_BY_CALLER
from agent.core.models import (
    ENDED_STATUSES,
    LOCAL_OWNER,
    AgentRequest,
    JsonObject,
    Plan,
    Room,
)
from agent.core.principal import LOCAL, Principal
from agent.core.progress import RunProgress
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import build_signal_payload
from agent.runs.rooms import Rooms
from agent.runs.run_origin import PLAIN, RunOrigin
from agent.runs.run_reader import RunReader
from agent.runs.run_worker import Executor, Live, RunWorker
from agent.storage.audit import NO_AUDIT, AuditAction, AuditEvent, AuditLog
from agent.storage.journal import Claim, Journal, RunRow


class RunConcurrency(Protocol):
    """Limits how many runs of an API key execute in parallel."""

    async def acquire(self, key: str, run_id: str, most: int) -> None:
        """Takes one of `most` slots. Raises `RateLimitError` if all are taken."""
        ...

    async def release(self, key: str, run_id: str) -> None:
        """Releases the slot of a run that was not started."""
        ...


@contextlib.asynccontextmanager
async def hold_run_slot(
    run_concurrency: RunConcurrency | None, principal: Principal, run_id: str
) -> AsyncIterator[None]:
    """Holds one of the key's parallel runs; releases it if the run cannot be started. Does nothing for a caller without
    such a limit. Raises `RateLimitError` if all are taken.
    """
    key, most = principal.key_id, principal.parallel_runs
    if run_concurrency is None or key is None or most is None:
        yield
        return
    await run_concurrency.acquire(key, run_id, most)
    try:
        yield
    except AgentError:
        await run_concurrency.release(key, run_id)
        raise


log = logging.getLogger(__name__)

Decision = Literal["approve", "reject", "answer"]
_ACTIONS: Mapping[Decision, AuditAction] = {
    "approve": "approval.approve",
    "reject": "approval.reject",
    "answer": "approval.answer",
}
RESUME_WAIT_SECONDS = 2.0
"""How long a decision waits until the run has resumed; another process may take a second to claim it."""


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """The run that answers a request. Its events up to `last_seq` happened before the request."""

    run_id: str
    owner: str
    last_seq: int = 0


def make_run_id() -> str:
    """A new run id. Later ids sort after earlier ones: milliseconds, then 80 random bits."""
    return f"run_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


async def _allow_any_cost(key: str, request: AgentRequest, room: Room) -> None:
    return


async def _list_nothing(principal: Principal) -> tuple[str, ...]:
    return ()


def _keep_request(request: AgentRequest) -> AgentRequest:
    return request


@dataclass(frozen=True, slots=True)
class Admission:
    """What a request has to pass before its run is stored, and what is recorded with the run."""

    validate: Callable[[AgentRequest, Room, str | None], None]
    """Raises `BadRequestError` or `TooLargeError` for a request that cannot be executed."""
    redact_request: Callable[[AgentRequest], AgentRequest] = _keep_request
    """The request without secrets of this gateway, as it may be stored."""
    check_quota: Callable[[str, AgentRequest, Room], Awaitable[None]] = _allow_any_cost
    """Raises `RateLimitError` if a key has no tokens left this minute."""
    list_unshared: Callable[[Principal], Awaitable[tuple[str, ...]]] = _list_nothing
    """The sources of documents that only the caller can read (`gateway/access/unshared_sources.py`)."""
    list_approval_exempt: Callable[[], tuple[str, ...]] = tuple
    """The tools whose changes nobody is asked about."""
    run_concurrency: RunConcurrency | None = None


class AgentService(RunReader[Live]):
    """The runs of this gateway."""

    def __init__(
        self,
        journal: Journal,
        worker: RunWorker[Live],
        executor: Executor[Live],
        rooms: Rooms,
        admission: Admission,
        *,
        audit: AuditLog = NO_AUDIT,
        progress: RunProgress | None = None,
        client_requests: ClientRequests | None = None,
    ) -> None:
        super().__init__(journal, worker)
        self.progress = progress or RunProgress()
        """Progress messages of the runs that this process executes."""
        self.client_requests = client_requests or ClientRequests()
        """Requests of tools to the clients that wait for these runs."""
        self._audit = audit
        self._admission = admission
        self._executor = executor
        self.rooms = rooms

    def admit(self, request: AgentRequest, owner: str | None = None) -> Room:
        """The room that will serve the request, one that `owner` may use.

        Raises `RoomUnknownError`, `BadRequestError` and `TooLargeError`.
        """
        room = self.rooms.get(request.room, owner)
        self._admission.validate(request, room, owner)
        return room

    async def start_run(
        self,
        request: AgentRequest,
        principal: Principal = LOCAL,
        *,
        room: Room | None = None,
        run_id: str | None = None,
        origin: RunOrigin = PLAIN,
    ) -> str:
        """Stores and starts a run for the request, and returns its id.

        `room` is the result of `admit`, if the caller has called it. `run_id` is an id from `make_run_id` that was
        recorded before.

        Raises what `admit` raises; `RateLimitError` if the key has no tokens left this minute or too many parallel
        runs; `BusyError` if draining or full; `StoreError`.
        """
        room = room or self.admit(request, principal.owner)
        request = self.redact_request(principal.restrict_request(request))
        if principal.key_id is not None:
            await self._admission.check_quota(principal.key_id, request, room)
        run_id = run_id or make_run_id()
        # Redacted as metadata is: no text of a request is stored with this gateway's secrets.
        wire_request = self.redact_json(origin.wire_request) if origin.wire_request else {}
        given = origin.given
        if given is not None:
            given = GivenPlan.model_validate(self.redact_json(given.model_dump(mode="json")))
        body = RunCreated(
            request=request,
            room=room,
            owner=principal.owner,
            key=principal.key_id,
            hidden=origin.hidden,
            one_off=origin.one_off,
            tainted=origin.tainted,
            prompt_addresses=origin.prompt_addresses,
            own_conversation=origin.own_conversation,
            wire_request=wire_request,
            given=given,
            may_skip_approval=principal.may_skip_approval,
            scopes=None if principal.scopes is None else tuple(sorted(principal.scopes)),
            tools=principal.tools,
            unshared=await self._admission.list_unshared(principal) if room.guard_output.pii == "auto" else (),
            approval_exempt=self._admission.list_approval_exempt(),
            withheld=origin.withheld,
        )
        async with hold_run_slot(self._admission.run_concurrency, principal, run_id):
            await self.worker.create_run(run_id, body)
        return run_id

    def redact_request(self, request: AgentRequest) -> AgentRequest:
        """The request without secrets of this gateway, as it may be stored."""
        return self._admission.redact_request(request)

    def redact_json(self, value: JsonObject) -> JsonObject:
        """The value without secrets of this gateway, as it may be stored."""
        return self.redact_request(AgentRequest(metadata=value)).metadata

    def validate_steps(
        self, request: AgentRequest, room: Room, owner: str, plan: JsonObject, *, known: Collection[str], finish: bool
    ) -> Plan:
        """The plan for a run of this request, validated. Raises `BadRequestError` with every problem."""
        created = Event("run_new", 1, 0, 0.0, RunCreated(request=request, room=room, owner=owner))
        return self._executor.validate_steps(Claim("run_new", 0, (created,)), plan, known=known, finish=finish)

    async def cancel_run(self, run_id: str, *, owner: str = LOCAL_OWNER, reason: str = CANCELLED_BY_CALLER) -> None:
        """Cancels a run through a stored signal, so that a crash does not lose it.

        Raises `NotFoundError`, and `ConflictError` for a run that has ended.
        """
        row = await self._journal.get_run(run_id, owner=owner)
        if row.status in ENDED_STATUSES:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        await self._journal.send_signal(run_id, "cancel", {"reason": reason})
        await self.worker.process_cancel(run_id)

    async def submit_decision(
        self,
        run_id: str,
        decision: Decision,
        *,
        principal: Principal = LOCAL,
        reason: str = "",
        approvals: Sequence[str] = (),
        plan: JsonObject | None = None,
    ) -> AcceptedRun:
        """Submits a person's decision on the named `approvals`, or on all open ones.

        `plan` is the plan as edited. Raises `ScopeError` if the principal may not decide, whichever door they came by;
        `NotFoundError`; `ConflictError` if nothing (or one of those named) is
        still open or another decision has just been made; `BadRequestError` for an invalid plan, and for one beside a
        decision on single calls; `ToolUnknownError` if a tool to approve is not there now, as while its feature is off;
        `StoreError` if the decision cannot be recorded. The run waits on then: nothing has changed.
        """
        principal.require_approval_right()
        row = await self._journal.get_run(run_id, owner=principal.owner)
        events = await self._journal.read_events(run_id)
        state = fold(run_id, events)
        waiting = state.list_open_approvals(time.time())
        if row.status in ENDED_STATUSES or not waiting:
            raise ConflictError(f"run {run_id!r} is not waiting for approval (it is {row.status})")
        open_ids = [approval.approval_id for approval in waiting]
        closed_ids = [name for name in approvals if name not in open_ids]
        if closed_ids:
            raise ConflictError(f"{closed_ids[0]!r} is no longer open; the open ones are {', '.join(open_ids)}")
        if plan is not None:
            if not any(one.call_id is None for one in waiting if one.approval_id in (approvals or open_ids)):
                message = "plan: the run waits for decisions on single calls, not on its plan; approve or reject them"
                raise BadRequestError(message, param="plan")
            edited = self._executor.validate_edited_plan(Claim(run_id, row.epoch, tuple(events)), plan)
            _require_added_tools(principal, state, edited)
        elif decision == "approve":
            to_approve = [one for one in waiting if one.approval_id in (approvals or open_ids)]
            self._executor.require_asked_tools(state, to_approve)
        decided_ids, who = list(approvals) or open_ids, principal.name
        payload = build_signal_payload(decided_ids, by=who, reason=reason, plan=plan)
        detail: JsonObject = {"approvals": [*decided_ids], "plan_edited": plan is not None}
        record = self._audit.to_row(AuditEvent(_ACTIONS[decision], run_id, owner=row.owner, by=who, detail=detail))
        await self._journal.send_signal(run_id, decision, payload, record=record)
        await self.worker.process_signals(run_id)
        return AcceptedRun(run_id, row.owner, row.last_seq)

    async def wait_until_resumed(self, decided: AcceptedRun) -> RunRow:
        """The run's row once the decision is in its log, or after `RESUME_WAIT_SECONDS`."""
        after = decided.last_seq
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RESUME_WAIT_SECONDS):
                while True:
                    for event in await self._journal.read_events(decided.run_id, after=after):
                        after = event.seq
                        if isinstance(event.body, ApprovalDecided | CancelRequested) or event.body.terminal:
                            return await self.get_run(decided.run_id, owner=decided.owner)
                    await self._journal.wait_for_events(decided.run_id, after=after, timeout_s=RESUME_WAIT_SECONDS)
        return await self.get_run(decided.run_id, owner=decided.owner)

    async def resume_run(self, run_id: str, *, owner: str = LOCAL_OWNER) -> None:
        """Claims an unfinished run and continues it. Raises `ConflictError` if it has ended or another process executes
        it.
        """
        row = await self._journal.get_run(run_id, owner=owner)
        if row.status in ENDED_STATUSES:
            raise ConflictError(f"run {run_id!r} has ended already ({row.status})")
        if not await self.worker.resume_run(run_id):
            raise ConflictError(f"run {run_id!r} is executed by another process ({row.worker})")


def _require_added_tools(principal: Principal, state: RunState, edited: Plan) -> None:
    """Raises `ScopeError` if a plan that the principal edited calls something that the run's plan did not, with a tool
    that the principal's key does not allow. The run may be that of a key which allows more.
    """
    planned = [(step.tool, step.args, step.tools) for step in state.plan_steps]
    for step in edited.steps:
        if not step.is_work or (step.tool, step.args, step.tools) in planned:
            continue
        # A key's list holds the gateway's tools: no skill, and nothing that the client runs itself.
        for tool in (step.tools or ()) if step.action == "skill" else (step.tool,):
            if tool not in state.client_tool_names:
                principal.require_tool(tool)
