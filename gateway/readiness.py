"""Readiness checks of every component, for `/ready` and `stepgate doctor`."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.errors import AgentError, ModelError
from gateway.feature_host import KERNEL_COMPONENTS

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One component's status."""

    ok: bool
    detail: str


async def check_readiness(stepgate: "Stepgate") -> dict[str, ComponentStatus]:
    """The status of every component.

    A model that is down is reported but does not stop the gateway from serving: it then works in rules mode.
    """
    own = (
        await _check_store(stepgate),
        await _check_models(stepgate),
        await _run_check(stepgate.memory.check()),
        _check_gateway(stepgate),
    )
    status = dict(zip(KERNEL_COMPONENTS, own, strict=True))
    for name, check in stepgate.host.readiness_checks.items():
        status[name] = await _run_check(check())
    for name, server in stepgate.servers.items():
        if server.config.room is not None:  # a matter of its room's owner, whose name others need not know
            continue
        status[f"mcp:{name}"] = ComponentStatus(server.status in ("ready", "idle", "disabled"), server.status_line)
    return status


async def _run_check(check: Awaitable[str]) -> ComponentStatus:
    """The result of a component's check, or its error."""
    try:
        return ComponentStatus(True, await check)
    except AgentError as error:
        return ComponentStatus(False, error.message)


async def _check_store(stepgate: "Stepgate") -> ComponentStatus:
    try:
        await stepgate.journal.check_writable()
    except AgentError as error:
        return ComponentStatus(False, error.message)
    if stepgate.settings.database_url is not None:
        return ComponentStatus(True, "PostgreSQL (AGENT_DATABASE_URL)")
    return ComponentStatus(True, f"SQLite at {stepgate.settings.database_path}")


async def _check_models(stepgate: "Stepgate") -> ComponentStatus:
    models = stepgate.models
    if models.client is None:
        return ComponentStatus(True, "no model is configured: rules mode (`stepgate models use`, or AGENT_MODEL_FAST)")
    try:
        await models.client.check()
    except ModelError as error:
        return ComponentStatus(False, error.message)
    where = next((one.base_url for one in models.configured if one.base_url), "LiteLLM")
    return ComponentStatus(True, f"{where}: fast={models.fast}, high={models.high or models.fast}")


def _check_gateway(stepgate: "Stepgate") -> ComponentStatus:
    worker = stepgate.service.worker
    if worker.draining:
        return ComponentStatus(False, "draining: the gateway is stopping")
    return ComponentStatus(True, f"{worker.live_count} runs in progress")
