"""Change notifications: `subscriptions/listen` (era 2026), `resources/subscribe` and list changes (era 2025).

Both eras share one bus. A run is followed only while somebody subscribes to it, and the list of runs is polled only
while somebody listens for it.
"""

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
from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, NotFoundError
from agent.run_context.run import Run
from agent.runs.service import AgentService
from agent.tools import ToolRegistry
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.sessions import Context, get_connection

log = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
"""How often the lists are compared: a new tool or run is announced within this time."""
MAX_URIS = 100
"""Resources one client may subscribe to at a time; each followed run is a task."""
MAX_STREAMS = 10_000
"""Open `subscriptions/listen` streams of all callers."""
MAX_CALLER_STREAMS = 100
"""Such streams of one key, or of all callers without a key together, so that none can take them all."""
RUN_RESOURCES = ("steps", "report")
"""The resources of a run: `run://ID/steps` and `run://ID/report`."""
_LISTENER_KEY = "stepgate.listener"


_OwnedRun = tuple[str, str]
"""An owner and the id of a run, which may be somebody else's: then it is not followed for this owner."""


class ChangeNotifier:
    """The subscriptions of one server. Nothing is sent before `serve` is entered."""

    def __init__(self, service: Callable[[], AgentService[Run]], registry: Callable[[], ToolRegistry]) -> None:
        self._service, self._registry = service, registry
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=MAX_STREAMS)
        self._stream_counts: Counter[tuple[str, str | None]] = Counter()
        """Open streams by the owner and the id of the key."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._follower_counts: Counter[_OwnedRun] = Counter()
        self._followers: dict[_OwnedRun, asyncio.Task[None]] = {}
        self._list_listeners: Counter[str] = Counter()
        """How many streams of each owner wait for changes of their list of runs."""

    @asynccontextmanager
    async def serve(self, _: Server[Any]) -> AsyncIterator[None]:
        """The server's lifespan: watches the lists until it is left."""
        self.spawn_task(self._watch_tools())
        self.spawn_task(self._watch_runs())
        try:
            yield
        finally:
            self._listen.close()
            await cancel_and_wait(*self._tasks)

    async def publish(self, event: ServerEvent) -> None:
        """Sends an event to every subscriber."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Registers a listener for every event. Returns a function that removes it."""
        return self._bus.subscribe(listener)

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Handles `subscriptions/listen`: a stream that ends when the client leaves or the gateway stops."""
        wanted = params.notifications
        uris = wanted.resource_subscriptions or []
        if len(uris) > MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"{len(uris)} resources are too many; at most {MAX_URIS} a stream")
        principal, counted = get_current_principal(), int(bool(wanted.resources_list_changed))
        owner = principal.owner
        uris = [uri for uri in uris if await self._is_readable(uri)]
        params = params.model_copy(update={"notifications": wanted.model_copy(update={"resource_subscriptions": uris})})
        with self._count_stream((owner, principal.key_id)), self.follow_runs(uris):
            self._list_listeners[owner] += counted
            try:
                return await self._listen(context, params)
            finally:
                self._list_listeners[owner] -= counted

    @contextmanager
    def _count_stream(self, caller: tuple[str, str | None]) -> Iterator[None]:
        """Holds one of the caller's streams while entered. Raises `MCPError` if none is free."""
        if self._stream_counts[caller] >= MAX_CALLER_STREAMS:
            message = f"{MAX_CALLER_STREAMS} streams of subscriptions/listen are open with this key; close one first"
            raise MCPError(types.INVALID_REQUEST, message)
        self._stream_counts[caller] += 1
        try:
            yield
        finally:
            self._stream_counts[caller] -= 1
            self._stream_counts = +self._stream_counts

    async def _is_readable(self, uri: str) -> bool:
        """Whether a URI is not that of somebody else's run, whose changes are nobody else's business."""
        run_id = parse_run_uri(uri)
        try:
            if run_id is not None:
                await self._service().get_run(run_id, owner=get_current_owner())
        except NotFoundError:
            return False
        except AgentError as error:  # as in `_follow_run`
            log.debug("run %s is not looked up: %s", run_id, error.message)
        return True

    @contextmanager
    def follow_runs(self, uris: Sequence[str]) -> Iterator[None]:
        """Follows the runs that these URIs name, and publishes their changes."""
        owner = get_current_owner()
        runs = {(owner, run_id) for uri in uris if (run_id := parse_run_uri(uri)) is not None}
        for run in runs:
            self._follower_counts[run] += 1
            follower = self._followers.get(run)
            if follower is None or follower.done():  # the run has ended, or the store was down
                self._followers[run] = self.spawn_task(self._follow_run(run[1]))
        try:
            yield
        finally:
            for run in runs:
                self._follower_counts[run] -= 1
                if not self._follower_counts[run]:
                    del self._follower_counts[run]
                    self._followers.pop(run).cancel()

    def spawn_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task that ends with the server at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an internal error in the change notifications for MCP clients", exc_info=error)

    async def _follow_run(self, run_id: str) -> None:
        try:
            row = await self._service().get_run(run_id, owner=get_current_owner())
            async with contextlib.aclosing(
                self._service().follow_events(run_id, owner=get_current_owner(), after=row.last_seq)
            ) as events:
                async for event in events:
                    if _is_run_view_change(event):
                        for view in RUN_RESOURCES:
                            await self.publish(ResourceUpdated(f"run://{run_id}/{view}"))
        except AgentError as error:  # an unknown run or an unavailable store: a subscription guarantees no event
            log.debug("run %s is not followed: %s", run_id, error.message)

    async def _watch_tools(self) -> None:
        known_specs = self._registry().list_specs()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._service().worker.draining:
                self._listen.close()  # the server waits for open connections before it ends this lifespan
            specs = self._registry().list_specs()
            if specs != known_specs:
                known_specs = specs
                await self.publish(ToolsListChanged())

    async def _watch_runs(self) -> None:
        """Announces new runs of the owners who listen. The event says nothing of the run, so that all get it."""
        newest: dict[str, str] = {}
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self._list_listeners = +self._list_listeners  # without the owners of whom nobody listens any longer
            newest = {owner: run_id for owner, run_id in newest.items() if owner in self._list_listeners}
            try:
                current = {owner: await self._find_newest_run(owner) for owner in [*self._list_listeners]}
            except AgentError as error:
                log.debug("the runs cannot be listed: %s", error.message)
                continue
            if any(newest.get(owner, run_id) != run_id for owner, run_id in current.items()):
                await self.publish(ResourcesListChanged())
            newest |= current

    async def _find_newest_run(self, owner: str) -> str:
        rows = await self._service().list_runs(owner=owner, limit=1)
        return rows[0].run_id if rows else ""


class SessionListener:
    """Notifies one session of era 2025 about changed tool lists and the resources it subscribed to."""

    def __init__(self, changes: ChangeNotifier, connection: Connection) -> None:
        self._changes, self._connection = changes, connection
        self._uris: dict[str, contextlib.ExitStack] = {}
        self._pending: dict[ServerEvent, None] = {}
        self._wake = asyncio.Event()
        self._unsubscribe = changes.subscribe(self._on_event)
        self._task = changes.spawn_task(self._send_pending())

    @classmethod
    def for_session(cls, changes: ChangeNotifier, context: Context) -> "SessionListener":
        """The listener of the request's session. The first call creates it."""
        connection = get_connection(context)
        listener = connection.state.get(_LISTENER_KEY)
        if not isinstance(listener, cls):
            listener = connection.state[_LISTENER_KEY] = cls(changes, connection)
            connection.exit_stack.callback(listener.close)
        return listener

    def add(self, uri: str) -> None:
        """Subscribes to a resource. Raises `MCPError` if there are too many."""
        if uri in self._uris:
            return
        if len(self._uris) >= MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"a session may subscribe to {MAX_URIS} resources; unsubscribe first")
        stack = self._uris[uri] = contextlib.ExitStack()
        stack.enter_context(self._changes.follow_runs([uri]))

    def remove(self, uri: str) -> None:
        """Ends a subscription."""
        if (stack := self._uris.pop(uri, None)) is not None:
            stack.close()

    def close(self) -> None:
        """Ends all subscriptions of the session."""
        self._unsubscribe()
        self._task.cancel()
        for uri in list(self._uris):
            self.remove(uri)

    def _on_event(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged) or (isinstance(event, ResourceUpdated) and event.uri in self._uris):
            self._pending[event] = None  # a dict, so that an event is sent once even if it occurs again before
            self._wake.set()

    async def _send_pending(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            pending, self._pending = self._pending, {}
            for event in pending:
                if isinstance(event, ResourceUpdated):
                    await self._connection.send_resource_updated(event.uri)
                else:
                    await self._connection.send_tool_list_changed()


def parse_run_uri(uri: str) -> str | None:
    """The run id of `run://ID/steps` or `run://ID/report`; None for any other URI."""
    run_id, _, view = uri.removeprefix("run://").partition("/")
    return run_id if uri.startswith("run://") and run_id and view in RUN_RESOURCES else None


def _is_run_view_change(event: ev.Event) -> bool:
    """Whether this event changes a run's steps or report. Answer deltas are skipped: the answer's end reports them."""
    return not isinstance(event.body, ev.AnswerDelta | ev.RunClaimed | ev.ModelReturned)
