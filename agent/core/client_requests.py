"""Requests of tools to the client that waits for a run: a question to its user, or to its model. They are not stored:
nobody can answer them after the call.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from agent.core.models import JsonObject

ClientMethod = Literal["elicitation/create", "sampling/createMessage"]
"""What a tool may ask a client for, as the MCP names it; parameters and results are those of the MCP."""
AskClient = Callable[[ClientMethod, JsonObject], Awaitable[JsonObject | None]]
"""Sends a request and returns the result; None if no client can carry it."""


async def refuse_client_request(method: ClientMethod, params: JsonObject) -> JsonObject | None:
    """Returns None: there is no client."""
    return None


class ClientRequests:
    """The clients of this process that wait for a run and can be asked, by run."""

    def __init__(self) -> None:
        self._clients: dict[str, list[AskClient]] = {}

    @contextmanager
    def connect(self, run_id: str, ask: AskClient) -> Iterator[None]:
        """Passes the requests of a run's tools to this client while the context is open."""
        self._clients.setdefault(run_id, []).append(ask)
        try:
            yield
        finally:
            self._clients[run_id].remove(ask)
            if not self._clients[run_id]:
                del self._clients[run_id]

    async def send(self, run_id: str, method: ClientMethod, params: JsonObject) -> JsonObject | None:
        """Returns the result of the first client that can carry the request; None if there is none."""
        for ask in tuple(self._clients.get(run_id, ())):
            result = await ask(method, params)
            if result is not None:
                return result
        return None
