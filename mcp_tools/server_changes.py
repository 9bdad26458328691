"""Who is told of what: `subscriptions/listen` (2026), `resources/subscribe` and list notices (2025).

Both eras hang on one bus. Runs are followed only while somebody subscribed to them, and the list of runs is looked at
only while somebody listens for it."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from agent.core import events as ev
from agent.core.errors import AgentError
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.tools import ToolRegistry
from mcp_tools.server_sessions import Context, connection_of

log = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
"""How often the lists are compared: a tool that appears or a run that starts is told of within this time."""
MAX_URIS = 100
"""Resources one client may subscribe to at a time; each followed run is a task."""
RUN_VIEWS = ("steps", "report")
"""What of a run is a resource: `run://ID/steps` and `run://ID/report`."""
_STATE = "stepgate.listener"


class Changes:
    """The subscriptions of one server. Nothing is told before `serve` is entered."""

    def __init__(self, service: Callable[[], AgentService[Run]], registry: Callable[[], ToolRegistry]) -> None:
        self._service, self._registry = service, registry
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: Counter[str] = Counter()
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._list_listeners = 0

    @asynccontextmanager
    async def serve(self, _: Server[Any]) -> AsyncIterator[None]:
        """The server's lifespan: watch the lists until left."""
        self.spawn(self._watch_tools())
        self.spawn(self._watch_runs())
        try:
            yield
        finally:
            self._listen.close()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def publish(self, event: ServerEvent) -> None:
        """Tell everybody who asked for it."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Hear of every event; call what is returned to hear no more."""
        return self._bus.subscribe(listener)

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """`subscriptions/listen`: a stream that ends when the client leaves or the gateway stops."""
        wanted = params.notifications
        uris = wanted.resource_subscriptions or []
        if len(uris) > MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"{len(uris)} resources are too many; at most {MAX_URIS} a stream")
        with self.following(uris):
            self._list_listeners += bool(wanted.resources_list_changed)
            try:
                return await self._listen(context, params)
            finally:
                self._list_listeners -= bool(wanted.resources_list_changed)

    @contextmanager
    def following(self, uris: Sequence[str]) -> Iterator[None]:
        """Follow the runs that these URIs name, and publish what changes in them."""
        runs = {run_id for uri in uris if (run_id := run_of(uri)) is not None}
        for run_id in runs:
            self._followed[run_id] += 1
            if run_id not in self._followers:
                self._followers[run_id] = self.spawn(self._follow(run_id))
        try:
            yield
        finally:
            for run_id in runs:
                self._followed[run_id] -= 1
                if not self._followed[run_id]:
                    del self._followed[run_id]
                    self._followers.pop(run_id).cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that ends with the server at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a defect in telling MCP clients of changes", exc_info=error)

    async def _follow(self, run_id: str) -> None:
        try:
            row = await self._service().get(run_id)
            async with contextlib.aclosing(self._service().events(run_id, after=row.last_seq)) as events:
                async for event in events:
                    if _shows(event):
                        for view in RUN_VIEWS:
                            await self.publish(ResourceUpdated(f"run://{run_id}/{view}"))
        except AgentError as error:  # there is no such run, or the store is away: a subscription promises no event
            log.debug("run %s is not followed: %s", run_id, error.message)

    async def _watch_tools(self) -> None:
        known = self._registry().specs()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._service().custody.draining:
                self._listen.close()  # the server waits for open connections before it ends this lifespan
            specs = self._registry().specs()
            if specs != known:
                known = specs
                await self.publish(ToolsListChanged())

    async def _watch_runs(self) -> None:
        newest: str | None = None
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self._list_listeners:
                newest = None
                continue
            try:
                rows = await self._service().list_runs(limit=1)
            except AgentError as error:
                log.debug("the runs cannot be listed: %s", error.message)
                continue
            current = rows[0].run_id if rows else ""
            if newest is not None and current != newest:
                await self.publish(ResourcesListChanged())
            newest = current


class SessionListener:
    """What one session of the 2025 era is told: lists of tools that change, and the resources it subscribed to."""

    def __init__(self, changes: Changes, connection: Connection) -> None:
        self._changes, self._connection = changes, connection
        self._uris: dict[str, contextlib.ExitStack] = {}
        self._pending: dict[ServerEvent, None] = {}
        self._wake = asyncio.Event()
        self._leave = changes.subscribe(self._hear)
        self._task = changes.spawn(self._tell())

    @classmethod
    def of(cls, changes: Changes, context: Context) -> "SessionListener":
        """The one of the session this request belongs to, made at the first one."""
        connection = connection_of(context)
        listener = connection.state.get(_STATE)
        if not isinstance(listener, cls):
            listener = connection.state[_STATE] = cls(changes, connection)
            connection.exit_stack.callback(listener.close)
        return listener

    def add(self, uri: str) -> None:
        """Tell of this resource from now on. `MCPError` when there are too many."""
        if uri in self._uris:
            return
        if len(self._uris) >= MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"a session may subscribe to {MAX_URIS} resources; unsubscribe first")
        stack = self._uris[uri] = contextlib.ExitStack()
        stack.enter_context(self._changes.following([uri]))

    def remove(self, uri: str) -> None:
        """Tell of it no more."""
        if (stack := self._uris.pop(uri, None)) is not None:
            stack.close()

    def close(self) -> None:
        """The session is over."""
        self._leave()
        self._task.cancel()
        for uri in list(self._uris):
            self.remove(uri)

    def _hear(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged) or (isinstance(event, ResourceUpdated) and event.uri in self._uris):
            self._pending[event] = None  # a dict: what is told twice before it was sent is sent once
            self._wake.set()

    async def _tell(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            pending, self._pending = self._pending, {}
            for event in pending:
                if isinstance(event, ResourceUpdated):
                    await self._connection.send_resource_updated(event.uri)
                else:
                    await self._connection.send_tool_list_changed()


def run_of(uri: str) -> str | None:
    """The run a URI shows; None for anything but `run://ID/steps` and `run://ID/report`."""
    run_id, _, view = uri.removeprefix("run://").partition("/")
    return run_id if uri.startswith("run://") and run_id and view in RUN_VIEWS else None


def _shows(event: ev.Event) -> bool:
    """Whether a run looks different after this event; the pieces of an answer are told by its end."""
    return not isinstance(event.body, ev.AnswerDelta | ev.RunClaimed | ev.ModelReturned)
