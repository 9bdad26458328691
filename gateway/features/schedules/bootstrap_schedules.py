"""The part of the composition root for schedules and webhooks."""

from dataclasses import dataclass

from agent.storage.credentials import Credentials
from gateway.feature_host import FeatureHost, RunServices
from gateway.features.protocols.parts import get_tasks
from gateway.features.schedules.engine.schedule_store import ScheduleStore
from gateway.features.schedules.engine.service import ScheduleService
from gateway.features.schedules.engine.ticker import ScheduleTicker
from gateway.features.schedules.engine.webhook_outbox import WebhookOutbox
from gateway.features.schedules.engine.webhooks import WebhookSender
from gateway.features.schedules.parts import get_webhooks
from gateway.features.schedules.schedule_callers import ScheduleCallers


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules, with what starts their runs."""

    service: ScheduleService
    ticker: ScheduleTicker

    @property
    def store(self) -> ScheduleStore:
        """The stored schedules."""
        return self.service.store


def build_webhooks(host: FeatureHost) -> WebhookSender:
    """The sender of webhooks. It reads the logs of runs when one is sent."""
    context, settings = host.context, host.settings
    return WebhookSender(
        WebhookOutbox(context.statements, context.store.clock),
        context.client,
        Credentials(settings.credentials_file),
        lambda: host.get_gateway().service,
        run_url=settings.browser_url or "",
        timeout_s=settings.webhook_timeout_s,
        clock=context.store.clock,
    )


def build_schedules(host: FeatureHost, runs: RunServices) -> Schedules:
    """The schedules of the gateway."""
    context, settings, clock = host.context, host.settings, host.context.store.clock
    service, tasks, intake = runs.service, get_tasks(host), runs.intake
    store = ScheduleStore(context.statements, clock)
    callers = ScheduleCallers(context.keys, runs.authenticator)
    ticks = context.metrics.make_counter("schedule_ticks_total", "Ticks of schedules, by what was done.", "outcome")
    ticker = ScheduleTicker(
        store,
        service,
        tasks,
        intake,
        callers.authorize,
        clock=clock,
        count=lambda outcome, number: ticks.labels(outcome).inc(number),
    )
    made = ScheduleService(
        store,
        service,
        tasks,
        intake,
        check_webhook=get_webhooks(host).check,
        notify=ticker.wake,
        timezone=settings.timezone,
        most=settings.schedules_per_owner,
        clock=clock,
    )
    return Schedules(made, ticker)
