"""A call of one tool that its client waits for: told that it goes on, and ended when the client leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from agent.core.service import AgentService
from agent.execution.run import Run
from agent.tools import Tool
from mcp_tools import agent_tools
from mcp_tools.agent_tools import Steps, even_if_cancelled


@runtime_checkable
class Telling(Protocol):
    """A tool that says how far it is."""

    def followed(self, run_id: str, told: Callable[[str], Awaitable[None]]) -> AbstractContextManager[None]:
        """Have `told` hear lines about the progress of its calls in that run."""
        ...


class AttendedCall:
    """The run that carries out one call of `tool`. Nobody sees it in a list: without its client it has no purpose."""

    def __init__(self, service: AgentService[Run], run_id: str, steps: Steps, tool: Tool) -> None:
        self._service, self._run_id, self._steps, self._tool = service, run_id, steps, tool
        self._name = tool.spec.name

    async def finished(self, heard: int = 0) -> None:
        """Wait for its end, or for a person, with what the tool says of its progress, or else a sign of life every
        `HEARTBEAT_SECONDS`.

        Raises what `AgentService.finished` raises. The client that cancels the call cancels the run."""
        if not isinstance(self._tool, Telling):
            await self._ended(heard)
            return
        with self._tool.followed(self._run_id, self._tell):
            await self._ended(heard)

    async def _tell(self, line: str) -> None:
        await self._steps.tell(f"{self._name}: {line}")

    async def _ended(self, heard: int) -> None:
        ending = asyncio.ensure_future(self._service.finished(self._run_id, heard=heard))
        try:
            while not (await asyncio.wait([ending], timeout=agent_tools.HEARTBEAT_SECONDS))[0]:
                await self._steps.tell(self._steps.last or f"{self._name} is working")
            ending.result()
        except asyncio.CancelledError:
            await even_if_cancelled(self._service.cancel(self._run_id, reason="cancelled by the MCP client"))
            raise
        finally:
            ending.cancel()
            await asyncio.wait([ending])
