"""`FeatureHost`: what the hooks of features get while the gateway is built, and the one loop over features."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.llm.tiers import ModelTiers
from agent.run_context.extensions import Extension
from agent.run_context.run import Run
from agent.runs.intake_ports import RequestHandler, RoomConversations, WebhookRegistry
from agent.runs.run_intake import RunIntake
from agent.runs.service import AgentService
from agent.storage.owners import OwnedStore
from agent.storage.sql import SqlClient
from agent.subagents.registry import RegisteredSubAgent
from agent.subagents.spawn import make_spawn_tools
from agent.tools import ToolRegistry
from gateway.access.authentication import Authenticator
from gateway.bootstrap_context import BuildContext
from gateway.bootstrap_memory import BuiltMemory
from gateway.bootstrap_tools import Tools
from gateway.configured_features import explain_feature_errors
from gateway.feature import Feature, Target
from gateway.feature_loader import KERNEL, VARIABLE, claim, find_hook, import_target, list_hooks
from gateway.feature_settings import read_settings

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.bootstrap_dispatch import Dispatch
    from gateway.bootstrap_rooms import LoadedRooms
    from mcp_tools.server.stored_prompts import StoredPrompts


S = TypeVar("S", bound=BaseModel)
KERNEL_COMPONENTS = ("store", "models", "memory", "gateway")
"""The components of the kernel that `/ready` asks."""


@dataclass(frozen=True, slots=True)
class RunServices:
    """The services that start runs. `models` changes while the gateway runs."""

    service: AgentService[Run]
    intake: RunIntake
    models: ModelTiers
    authenticator: Authenticator


@dataclass
class FeatureHost:
    """What the hooks of features build on. `tools` has the plain tools; those of features join once all have listed
    theirs."""

    context: BuildContext
    rooms: "LoadedRooms"
    memory: BuiltMemory
    tools: Tools
    get_gateway: "Callable[[], Stepgate]"
    """Gets the gateway; for what is called once it serves."""
    checks_rooms: bool = True
    """Whether a room that names something unknown stops the start."""
    parts: dict[str, Any] = field(default_factory=dict)
    services: dict[str, Any] = field(default_factory=dict)
    readiness_checks: "Mapping[str, Callable[[], Awaitable[str]]]" = field(default_factory=dict)
    """The components of features that `/ready` asks, by name."""

    @property
    def settings(self) -> Settings:
        """The settings of the gateway."""
        return self.context.settings

    def read_settings(self, model: type[S]) -> S:
        """A feature's own settings. Raises `ConfigError` if one is wrong."""
        return read_settings(model, self.settings)

    @property
    def statements(self) -> SqlClient:
        """Single SQL statements on the gateway's database, SQLite or PostgreSQL; `?` stands for a value."""
        return self.context.statements

    @property
    def registry(self) -> ToolRegistry:
        """The tools of the gateway."""
        return self.tools.registry

    def get_part(self, feature: str) -> Any:
        """Gets what a feature has built. Raises `ConfigError` if it is off."""
        return _get(self.parts, feature)

    def get_services(self, feature: str) -> Any:
        """Gets what a feature starts runs with. Raises `ConfigError` if it is off."""
        return _get(self.services, feature)

    async def build_parts(self) -> None:
        """Builds each feature's part, in the order of needs. A hook may be a coroutine function."""
        for name, build in self._import_hooks(lambda feature: feature.build):
            self.parts[name] = await _resolve(build(self))

    def register_tools(self) -> None:
        """Registers the tools of features, those that start their sub-agents, and those of installed packages."""
        self.registry.register(*self._collect(lambda feature: feature.tools))
        keep = self._find_one(lambda feature: feature.subagent_results, "the results of sub-agents")
        self.registry.register(*make_spawn_tools([one.kind for one in self.subagents], keep))
        self.context.installed.add_tools(self.registry)

    async def prepare(self) -> None:
        """Lets features look at what all of them have registered. Raises `ConfigError`."""
        for _, prepare in self._import_hooks(lambda feature: feature.prepare):
            await prepare(self)

    async def build_services(self, runs: RunServices) -> None:
        """Builds what features start runs with, and registers their kinds of requests and their components.

        Raises `ConfigError` if two components have one name.
        """
        for name, build in self._import_hooks(lambda feature: feature.build_services):
            self.services[name] = await _resolve(build(self, runs))
        handlers: list[RequestHandler[Any]] = self._collect(lambda feature: feature.request_handlers)
        conversations: RoomConversations | None = self._find_one(
            lambda feature: feature.room_conversations, "conversations of rooms"
        )
        runs.intake.add_kinds(handlers, conversations, self.webhooks)
        self.readiness_checks = self._collect_readiness_checks()

    @cached_property
    def subagents(self) -> list[RegisteredSubAgent]:
        """The sub-agents of all features."""
        return self._collect(lambda feature: feature.subagents)

    @cached_property
    def webhooks(self) -> WebhookRegistry | None:
        """The registry that posts the ends of runs, if a feature has one."""
        registry: WebhookRegistry | None = self._find_one(lambda feature: feature.webhooks, "webhooks")
        return registry

    def list_extensions(self) -> list[Extension]:
        """The extensions that features add to runs."""
        return self._collect(lambda feature: feature.extensions)

    def list_mcp_prompts(self) -> "list[StoredPrompts]":
        """The prompts that features offer over the MCP server."""
        return self._collect(lambda feature: feature.mcp_prompts)

    def list_owned_stores(self) -> list[OwnedStore]:
        """The stores of owners' things outside of tables."""
        return self._collect(lambda feature: feature.owned_stores)

    def find_dispatch(self) -> "Dispatch | None":
        """The dispatch that a feature offers for AGENT_DISPATCH=queue."""
        dispatch: Dispatch | None = self._find_one(lambda feature: feature.dispatch, "the dispatch")
        return dispatch

    @asynccontextmanager
    async def run_around(self) -> AsyncIterator[None]:
        """Runs what features do from before the first run until after the last one."""
        async with AsyncExitStack() as stack:
            for _, run_around in self._import_hooks(lambda feature: feature.around_runs):
                await stack.enter_async_context(run_around(self))
            yield

    @asynccontextmanager
    async def run_background(self) -> AsyncIterator[None]:
        """Runs what features do while the gateway serves; nothing in a process that only runs a command."""
        async with AsyncExitStack() as stack:
            if self.context.recover:
                for _, run_background in self._import_hooks(lambda feature: feature.background):
                    await stack.enter_async_context(run_background(self))
            yield

    def _import_hooks(self, choose: Callable[[Feature], Target | None]) -> list[tuple[str, Any]]:
        """The names of features with their hooks of one kind. Raises `ConfigError` if one cannot be imported."""
        with explain_feature_errors():
            return [(name, import_target(target)) for name, target in list_hooks(self.context.features, choose)]

    def _collect(self, choose: Callable[[Feature], Target | None]) -> list[Any]:
        items: list[Any] = []
        for _, list_items in self._import_hooks(choose):
            listed: Sequence[Any] = list_items(self)
            items += listed
        return items

    def _collect_readiness_checks(self) -> "dict[str, Callable[[], Awaitable[str]]]":
        checks: dict[str, Callable[[], Awaitable[str]]] = {}
        claims = dict.fromkeys(KERNEL_COMPONENTS, KERNEL)
        for feature, list_checks in self._import_hooks(lambda feature: feature.readiness):
            for name, check in list_checks(self).items():
                with explain_feature_errors():
                    claim(claims, name, feature, "the component")
                checks[name] = check
        return checks

    def _find_one(self, choose: Callable[[Feature], Target | None], noun: str) -> Any:
        """Calls the hook of the only feature that has it; None without one. Raises `ConfigError` if two do."""
        with explain_feature_errors():
            target = find_hook(self.context.features, choose, noun)
            hook = import_target(target) if target is not None else None
        return hook(self) if hook is not None else None


async def _resolve(built: Any) -> Any:
    return await built if hasattr(built, "__await__") else built


def _get(built: Mapping[str, Any], feature: str) -> Any:
    if feature not in built:
        raise ConfigError(f"the feature {feature!r} is off; {VARIABLE} chooses the features")
    return built[feature]
