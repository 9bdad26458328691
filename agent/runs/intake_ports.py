"""What features give to `RunIntake`: handlers of their own kinds of requests, conversations, webhooks."""

from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from agent.core.models import AgentRequest, JsonObject, Room, Webhook
from agent.core.principal import Principal
from agent.runs.service import AcceptedRun

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RequestHandler(Generic[R]):
    """Accepts one kind of request, named by its class. A feature registers one for each kind of its own."""

    kind: type[R]
    accept: Callable[[Principal, R, str | None], Awaitable[AcceptedRun]]
    """The run that answers the request; the text is the id of a new run, if one was recorded before."""
    find_webhook: Callable[[Principal, R], Awaitable[Webhook | None]] | None = None
    """The webhook of the run's end if the request does not name one."""


class RoomConversations(Protocol):
    """Conversations of a feature in rooms of its own, which keep more than messages: those that build pipelines."""

    def handles_room(self, room: Room) -> bool:
        """Whether requests in this room belong to such a conversation."""
        ...

    async def get_id_for_chat(self, chat_id: str, *, owner: str) -> str:
        """The id of the conversation of a chat or session; creates it at first use."""
        ...

    async def get_id_for_call(self, name: str | None, *, owner: str, may_start: bool) -> str:
        """The id of the conversation that a single tool call names; None: of a new one.

        A name that is unknown starts one if `may_start`. Raises `NotFoundError`, and `ConflictError` while it is being
        answered.
        """
        ...

    async def find_id(self, name: str, *, owner: str) -> str | None:
        """The id of the conversation with this id, or of this chat; None if there is none."""
        ...

    async def forget_messages(self, name: str) -> None:
        """Deletes the messages that are kept for a short time. Raises `StoreError`."""
        ...

    async def send_request(
        self,
        conversation_id: str,
        request: AgentRequest,
        *,
        principal: Principal,
        run_id: str | None = None,
        wire_request: JsonObject | None = None,
    ) -> AcceptedRun:
        """Adds a request of another door as a message."""
        ...


class WebhookRegistry(Protocol):
    """Where webhooks are stored before their runs. The feature `schedules` implements it."""

    async def check(self, webhook: Webhook, owner: str) -> None:
        """Raises `BadRequestError` for an address or a secret that cannot be used."""
        ...

    @property
    def awaited_runs(self) -> AbstractSet[str]:
        """The ids of the runs whose ends must be posted, as far as this process knows."""
        ...

    def notice_end(self, run_id: str) -> None:
        """Called when one of them has ended in this process."""
        ...

    async def register(self, owner: str, run_id: str, webhook: Webhook) -> bool:
        """Stores a delivery for a run that is about to start. Returns False if it was stored before."""
        ...

    async def discard(self, run_id: str) -> None:
        """Removes the delivery of a run that was refused."""
        ...
