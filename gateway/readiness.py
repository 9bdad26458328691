"""Whether requests can be served, and what stands in the way: for `/ready` and `stepgate doctor`."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.errors import AgentError, ModelError

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One line of `/ready` and `stepgate doctor`."""

    ok: bool
    detail: str


async def readiness(stepgate: "Stepgate") -> dict[str, ComponentStatus]:
    """Component by component. Models being down is no reason not to serve: the gateway then works by rules; it is
    reported all the same."""
    status = {
        "store": await _store(stepgate),
        "models": await _models(stepgate),
        "memory": await _told(stepgate.memory.check()),
        "gateway": _gateway(stepgate),
    }
    if stepgate.settings.redis_url is not None:
        status["redis"] = await _told(stepgate.conversations.builder.messages.check())
    for name, server in stepgate.servers.items():
        status[f"mcp:{name}"] = ComponentStatus(server.status in ("ready", "idle", "disabled"), server.standing)
    return status


async def _told(check: Awaitable[str]) -> ComponentStatus:
    """What a component says of itself, or what is wrong with it."""
    try:
        return ComponentStatus(True, await check)
    except AgentError as error:
        return ComponentStatus(False, error.message)


async def _store(stepgate: "Stepgate") -> ComponentStatus:
    try:
        await stepgate.journal.check()
    except AgentError as error:
        return ComponentStatus(False, error.message)
    if stepgate.settings.database_url is not None:
        return ComponentStatus(True, "PostgreSQL (AGENT_DATABASE_URL)")
    return ComponentStatus(True, f"SQLite at {stepgate.settings.database_path}")


async def _models(stepgate: "Stepgate") -> ComponentStatus:
    models = stepgate.models
    if models.client is None:
        return ComponentStatus(True, "no model is configured: rules mode (set AGENT_MODEL_FAST)")
    try:
        await models.client.check()
    except ModelError as error:
        return ComponentStatus(False, error.message)
    where = stepgate.settings.llm_base_url or "LiteLLM"
    return ComponentStatus(True, f"{where}: fast={models.fast}, high={models.high or models.fast}")


def _gateway(stepgate: "Stepgate") -> ComponentStatus:
    custody = stepgate.service.custody
    if custody.draining:
        return ComponentStatus(False, "draining: the gateway is stopping")
    return ComponentStatus(True, f"{custody.live_count} runs under way")
