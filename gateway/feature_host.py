"""`FeatureHost`: what the hooks of features get while the gateway is built, and the one loop over features."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.run_context.extensions import Extension
from agent.runs.run_intake import RequestHandler
from agent.storage.sql import SqlClient
from agent.subagents.registry import RegisteredSubAgent
from agent.tools import Tool, ToolRegistry
from gateway.bootstrap_context import BuildContext
from gateway.feature import Feature
from gateway.feature_loader import VARIABLE, import_target

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.bootstrap_rooms import LoadedRooms
    from mcp_tools.server.stored_prompts import StoredPrompts


@dataclass(slots=True)
class FeatureHost:
    """What the hooks of features build on. `registry` has the tools; other features' are there once all have listed
    theirs."""

    context: BuildContext
    rooms: "LoadedRooms"
    registry: ToolRegistry
    get_gateway: "Callable[[], Stepgate]"
    """Returns the gateway; for what is called once it serves."""
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings of the gateway."""
        return self.context.settings

    @property
    def statements(self) -> SqlClient:
        """Single SQL statements on the gateway's database, SQLite or PostgreSQL; `?` stands for a value."""
        return self.context.statements

    def get_part(self, name: str) -> Any:
        """Returns what a feature has built. Raises `ConfigError` if the feature is off."""
        return get_part(self.parts, name)

    async def build_parts(self) -> None:
        """Builds each feature's part, in the order of needs. A hook may be a coroutine function."""
        for feature in self.context.features:
            if feature.build is not None:
                built = import_target(feature.build)(self)
                self.parts[feature.name] = await built if hasattr(built, "__await__") else built

    def list_tools(self) -> list[Tool]:
        """Returns the tools of all features."""
        return self._collect(lambda feature: feature.tools)

    def list_subagents(self) -> list[RegisteredSubAgent]:
        """Returns the sub-agents of all features."""
        return self._collect(lambda feature: feature.subagents)

    def list_extensions(self) -> list[Extension]:
        """Returns what features add to runs."""
        return self._collect(lambda feature: feature.extensions)

    def list_request_handlers(self) -> list[RequestHandler[Any]]:
        """Returns the handlers of the features' own kinds of requests."""
        return self._collect(lambda feature: feature.request_handlers)

    def list_mcp_prompts(self) -> "list[StoredPrompts]":
        """Returns what features offer as prompts of the MCP server."""
        return self._collect(lambda feature: feature.mcp_prompts)

    @asynccontextmanager
    async def run_background(self) -> AsyncIterator[None]:
        """Runs what features do while the gateway serves."""
        async with AsyncExitStack() as stack:
            for feature in self.context.features:
                if feature.background is not None:
                    await stack.enter_async_context(import_target(feature.background)(self))
            yield

    def _collect(self, choose: Callable[[Feature], str | None]) -> list[Any]:
        found: list[Any] = []
        for feature in self.context.features:
            target = choose(feature)
            if target is not None:
                listed: Sequence[Any] = import_target(target)(self)
                found += listed
        return found


def get_part(parts: dict[str, Any], name: str) -> Any:
    """Returns what a feature has built. Raises `ConfigError` if the feature is off."""
    if name not in parts:
        raise ConfigError(f"the feature {name!r} is off; {VARIABLE} chooses the features")
    return parts[name]
