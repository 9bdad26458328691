"""The part of the composition root for schedules and webhooks."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.run_context.run import Run
from agent.runs.service import AgentService
from agent.storage.credentials import Credentials
from gateway.auth.authentication import Authenticator
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_runs import Intakes
from gateway.features.schedules.engine.schedule_store import ScheduleStore
from gateway.features.schedules.engine.service import ScheduleService
from gateway.features.schedules.engine.ticker import ScheduleTicker
from gateway.features.schedules.engine.webhook_outbox import WebhookOutbox
from gateway.features.schedules.engine.webhooks.sender import WebhookSender
from gateway.features.schedules.schedule_callers import ScheduleCallers


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules, with what starts their runs and posts their ends."""

    service: ScheduleService
    ticker: ScheduleTicker
    webhooks: WebhookSender

    @property
    def store(self) -> ScheduleStore:
        """The stored schedules."""
        return self.service.store

    @asynccontextmanager
    async def send_webhooks(self, *, active: bool) -> AsyncIterator[None]:
        """Sends webhooks while entered, unless this process only runs a command."""
        if not active:
            yield
            return
        async with self.webhooks.run():
            yield

    @asynccontextmanager
    async def start_ticks(self, *, active: bool) -> AsyncIterator[None]:
        """Starts runs at their ticks while entered, unless this process only runs a command."""
        if not active:
            yield
            return
        async with self.ticker.run():
            yield


def build_webhooks(context: BuildContext, get_service: Callable[[], AgentService[Run]]) -> WebhookSender:
    """Returns the sender of webhooks. `get_service` is called when one is sent."""
    settings = context.settings
    return WebhookSender(
        WebhookOutbox(context.statements, context.store.clock),
        context.client,
        Credentials(settings.credentials_file),
        get_service,
        run_url=settings.browser_url or "",
        timeout_s=settings.webhook_timeout_s,
        clock=context.store.clock,
    )


def build_schedules(
    context: BuildContext,
    service: AgentService[Run],
    intakes: Intakes,
    webhooks: WebhookSender,
    authenticator: Authenticator,
) -> Schedules:
    """Returns the schedules of the gateway."""
    settings, tasks, intake = context.settings, intakes.tasks, intakes.intake
    store = ScheduleStore(context.statements, context.store.clock)
    callers = ScheduleCallers(context.keys, authenticator)
    ticker = ScheduleTicker(
        store, service, tasks, intake, callers.authorize, clock=context.store.clock, count=context.metrics.count_ticks
    )
    made = ScheduleService(
        store,
        service,
        tasks,
        intake,
        check_webhook=webhooks.check,
        notify=ticker.wake,
        timezone=settings.timezone,
        most=settings.schedules_per_owner,
        clock=context.store.clock,
    )
    return Schedules(made, ticker, webhooks)
