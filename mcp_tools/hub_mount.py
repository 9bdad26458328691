"""What of a foreign server's tools is in the registry: those that can be used, and are as a person accepted them."""

import json
import logging
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import mcp_types as types

from agent.core.errors import AgentError, ToolQuarantinedError
from agent.tools import ToolRegistry
from mcp_tools.hub_resources import is_ours
from mcp_tools.hub_tool import McpTool, ToolServer, arguments_of, definition_of, mounted_name, tool_problem
from mcp_tools.pins import Definition, PinPolicy, ServerPins
from mcp_tools.pins_store import Pinning, PinRow, PinsDamagedError
from mcp_tools.sanitize import escaped

log = logging.getLogger(__name__)


class Mount:
    """The tools of one server: what it offers, what of that is in use, and what waits for a person."""

    def __init__(self, server: ToolServer, registry: ToolRegistry, cache: Path, pinning: Pinning | None) -> None:
        self._server = server
        self._registry = registry
        self._cache = cache
        self._pinning = pinning if pinning is not None and (server.config.pin or pinning.policy) != "off" else None
        self._policy: PinPolicy = server.config.pin or (pinning.policy if pinning is not None else "off")
        self._offers: tuple[types.Tool, ...] = ()
        self._definitions: dict[str, Definition] = {}
        self._revision = 0
        self._damage = ""
        self._left_out: tuple[str, ...] = ()
        self._unheeded: tuple[str, ...] = ()
        self.tools: tuple[types.Tool, ...] = ()
        """Those in use."""
        self.quarantined: Mapping[str, str] = {}
        """Those that may not be used, by name, and why."""

    @property
    def faults(self) -> str:
        """What is wrong with the server's pins or its tools, in one line; empty where nothing is."""
        return "; ".join(filter(None, (self._damage, *self._left_out, *self._unheeded)))

    async def take(self, tools: Iterable[types.Tool]) -> None:
        """Mount what the server offers now as far as it is accepted; the rest goes into quarantine.

        Raises `StoreError`: then what was mounted stays."""
        self._offers = self._sound(tools)
        await self._settle()
        self._remember()

    async def look(self) -> None:
        """Take up what a person has decided since, here or in another process. A store that fails leaves what they had
        accepted before."""
        if self._pinning is None:
            return
        store, name = self._pinning.store, self._server.name
        try:
            if (await store.revision(name) or 0) == self._revision:
                return
            row = await store.read(name)
            if row is None or any(tool.name not in row.pins.tools for tool in self._offers):
                await self._settle()
            else:  # only read: two gateways that are offered different things would write against each other
                self._mount_as(row)
        except PinsDamagedError as error:
            await self._close(error)
        except AgentError as error:
            log.warning("the pins of the MCP server %r are as they were: %s", name, error.message)

    async def recall(self) -> None:
        """Mount the last good list, as far as it is accepted. Raises `StoreError`."""
        self._offers = self._sound(self._remembered())
        if self._pinning is None:
            self._mount(self._offers, {})
            return
        try:
            self._mount_as(await self._pinning.store.read(self._server.name) or PinRow(0, ServerPins()))
        except PinsDamagedError as error:
            await self._close(error)

    def must_be(self, tool: str, definition: Definition) -> None:
        """Raise `ToolQuarantinedError` unless the tool is in use as it was defined when the caller got hold of it: a
        run may have had it since before it changed."""
        if self._definitions.get(tool) != definition:
            refusal = self._refusal(tool, self.quarantined.get(tool, "has changed"))
            raise ToolQuarantinedError(refusal, agent_id=self._name_of(tool))

    def _name_of(self, tool: str) -> str:
        return mounted_name(self._server.name, self._server.config.tools.called(tool))

    def _sound(self, tools: Iterable[types.Tool]) -> tuple[types.Tool, ...]:
        """The tools that are wanted and can be used; of two with one name the first."""
        wanted: dict[str, types.Tool] = {}
        for tool in tools:
            if self._server.config.tools.admits(tool.name):
                wanted.setdefault(tool.name, tool)
        problems = {name: tool_problem(tool) for name, tool in wanted.items()}
        self._heed(wanted)
        left_out = tuple(f"{escaped(name)[:100]}: {why}" for name, why in problems.items() if why is not None)
        for line in left_out:
            if line not in self._left_out:  # once, not at every connection
                log.warning("MCP server %r: a tool is left out, %s", self._server.name, line)
        self._left_out = left_out
        return tuple(tool for name, tool in wanted.items() if problems[name] is None)

    def _heed(self, wanted: Mapping[str, types.Tool]) -> None:
        """Tell what of the operator's wishes about these tools cannot be done, once."""
        offered = {name: arguments_of(tool) for name, tool in wanted.items()}
        told = tuple(self._server.config.tools.unheeded(offered)) if offered else ()
        for line in told:
            if line not in self._unheeded:
                log.warning("MCP server %r: %s", self._server.name, line)
        self._unheeded = told

    async def _settle(self) -> None:
        """Hold what is offered to the pins, and keep what is new about it."""
        if self._pinning is None:
            self._mount(self._offers, {})
            return
        offers = {tool.name: definition_of(tool) for tool in self._offers}
        try:
            self._mount_as(await self._pinning.store.offer(self._server.name, offers, self._policy))
        except PinsDamagedError as error:
            await self._close(error)

    def _mount_as(self, row: PinRow) -> None:
        """Mount those of the offers that these pins admit."""
        self._revision, self._damage = row.revision, ""
        admitted = (tool for tool in self._offers if row.pins.admits(tool.name, definition_of(tool)))
        self._mount(tuple(admitted), row.pins.withheld)

    async def _close(self, error: PinsDamagedError) -> None:
        """Use none of the tools: what was accepted of them cannot be known."""
        log.error("%s", error.message)
        self._damage = error.message
        self._mount((), {tool.name: "has pins that cannot be read" for tool in self._offers})
        if self._pinning is not None:
            self._revision = await self._pinning.store.revision(self._server.name) or 0

    def _mount(self, tools: tuple[types.Tool, ...], quarantined: Mapping[str, str]) -> None:
        """Put the tools into the registry in place of the earlier ones, and have it refuse those in quarantine."""
        for name in sorted(quarantined.keys() - self.quarantined.keys()):
            log.warning("%s", self._refusal(name, quarantined[name]))
        self.tools, self.quarantined = tools, dict(quarantined)
        self._definitions = {tool.name: definition_of(tool) for tool in tools}
        taken: dict[str, McpTool] = {}
        for tool in tools:
            mounted = McpTool(self._server, tool, believed=is_ours(self._definitions[tool.name]))
            taken.setdefault(mounted.spec.name, mounted)
        self._registry.replace(self._server.origin, taken.values())
        refused = {self._name_of(tool): self._refusal(tool, why) for tool, why in quarantined.items()}
        self._registry.withhold(self._server.origin, refused)

    def _refusal(self, tool: str, why: str) -> str:
        """What whoever calls a tool in quarantine is told, and the log."""
        server = self._server.name
        return (
            f"the tool {escaped(tool)[:100]!r} of the MCP server {server!r} {why}; it is not used until a person has "
            f"looked at it: `stepgate mcp-servers review {shlex.quote(server)}`"
        )

    def _remember(self) -> None:
        """Keep the list for the next start; it is held to the pins again then."""
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        data = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self._offers]
        self._cache.write_text(json.dumps(data), "utf-8")

    def _remembered(self) -> tuple[types.Tool, ...]:
        """The last good list; none where there is none that can be read."""
        try:
            return tuple(types.Tool.model_validate(item) for item in json.loads(self._cache.read_text("utf-8")))
        except (OSError, ValueError):
            return ()
