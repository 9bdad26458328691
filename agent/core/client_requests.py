"""Requests of tools to the client that waits for a run: a question to its user, or to its model. They are not stored:
nobody can answer them after the call.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from agent.core.models import JsonObject

ClientMethod = Literal["elicitation/create", "sampling/createMessage"]
"""The requests that a tool may make to a client, by their MCP names; parameters and results are those of the MCP."""
AskClient = Callable[[ClientMethod, JsonObject], Awaitable[JsonObject | None]]
"""Sends a request and returns the result; None if no client can carry it."""
AskWaitingClient = Callable[[str, ClientMethod, JsonObject], Awaitable[JsonObject | None]]
"""The same for the run whose id comes first."""


async def refuse_client_request(method: ClientMethod, params: JsonObject) -> JsonObject | None:
    """Always None: there is no client."""
    return None


async def refuse_waiting_request(run_id: str, method: ClientMethod, params: JsonObject) -> JsonObject | None:
    """Always None: the client cannot be asked."""
    return None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that the client gets as the result of its call, and answers with its next one."""

    key: str
    """Identifies the request within its run."""
    method: ClientMethod
    params: JsonObject
    result: asyncio.Future[JsonObject | None]


class ClientRequests:
    """The clients of this process that wait for a run and can be asked, by run."""

    def __init__(self) -> None:
        self._clients: dict[str, list[AskWaitingClient]] = {}
        self._open: dict[str, OpenRequest] = {}

    @contextmanager
    def connect(self, run_id: str, ask: AskWaitingClient) -> Iterator[None]:
        """Passes the requests of a run's tools to this client while the context is open."""
        self._clients.setdefault(run_id, []).append(ask)
        try:
            yield
        finally:
            self._clients[run_id].remove(ask)
            if not self._clients[run_id]:
                del self._clients[run_id]

    async def send(self, run_id: str, method: ClientMethod, params: JsonObject) -> JsonObject | None:
        """The result of the first client that can carry the request; None if there is none."""
        for ask in tuple(self._clients.get(run_id, ())):
            result = await ask(run_id, method, params)
            if result is not None:
                return result
        return None

    async def wait_for_answer(
        self, run_id: str, method: ClientMethod, params: JsonObject, seconds: float
    ) -> JsonObject | None:
        """Keeps a request open until `answer` is called, at most `seconds`. Returns None without an answer, and while
        another request of the run is open.
        """
        if run_id in self._open:
            return None
        answered: asyncio.Future[JsonObject | None] = asyncio.get_running_loop().create_future()
        self._open[run_id] = OpenRequest(f"request_{secrets.token_hex(8)}", method, params, answered)
        try:
            async with asyncio.timeout(seconds):
                return await answered
        except TimeoutError:
            return None
        finally:
            del self._open[run_id]

    def get_open_request(self, run_id: str) -> OpenRequest | None:
        """The request of a run that waits for an answer."""
        request = self._open.get(run_id)
        return request if request is not None and not request.result.done() else None

    def answer(self, run_id: str, key: str, result: JsonObject | None) -> None:
        """Answers the open request of this key. Does nothing if there is none."""
        request = self.get_open_request(run_id)
        if request is not None and request.key == key:
            request.result.set_result(result)
