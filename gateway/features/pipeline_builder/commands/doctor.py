"""The checks of `stepgate doctor` for conversations that build pipelines."""

from collections.abc import AsyncIterator

from agent.core.errors import AgentError
from gateway.bootstrap import Stepgate
from gateway.cli.doctor_finding import DoctorFinding
from gateway.features.pipeline_builder.parts import get_builder


async def check_messages(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Yields whether Redis can be reached, where it keeps the messages."""
    if stepgate.settings.redis_url is None:
        return
    try:
        yield DoctorFinding("redis", True, await get_builder(stepgate).messages.check())
    except AgentError as error:
        without = "start it, or unset AGENT_REDIS_URL; until then conversations accept no messages"
        yield DoctorFinding("redis", False, error.message, without)
