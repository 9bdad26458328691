"""Registers the tools of an external server: those that are usable and match what a person accepted."""

import asyncio
import json
import logging
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import mcp_types as types

from agent.core.atomic_write import write_atomically
from agent.core.errors import AgentError, ToolQuarantinedError
from agent.tools import ToolRegistry, WithheldTool
from mcp_tools.client.remote_tool import (
    McpTool,
    ToolServer,
    find_tool_problem,
    get_argument_names,
    list_namesakes,
    make_definition,
    make_local_tool_name,
    read_input_schema,
)
from mcp_tools.client.resources import is_resource_tool
from mcp_tools.client.sanitize import escape_invisible, sanitize_text
from mcp_tools.client.tool_pin_store import PinRow, PinsDamagedError, PinSettings
from mcp_tools.client.tool_pins import PinPolicy, ServerPins, ToolDefinition

log = logging.getLogger(__name__)

INSTRUCTIONS = "server instructions"
"""The name under which a server's instructions are pinned: planners read them, as they read its tools' descriptions."""
INSTRUCTIONS_CHARS = 2_000


class ToolRegistration:
    """The tools of one server: offered, registered, and quarantined ones."""

    def __init__(self, server: ToolServer, registry: ToolRegistry, cache: Path, pinning: PinSettings | None) -> None:
        self._server = server
        self._registry = registry
        self._cache = cache
        self._pinning = pinning if pinning is not None and (server.config.pin or pinning.policy) != "off" else None
        self._policy: PinPolicy = server.config.pin or (pinning.policy if pinning is not None else "off")
        self._offers: tuple[types.Tool, ...] = ()
        self._offered_instructions = ""
        self._definitions: dict[str, ToolDefinition] = {}
        self._revision = 0
        self._is_closed = False
        self._pin_damage = ""
        self._faults: tuple[str, ...] = ()
        self._excluded: tuple[str, ...] = ()
        self._repaired: tuple[str, ...] = ()
        self._ignored_settings: tuple[str, ...] = ()
        self._collisions: tuple[str, ...] = ()
        self.tools: tuple[types.Tool, ...] = ()
        """The registered tools."""
        self.instructions = ""
        """The server's instructions once they are accepted; without hidden characters."""
        self.quarantined: Mapping[str, str] = {}
        """The tools that may not be used, by name, and why."""

    @property
    def problems(self) -> str:
        """Problems with the server's pins or tools, in one line; empty if there are none."""
        parts = (
            self._pin_damage,
            *self._faults,
            *self._excluded,
            *self._repaired,
            *self._collisions,
            *self._ignored_settings,
        )
        return "; ".join(filter(None, parts))

    async def update_offers(
        self, tools: Iterable[types.Tool], instructions: str = "", faults: Iterable[str] = ()
    ) -> None:
        """Registers the accepted ones of the tools that the server offers now, and quarantines the others. `faults` are
        the entries of its lists that are left out or repaired.

        Raises `StoreError`; then the registered tools stay as they were.
        """
        offers = await self._select_usable(tools)
        if self._is_closed:  # perhaps while the schemas were checked
            return
        self._report_faults(faults)
        self._offers = offers
        self._offered_instructions = sanitize_text(instructions).text[:INSTRUCTIONS_CHARS].strip()
        await self._apply_pins()
        await self._write_cache()

    async def refresh_pins(self) -> None:
        """Applies decisions made since, in this or another process. If the store fails, the earlier decisions stay."""
        if self._pinning is None:
            return
        store, name = self._pinning.store, self._server.name
        try:
            if (await store.get_revision(name) or 0) == self._revision:
                return
            row = await store.read(name)
            if row is None or any(tool.name not in row.pins.tools for tool in self._offers):
                await self._apply_pins()
            else:  # reads only: two gateways with different offers would overwrite each other's rows
                self._register_allowed(row)
        except PinsDamagedError as error:
            await self._withhold_all(error)
        except AgentError as error:
            log.warning("the pins of the MCP server %r could not be refreshed: %s", name, error.message)

    async def restore_cached_tools(self) -> None:
        """Registers the accepted tools of the last good list. Raises `StoreError`."""
        self._offers = await self._select_usable(self._read_cache())
        if self._pinning is None:
            self._register(self._offers, {})
            return
        try:
            self._register_allowed(await self._pinning.store.read(self._server.name) or PinRow(0, ServerPins()))
        except PinsDamagedError as error:
            await self._withhold_all(error)

    def close(self) -> None:
        """Removes the server's tools from the registry for good: later lists and decisions register nothing."""
        self._register((), {})
        self._is_closed = True

    def require_unchanged(self, tool: str, definition: ToolDefinition) -> None:
        """Raises `ToolQuarantinedError` unless the tool is registered with this definition: a run may hold an older
        one."""
        if self._definitions.get(tool) != definition:
            refusal = self._format_refusal(tool, self.quarantined.get(tool, "has changed"))
            raise ToolQuarantinedError(refusal, agent_id=self._get_local_name(tool))

    def _get_local_name(self, tool: str) -> str:
        return make_local_tool_name(self._server.name, self._server.config.tools.get_local_name(tool))

    async def _select_usable(self, tools: Iterable[types.Tool]) -> tuple[types.Tool, ...]:
        """The selected tools that can be used; of two with one name the first."""
        selected = [tool for tool in tools if self._server.config.tools.includes(tool.name)]
        wanted: dict[str, types.Tool] = {}
        repeated = [tool for tool in selected if wanted.setdefault(tool.name, tool) != tool]
        # In a thread: another server decides how many schemas there are, and how large.
        problems = await asyncio.to_thread(lambda: {name: find_tool_problem(tool) for name, tool in wanted.items()})
        self._warn_about_ignored(wanted)
        self._report_repairs(tool for name, tool in wanted.items() if problems[name] is None)
        faults = [(name, why) for name, why in problems.items() if why is not None]
        faults += [(tool.name, "another tool of its list has this name") for tool in repeated]
        left_out = tuple(dict.fromkeys(f"{escape_invisible(name)[:100]}: {why}" for name, why in faults))
        for line in left_out:
            if line not in self._excluded:  # logged once, not for every connection
                log.warning("MCP server %r: a tool is not registered, %s", self._server.name, line)
        self._excluded = left_out
        return tuple(tool for name, tool in wanted.items() if problems[name] is None)

    def _report_faults(self, faults: Iterable[str]) -> None:
        """Logs once each fault of the server's lists."""
        lines = tuple(escape_invisible(line)[:200] for line in faults)
        for line in lines:
            if line not in self._faults:
                log.warning("MCP server %r: %s", self._server.name, line)
        self._faults = lines

    def _report_repairs(self, tools: Iterable[types.Tool]) -> None:
        """Logs once each tool whose schema is used without parts of it."""
        lines = tuple(
            f"{escape_invisible(tool.name)[:100]}: used without {escape_invisible(', '.join(places))[:200]} of its "
            "schema, which is not JSON Schema"
            for tool in tools
            if (places := read_input_schema(tool)[1])
        )
        for line in lines:
            if line not in self._repaired:
                log.warning("MCP server %r: %s", self._server.name, line)
        self._repaired = lines

    def _warn_about_ignored(self, wanted: Mapping[str, types.Tool]) -> None:
        """Logs once each setting of the operator that has no effect."""
        offered = {name: get_argument_names(tool) for name, tool in wanted.items()}
        messages = tuple(self._server.config.tools.list_ignored_settings(offered)) if offered else ()
        for line in messages:
            if line not in self._ignored_settings:
                log.warning("MCP server %r: %s", self._server.name, line)
        self._ignored_settings = messages

    async def _apply_pins(self) -> None:
        """Compares the offered tools with the pins, and stores what is new."""
        if self._pinning is None:
            self.instructions = self._offered_instructions
            self._register(self._offers, {})
            return
        offers = {tool.name: make_definition(tool) for tool in self._offers}
        if (instructions := self._define_instructions()) is not None:
            offers[INSTRUCTIONS] = instructions
        try:
            self._register_allowed(await self._pinning.store.record_offers(self._server.name, offers, self._policy))
        except PinsDamagedError as error:
            await self._withhold_all(error)

    def _register_allowed(self, row: PinRow) -> None:
        """Registers the offered tools that these pins allow."""
        self._revision, self._pin_damage = row.revision, ""
        defined = self._define_instructions()
        is_accepted = defined is not None and row.pins.allows(INSTRUCTIONS, defined)
        self.instructions = self._offered_instructions if is_accepted else ""
        admitted = (tool for tool in self._offers if row.pins.allows(tool.name, make_definition(tool)))
        self._register(tuple(admitted), row.pins.withheld_reasons)

    def _define_instructions(self) -> ToolDefinition | None:
        text = self._offered_instructions
        return ToolDefinition.from_parts({"name": INSTRUCTIONS, "description": text}) if text else None

    async def _withhold_all(self, error: PinsDamagedError) -> None:
        """Registers none of the tools, because the accepted definitions are unknown."""
        log.error("%s", error.message)
        self._pin_damage, self.instructions = error.message, ""
        self._register((), {tool.name: "has unreadable pins" for tool in self._offers})
        if self._pinning is not None:
            self._revision = await self._pinning.store.get_revision(self._server.name) or 0

    def _register(self, tools: tuple[types.Tool, ...], quarantined: Mapping[str, str]) -> None:
        """Replaces the server's tools in the registry, and makes it reject calls of quarantined ones."""
        if self._is_closed:
            return  # its successor may have registered tools of the same origin already
        for name in sorted(quarantined.keys() - self.quarantined.keys()):
            log.warning("%s", self._format_refusal(name, quarantined[name]))
        self.quarantined = dict(quarantined)
        self._definitions = {tool.name: make_definition(tool) for tool in tools}
        namesakes = list_namesakes(tools, self._server.config.tools)
        remote = {
            tool.name: McpTool(
                self._server,
                tool,
                hints_trusted=is_resource_tool(self._definitions[tool.name]),
                has_namesake=tool.name in namesakes,
            )
            for tool in tools
        }
        skipped = self._registry.replace(self._server.origin, remote.values())
        left_out = [name for name, tool in remote.items() if tool in skipped]
        self._report_collisions({name: remote[name].spec.name for name in left_out})
        self.tools = tuple(tool for tool in tools if tool.name not in left_out)
        owner = self._server.config.owner
        refusals = {
            self._get_local_name(tool): WithheldTool(self._format_refusal(tool, why), owner)
            for tool, why in quarantined.items()
        }
        self._registry.withhold(self._server.origin, refusals)

    def _report_collisions(self, names: Mapping[str, str]) -> None:
        """Logs once each tool that is left out because another tool has its name here. Cut and changed names end in a
        hash, so that two may meet by chance or by design; the one that was there first stays.
        """
        lines = tuple(
            f"{escape_invisible(tool)[:100]}: its name here, {name}, is that of another tool; rename it at the server "
            "or give the server another name"
            for tool, name in names.items()
        )
        for line in lines:
            if line not in self._collisions:
                log.warning("MCP server %r: a tool is not registered, %s", self._server.name, line)
        self._collisions = lines

    def _format_refusal(self, tool: str, why: str) -> str:
        """The message for the caller of a quarantined tool, and for the log."""
        server = self._server.name
        return (
            f"the tool {escape_invisible(tool)[:100]!r} of the MCP server {server!r} {why}; it is not used before a "
            f"review: `stepgate mcp-servers review {shlex.quote(server)}`"
        )

    async def _write_cache(self) -> None:
        """Stores the list for the next start, where it is compared with the pins again. The server works without it."""
        if self._is_closed:
            return
        data = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self._offers]
        try:
            await asyncio.to_thread(write_atomically, self._cache, json.dumps(data))
        except OSError as error:
            name, reason = self._server.name, error.strerror
            log.warning("the tools of the MCP server %r are not stored for the next start: %s", name, reason)

    def _read_cache(self) -> tuple[types.Tool, ...]:
        """The last good list; empty if there is none or it is unreadable."""
        try:
            return tuple(types.Tool.model_validate(item) for item in json.loads(self._cache.read_text("utf-8")))
        except (OSError, ValueError):
            return ()
