"""`RunExecutor`: drives a claimed run to its terminal event, or leaves it in a state another process can resume."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable

from agent.core.errors import AgentError, ConflictError, StaleEpochError, StoreError, ToolUnknownError
from agent.core.events import ApprovalRequested, CancelRequested, RunClaimed, RunFailed, RunSuspended, RunWaiting
from agent.core.events.run import CANCELLED_BY_CALLER
from agent.core.failures import AgentFailure
from agent.core.models import JsonObject, Plan
from agent.core.run_state import RunState
from agent.execution.signals import apply_signal, expire_approvals, revise_plan, validate_open_steps
from agent.execution.workflow import choose_next_stage, drive
from agent.planning.validate import finish_plan
from agent.run_context.engine import Engine
from agent.run_context.run import Run
from agent.storage.journal import Claim

log = logging.getLogger(__name__)


class RunExecutor:
    """Executes claimed runs on one engine."""

    def __init__(self, engine: Engine, worker: str, drive: Callable[[Run], Awaitable[None]] = drive) -> None:
        self._engine = engine
        self._worker = worker
        self._drive = drive

    def open_run(self, claim: Claim) -> Run:
        """The claimed run with its state, folded from its log."""
        return Run(self._engine, claim)

    async def execute_run(self, run: Run) -> None:
        """Drives a run to its end.

        If its caller is cancelled, the run stays resumable. A lost claim or a failing store ends the work without an
        event, because another process holds the log or the log is not writable.
        """
        run.start_clock()
        try:
            await run.load_feature_data()
            await run.redaction.load_stored_texts()
            await run.note(RunClaimed(worker=self._worker, resumed=run.epoch > 1))
            await self._drive_until_end_or_wait(run)
        except StaleEpochError:
            log.warning("run %s was claimed by another process; it goes on there", run.run_id)
        except ConflictError:
            log.warning("run %s has ended already", run.run_id)
        except StoreError as error:
            log.error("run %s stops here and stays resumable: %s", run.run_id, error.message)  # noqa: TRY400 - no defect
        except asyncio.CancelledError:
            await self._release(run)
            raise
        except AgentError as error:
            await self._record_failure(run, error.to_failure())
        except Exception:
            log.exception("run %s failed with an internal error", run.run_id)
            message = "an internal error ended this run; the gateway's log has the details"
            failure = AgentFailure(agent_id="gateway", error_code="ERR_INTERNAL", message=message, recoverable=False)
            await self._record_failure(run, failure)
        finally:
            run.close()

    async def release_run(self, run: Run) -> None:
        """Releases a run that did not start, so that another process can claim it."""
        try:
            await self._release(run)
        finally:
            run.close()

    async def fail_run(self, run: Run, failure: AgentFailure) -> None:
        """Ends a run that was not started with a failure."""
        try:
            await self._record_failure(run, failure)
        finally:
            run.close()

    async def cancel_run(self, run: Run, reason: str) -> None:
        """Stops a run of this process. Work in progress ends now, and the answer reports the known results."""
        if run.state.is_finished or run.state.cancel_request is not None:
            return
        await run.emit(CancelRequested(reason=reason))
        run.stop_requested.set()

    async def apply_signals(self, run: Run) -> bool:
        """Applies the signals that arrived since the last call, and those from before this process held the run.

        Returns False if the run is parked: the process that resumes it applies them.
        """
        async with run.signal_lock:
            if run.parked:
                return False
            for signal in await self._engine.journal.read_signals(run.run_id, after=run.last_signal):
                run.last_signal = signal.id
                if run.state.is_finished or run.state.cancel_request is not None:
                    continue
                if signal.kind == "cancel":
                    await self.cancel_run(run, str(signal.payload.get("reason") or CANCELLED_BY_CALLER))
                elif await apply_signal(run, signal):
                    run.stop_requested.set()
                run.decision_made.set()
        return True

    def require_asked_tools(self, state: RunState, requests: Iterable[ApprovalRequested]) -> None:
        """Raises `ToolUnknownError` if a call that is asked about names a tool that this process does not have."""
        registry, elsewhere = self._engine.registry, {skill.name for skill in self._engine.skills}
        elsewhere |= state.client_tool_names
        for name in (item.tool for request in requests for item in request.items):
            if name not in registry and name not in elsewhere:
                raise ToolUnknownError(
                    registry.get_withheld_reason(name, state.owner)
                    or f"{name!r} is not available now: {_explain_absence(name)}, or reject",
                    agent_id=name,
                )

    def validate_edited_plan(self, claim: Claim, plan: JsonObject) -> Plan:
        """The plan that a person edited, validated. Raises `BadRequestError`."""
        return revise_plan(Run(self._engine, claim), plan)

    def validate_steps(self, claim: Claim, plan: JsonObject, *, known: Collection[str], finish: bool) -> Plan:
        """The plan for a run that has not started, validated. Raises `BadRequestError`.

        `known` are steps that have results; `finish` adds the completion that the plan needs."""
        run = Run(self._engine, claim)
        valid = validate_open_steps(run, plan, known=known)
        if not finish:
            return valid
        needs = bool(known) or bool(run.room.persona) or run.room.citations
        return finish_plan(valid, needs_completion=needs, has_model=run.has_model, used_ids=known)

    async def _drive_until_end_or_wait(self, run: Run) -> None:
        """Drives the run until it ends or waits for a person. Parks a waiting run."""
        if not run.is_new:
            await self.apply_signals(run)
        while True:
            if run.state.pending_approvals:
                await expire_approvals(run)
            await self._drive(run)
            if run.state.is_finished:
                return
            last_signal, waiting = run.last_signal, run.state.pending_approvals
            await run.emit(RunWaiting(approvals=tuple(request.approval_id for request in waiting)))
            if await self._park(run, last_signal):
                return
            await self.apply_signals(run)

    async def _park(self, run: Run, last_signal: int) -> bool:
        """Releases a run that waits for a person. Returns False if a decision arrived after `last_signal`."""
        async with run.signal_lock:
            if run.last_signal != last_signal:  # applied since the run began to wait: nobody would resume it
                return False
            until = min((request.expires_at for request in run.state.pending_approvals), default=0.0)
            run.parked = run.parked or await self._engine.journal.park(
                run.run_id, run.epoch, until=until, after_signal=last_signal
            )
        return run.parked

    async def _record_failure(self, run: Run, failure: AgentFailure) -> None:
        failure = failure.model_copy(update={"stage": failure.stage or choose_next_stage(run.state) or ""})
        try:
            await run.emit(RunFailed(failure=failure))
        except AgentError as error:
            log.error("the failure of run %s could not be stored: %s", run.run_id, error.message)  # noqa: TRY400

    async def _release(self, run: Run) -> None:
        """Releases the run so that another process can claim it at once."""
        if run.state.is_finished:
            return
        try:
            last_signal = run.last_signal
            if run.state.status == "awaiting_approval" and await asyncio.shield(self._park(run, last_signal)):
                return
            await asyncio.shield(run.emit(RunSuspended(reason="the gateway is stopping")))
            await asyncio.shield(self._engine.journal.release(run.run_id, run.epoch))
        except AgentError as error:
            log.warning("run %s is left to its lease: %s", run.run_id, error.message)


def _explain_absence(tool: str) -> str:
    """Why a tool may be missing, and what to do. Only tools of MCP servers have a name with `__`."""
    server, is_foreign, _ = tool.partition("__")
    if is_foreign:
        return (
            f"the MCP server {server!r} does not offer it at the moment: it may be starting again, or was removed. "
            "The run stays waiting; approve once the server is back"
        )
    return (
        "the feature or the package that brings it is off or was removed. The run stays waiting; switch it on "
        "(AGENT_FEATURES) and approve then"
    )
