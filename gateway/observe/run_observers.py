"""Observers of runs for parts of the gateway that follow them: slots of parallel runs, the prober, and webhooks."""

from time import monotonic
from typing import Protocol

from agent.core.events import Event
from agent.core.run_state import RunState
from agent.run_context.engine import Observer
from agent.runs.intake_ports import WebhookRegistry
from gateway.access.run_concurrency import RELEASING_EVENTS, MeteredRunConcurrency


class Interruptible(Protocol):
    """Work on the model that gives way to runs, such as `IdleProber`."""

    active_at: float
    is_measuring: bool

    def interrupt(self) -> None:
        """Ends the call in progress."""


def observe_slots(run_concurrency: MeteredRunConcurrency) -> Observer:
    """Releases the slot of a run that has ended or is parked. Only runs with a key hold one."""

    def observe(state: RunState, event: Event) -> None:
        if type(event.body) in RELEASING_EVENTS and (key := state.api_key_id) is not None:
            run_concurrency.start_release(key, event.run_id)

    return observe


def observe_use_of_model(prober: Interruptible) -> Observer:
    """Keeps the prober from using the model while runs do."""

    def observe(_: RunState, __: Event) -> None:
        prober.active_at = monotonic()
        if prober.is_measuring:
            prober.interrupt()

    return observe


def observe_awaited_ends(webhooks: WebhookRegistry) -> Observer:
    """Calls the feature that posts the ends of runs for those that it waits for."""

    def observe(state: RunState, _: Event) -> None:
        if state.run_id in webhooks.awaited_runs:
            webhooks.notice_end(state.run_id)

    return observe
