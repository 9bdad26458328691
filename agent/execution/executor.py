"""`RunExecutor`: from a claim to the terminal event, and what becomes of a run that cannot get there here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agent.core.errors import AgentError, AgentFailure, ConflictError, StaleEpochError, StoreError
from agent.core.events import CancelRequested, RunClaimed, RunFailed, RunSuspended, RunWaiting
from agent.core.journal import Claim
from agent.core.models import JsonObject, Plan
from agent.execution.decisions import expire, obey, revised
from agent.execution.run import Engine, Run
from agent.execution.workflow import drive

log = logging.getLogger(__name__)


class RunExecutor:
    """Carries out claimed runs on one engine."""

    def __init__(self, engine: Engine, worker: str, drive: Callable[[Run], Awaitable[None]] = drive) -> None:
        self._engine = engine
        self._worker = worker
        self._drive = drive

    def open(self, claim: Claim) -> Run:
        """The claimed run, folded and ready to be followed."""
        return Run(self._engine, claim)

    async def carry_out(self, run: Run) -> None:
        """Drive a run to its end. A cancelled caller leaves it resumable; a lost claim or a failing store ends the
        work here without a word in the log, because the log is no longer ours or cannot be written."""
        run.begin()
        try:
            await run.note(RunClaimed(worker=self._worker, resumed=run.epoch > 1))
            await self._drive_or_wait(run)
        except StaleEpochError:
            log.warning("run %s was claimed by another process; it goes on there", run.run_id)
        except ConflictError:
            log.warning("run %s has ended already", run.run_id)
        except StoreError as error:
            log.error("run %s is left to be resumed: %s", run.run_id, error.message)  # noqa: TRY400 - no defect
        except asyncio.CancelledError:
            await self._let_go(run)
            raise
        except AgentError as error:
            await self._fail(run, error.failure())
        except Exception:
            log.exception("run %s failed by a defect", run.run_id)
            message = "a defect of Stepgate ended this run; the log of the gateway has the details"
            failure = AgentFailure(agent_id="gateway", error_code="ERR_INTERNAL", message=message, recoverable=False)
            await self._fail(run, failure)
        finally:
            run.close()

    async def let_go(self, run: Run) -> None:
        """Leave a run that was not begun to whoever comes next."""
        try:
            await self._let_go(run)
        finally:
            run.close()

    async def cancel(self, run: Run, reason: str) -> None:
        """Stop a run of this process: what is under way ends now, and the answer says what is known."""
        if run.state.finished or run.state.cancel is not None:
            return
        await run.emit(CancelRequested(reason=reason))
        run.stopping.set()

    async def obey(self, run: Run) -> bool:
        """Take up what was said to the run since it was last looked at, also while nobody held it.

        False once it has been put down to wait: whoever takes it up then has to obey."""
        async with run.hearing:
            if run.parked:
                return False
            for signal in await self._engine.journal.take_signals(run.run_id, after=run.last_signal):
                run.last_signal = signal.id
                if run.state.finished or run.state.cancel is not None:
                    continue
                if signal.kind == "cancel":
                    await self.cancel(run, str(signal.payload.get("reason") or "cancelled by the caller"))
                elif await obey(run, signal):
                    run.stopping.set()
                run.nudged.set()
        return True

    def review(self, claim: Claim, plan: JsonObject) -> Plan:
        """The plan that a person's edit makes. Raises `BadRequestError`."""
        return revised(Run(self._engine, claim), plan)

    async def _drive_or_wait(self, run: Run) -> None:
        """To the end, or until only a person can say how it goes on: then the run is put down, and nobody holds it."""
        while True:
            await self.obey(run)
            await expire(run)
            await self._drive(run)
            if run.state.finished:
                return
            waiting = run.state.waiting
            await run.emit(RunWaiting(approvals=tuple(asked.approval_id for asked in waiting)))
            if await self._put_down(run):
                return

    async def _put_down(self, run: Run) -> bool:
        """Give the run out of hand while it waits for a person; False when they have spoken meanwhile."""
        until = min((asked.expires_at for asked in run.state.waiting), default=0.0)
        async with run.hearing:
            heard = run.last_signal
            run.parked = run.parked or await self._engine.journal.park(
                run.run_id, run.epoch, until=until, after_signal=heard
            )
        return run.parked

    async def _fail(self, run: Run, failure: AgentFailure) -> None:
        try:
            await run.emit(RunFailed(failure=failure))
        except AgentError as error:
            log.error("the failure of run %s could not be stored: %s", run.run_id, error.message)  # noqa: TRY400

    async def _let_go(self, run: Run) -> None:
        """Leave the run to be claimed at once by whoever comes next."""
        if run.state.finished:
            return
        try:
            if run.state.status == "awaiting_approval" and await asyncio.shield(self._put_down(run)):
                return
            await asyncio.shield(run.emit(RunSuspended(reason="the gateway is stopping")))
            await asyncio.shield(self._engine.journal.release(run.run_id, run.epoch))
        except AgentError as error:
            log.warning("run %s is left to its lease: %s", run.run_id, error.message)
