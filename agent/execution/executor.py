"""`RunExecutor`: from a claim to the terminal event, and what becomes of a run that cannot get there here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agent.core.errors import AgentError, AgentFailure, ConflictError, StaleEpochError, StoreError
from agent.core.events import CancelRequested, RunClaimed, RunFailed, RunSuspended
from agent.core.journal import Claim
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
            await run.emit(RunClaimed(worker=self._worker, resumed=run.epoch > 1))
            await self._obey_signals(run)
            await self._drive(run)
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

    async def _obey_signals(self, run: Run) -> None:
        """Take up a cancel that arrived while nobody held the run."""
        for signal in await self._engine.journal.take_signals(run.run_id):
            if signal.kind == "cancel":
                await self.cancel(run, str(signal.payload.get("reason") or "cancelled by the caller"))

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
            await asyncio.shield(run.emit(RunSuspended(reason="the gateway is stopping")))
            await asyncio.shield(self._engine.journal.release(run.run_id, run.epoch))
        except AgentError as error:
            log.warning("run %s is left to its lease: %s", run.run_id, error.message)
