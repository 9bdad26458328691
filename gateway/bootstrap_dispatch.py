"""The dispatch's part of the composition root: which process executes a run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.core.errors import ConfigError
from agent.run_context.run import Run
from agent.runs.dispatch import Dispatcher
from agent.runs.local_dispatch import LocalDispatcher
from agent.runs.run_worker import RunWorker, WorkerFactory
from gateway.bootstrap_context import BuildContext
from gateway.feature_host import FeatureHost
from gateway.feature_loader import VARIABLE


@dataclass(frozen=True, slots=True)
class Dispatch:
    """How work reaches processes. The fields without a value are for a dispatch that shares work."""

    dispatcher: Dispatcher
    make_worker: WorkerFactory[Run] | None = None
    """None where each process executes the runs that it accepts."""
    register_worker: Callable[[RunWorker[Run]], None] | None = None
    """Has jobs of runs handled by this process's worker."""
    refresh_metrics: Callable[[], Awaitable[None]] | None = None
    """Called before the metrics are shown."""


def build_dispatch(context: BuildContext, host: FeatureHost) -> Dispatch:
    """The dispatch that AGENT_DISPATCH chooses. Raises `ConfigError` if the feature that offers it is off."""
    if context.settings.dispatch == "local":
        local = LocalDispatcher()
        context.stack.push_async_callback(local.aclose)
        return Dispatch(local)
    dispatch = host.find_dispatch()
    if dispatch is None:
        raise ConfigError(
            f"AGENT_DISPATCH: the queue needs the feature 'fleet', and {VARIABLE} leaves it out; switch it on, or "
            "leave AGENT_DISPATCH at `local`"
        )
    return dispatch
