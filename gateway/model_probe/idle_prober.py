"""`IdleProber`: warms and measures the model of this machine while the gateway has nothing to do.

Only endpoints on this machine are measured unasked: elsewhere tokens cost money. One call at a time, and none once a
run begins.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import monotonic
from urllib.parse import urlsplit

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError
from agent.llm.profile import choose_profile
from agent.llm.tiers import ConfiguredModel
from agent.storage.leases import HousekeepingLease
from gateway.access.authentication import is_loopback
from gateway.bootstrap_context import BuildContext
from gateway.live_models import LiveModels
from gateway.model_probe.measuring import BuildPrompt, ModelMeasurement

log = logging.getLogger(__name__)

IDLE_SECONDS = 60.0
"""How long nothing must have run before the model is measured."""
REST_SECONDS = 15.0
"""How long nothing must have run before prompts are read: what an endpoint has begun to read, the next request waits
for."""
CHECK_SECONDS = 1.0
LEASE_NAME = "model probe"
LEASE_SECONDS = 900.0
"""How long one process of several may measure before another one does."""
RETRY_SECONDS = 600.0
"""How long a model is left alone whose measurement has failed or stands."""


class IdleProber:
    """Works with the fast model if it is on this machine. A model that is new here reads at once the prompts for which
    the first requests would wait; one that was not measured, or has changed since, is measured."""

    def __init__(self, live: LiveModels, lease: HousekeepingLease) -> None:
        self._live = live
        self._lease = lease
        self.active_at = self._started_at = monotonic()
        """When a run was last at work (`monotonic`). An observer of runs sets it."""
        self.is_measuring = False
        """Whether a call of the model is in progress."""
        self._not_before = 0.0
        self._warmed: ConfiguredModel | None = None
        self._measurement: ModelMeasurement | None = None
        self._task: asyncio.Task[None] | None = None

    def interrupt(self) -> None:
        """Ends the call in progress: a run needs the model."""
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def watch(self, count_runs: Callable[[], int], build_decision: BuildPrompt) -> None:
        """Warms and measures whenever there is time and need, until it is cancelled. `count_runs` counts the runs in
        progress, `build_decision` builds the prompt of their first decision."""
        try:
            while True:
                await asyncio.sleep(CHECK_SECONDS)
                if count_runs():
                    self.active_at = monotonic()
                elif self.active_at == self._started_at or monotonic() - self.active_at > REST_SECONDS:
                    await self._warm_new_model(build_decision)
                now = monotonic()
                if now - self.active_at < IDLE_SECONDS or now < self._not_before:
                    continue
                model = self._find_model()
                if model is not None:
                    await self._run_interruptibly(self._measure(model))
        finally:
            if self._task is not None:
                await cancel_and_wait(self._task)
            if self._measurement is not None:
                await self._measurement.aclose()

    async def _run_interruptibly(self, work: Coroutine[object, object, None]) -> bool:
        """Whether the work has come to its end."""
        self._task = asyncio.create_task(work, name="work with an idle model")
        self.is_measuring = True
        await asyncio.wait({self._task})
        self.is_measuring = False
        return not self._task.cancelled()

    async def _warm_new_model(self, build_decision: BuildPrompt) -> None:
        """Warms a model that was not yet warmed. One that a run interrupts is warmed later."""
        model = self._find_local_model()
        if model is None or model == self._warmed:
            return
        is_small = choose_profile(self._live.settings.model_profile, self._live.tiers.measured).checks_answers
        if not is_small or await self._run_interruptibly(self._warm(model, build_decision)):
            self._warmed = model

    async def _warm(self, model: ConfiguredModel, build_decision: BuildPrompt) -> None:
        try:
            await (await self._open(model)).warm(build_decision)
        except AgentError as error:
            log.info("%s was not warmed: %s", model.model, error.message)
        except Exception:  # the border of a task
            log.exception("%s was not warmed", model.model)

    def _find_model(self) -> ConfiguredModel | None:
        """The fast model if it may be measured unasked."""
        return self._find_local_model() if self._live.settings.model_profile == "auto" else None

    def _find_local_model(self) -> ConfiguredModel | None:
        """The fast model if it is on this machine and may be asked unasked."""
        if self._live.settings.model_probe == "off":
            return None
        model = self._live.tiers.fast_model
        if model is not None and model.file is not None:
            return model
        host = urlsplit(model.base_url or "").hostname if model is not None else None
        return model if host is not None and is_loopback(host) else None

    async def _measure(self, model: ConfiguredModel) -> None:
        try:
            if not await self._lease.take():
                return
            measurement = await self._open(model)
            former_measurements = self._live.tiers.measured
            if (
                former_measurements is not None
                and former_measurements.is_complete
                and former_measurements.fingerprint == await measurement.read_fingerprint()
            ):
                self._not_before = monotonic() + RETRY_SECONDS
                return
            record = await measurement.run()
            log.info("%s was measured in %.0f s: it works in %s", model.model, record.seconds, record.profile.decides)
            self._not_before = monotonic() + RETRY_SECONDS
            await self._close()
        except AgentError as error:
            log.info("%s was not measured: %s", model.model, error.message)
            self._not_before = monotonic() + RETRY_SECONDS
            await self._close()
        except Exception:  # the border of a task: else it would be begun again at once, without a word
            log.exception("%s was not measured", model.model)
            self._not_before = monotonic() + RETRY_SECONDS
            await self._close()
        finally:
            await self._lease.release()

    async def _open(self, model: ConfiguredModel) -> ModelMeasurement:
        """The measurement that was interrupted, or a new one if the model is another one."""
        if self._measurement is not None and self._measurement.model == model:
            return self._measurement
        await self._close()
        self._measurement = ModelMeasurement(self._live, model)
        return self._measurement

    async def _close(self) -> None:
        if self._measurement is not None:
            await self._measurement.aclose()
            self._measurement = None


def build_prober(context: BuildContext, live: LiveModels) -> IdleProber:
    """The prober of this process. Of several processes with one store, one measures at a time."""
    lease = HousekeepingLease(
        context.statements, LEASE_NAME, holder=context.worker, seconds=LEASE_SECONDS, clock=context.store.clock
    )
    return IdleProber(live, lease)
