"""The foreign MCP servers of this process, as the file `mcp_servers.json` configures them now."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import ConfigError, StoreError
from agent.core.models import LOCAL_OWNER
from agent.core.settings import Settings
from agent.core.throttled_log import ThrottledLog
from agent.net import SafeClient
from agent.runs.rooms import Rooms
from agent.storage.audit import AuditLog
from agent.storage.credentials import Credentials
from agent.storage.sql import SqlClient
from agent.tools import ToolRegistry
from mcp_tools.client.config import McpServerConfig, read_entries, read_servers, to_tool_alphabet
from mcp_tools.client.room_servers import collect_room_servers

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpHub, McpServer

log = logging.getLogger(__name__)

FILE_POLL_SECONDS = 2.0
"""How soon a change of the file takes effect."""

_Version = tuple[int, int, int] | None
"""Identifies the file's content; None if there is no file."""


class ForeignServers:
    """Follows the file, and the rooms that have servers of their own (`list_room_servers`). `build_hub` is called when
    there is a first server: it imports the MCP client, which takes a third of the start-up time.

    A file that cannot be read, or is gone, changes nothing, and neither does an entry that cannot be used: the log says
    what is wrong.
    """

    def __init__(
        self,
        path: Path,
        build_hub: Callable[[Mapping[str, McpServerConfig]], "McpHub"],
        list_room_servers: Callable[[], Mapping[str, McpServerConfig]] = dict,
    ) -> None:
        """Reads the file. Raises `ConfigError`."""
        self._path, self._build_hub, self._list_room_servers = path, build_hub, list_room_servers
        self._applied_version = self._read_version()
        self._in_file, problems = read_servers(path)
        _log_problems(problems)
        servers = {**self._in_file, **list_room_servers()}
        self._hub = build_hub(servers) if servers else None
        self._is_started = False
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def servers(self) -> Mapping[str, "McpServer"]:
        """The configured servers by name."""
        return self._hub.servers if self._hub is not None else {}

    def list_tool_prefixes(self, owner: str) -> frozenset[str]:
        """The prefixes of the tools of an owner's servers, the shared ones among them: their names up to the `__`. All
        for the operator.
        """
        usable = (LOCAL_OWNER, owner)
        named = (name for name, one in self.servers.items() if owner == LOCAL_OWNER or one.config.owner in usable)
        return frozenset(map(to_tool_alphabet, named))

    async def restore_cached_tools(self) -> None:
        """Registers the tools of the last lists without connecting. Raises `StoreError`."""
        if self._hub is not None:
            await self._hub.restore_cached_tools()

    async def start(self) -> None:
        """Starts to connect, and to follow the file. Raises `StoreError`."""
        if self._hub is not None:
            await self._hub.start()
        self._is_started = True
        self._task = asyncio.create_task(self._follow_file(), name="foreign MCP servers")

    async def aclose(self) -> None:
        """Closes every connection."""
        if self._task is not None:
            await cancel_and_wait(self._task)
        if self._hub is not None:
            await self._hub.aclose()

    async def refresh(self) -> None:
        """Connects to what the file and the rooms name now, as far as it is not. Raises `StoreError`.

        Servers that are gone or changed are no longer used when this returns or raises, and before it waits for
        anything else.
        """
        if self._hub is not None and self._is_started:
            await self._hub.stop_outdated({**self._in_file, **self._list_room_servers()})
        async with self._lock:
            wanted = {**self._in_file, **self._list_room_servers()}
            current = {name: server.config for name, server in self.servers.items()}
            if wanted == current or not self._is_started:
                return
            if self._hub is None:
                self._hub = await asyncio.to_thread(self._build_hub, {})
            await self._hub.apply(wanted)
            log.info("%d MCP servers are configured now", len(wanted))

    async def refresh_after_change(self) -> None:
        """Applies a change of the rooms before its author gets an answer. If the store fails, the new servers start
        later.
        """
        try:
            await self.refresh()
        except StoreError as error:
            log.warning("changes of the rooms' MCP servers are not applied yet: %s", error.message)

    async def _follow_file(self) -> None:
        trouble = ThrottledLog(log, "changes of the MCP servers are not applied yet")
        while True:
            await asyncio.sleep(FILE_POLL_SECONDS)
            with trouble.guard():
                await self.refresh()
                await self._apply_changes()

    async def _apply_changes(self) -> None:
        """Applies the file if it has changed; one that cannot be read is logged once. Raises `StoreError`."""
        version = await asyncio.to_thread(self._read_version)
        if version == self._applied_version:
            return
        try:
            await self._apply_file()
        except ConfigError as error:
            log.warning("%s; the MCP servers stay as they were", error.message)
        self._applied_version = version

    async def _apply_file(self) -> None:
        """Applies the file. Raises `ConfigError` if it cannot be read, and `StoreError`."""
        if not await asyncio.to_thread(self._path.is_file):
            raise ConfigError(f"{self._path} is gone")
        entries = await asyncio.to_thread(read_entries, self._path)
        servers, problems = await asyncio.to_thread(read_servers, self._path)
        _log_problems(problems)
        kept_configs = {
            name: config for name, config in self._in_file.items() if name in entries and name not in servers
        }
        self._in_file = {**servers, **kept_configs}
        await self.refresh()

    def _read_version(self) -> _Version:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _log_problems(problems: list[str]) -> None:
    for problem in problems:
        log.warning("%s", problem)


def build_foreign_servers(
    settings: Settings,
    registry: ToolRegistry,
    statements: SqlClient,
    clock: Callable[[], float],
    audit: AuditLog,
    rooms: Rooms,
    safe: SafeClient,
) -> ForeignServers:
    """The foreign MCP servers, not yet started; `safe` connects to those of rooms. Raises `ConfigError` for a
    broken file.
    """

    def build_hub(servers: Mapping[str, McpServerConfig]) -> "McpHub":
        from mcp_tools.client.hub import McpHub  # noqa: PLC0415 - the SDK is a third of the start-up time, and few gateways have servers
        from mcp_tools.client.tool_pin_store import PinSettings, PinStore  # noqa: PLC0415 - likewise

        pinning = PinSettings(PinStore(statements, clock, audit), settings.mcp_pin)
        credentials = Credentials(settings.credentials_file)
        return McpHub(servers, registry, settings.data_dir / "mcp", pinning, credentials, safe)

    return ForeignServers(settings.mcp_servers_path, build_hub, lambda: collect_room_servers(rooms))
