"""`ConversationTree`: the branches of an owner's conversations, and the run that the next message follows.

Each run is an exchange: a user's message and its answer. A message that is edited or answered again begins another
branch beside the first one. The conversation is at its `head`: the newest run, unless another branch was chosen since.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.models import AgentRequest
from agent.core.surrogates import replace_surrogates
from agent.runs.sessions import build_unknown_conversation_error
from agent.storage.conversation_path import ROOT, find_path, resolve_parents
from agent.storage.sql import SqlClient


@dataclass(frozen=True, slots=True)
class Exchange:
    """A run in its conversation. `parent` is the run before it in its branch."""

    run_id: str
    parent: str | None
    status: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Branches:
    """The exchanges of a conversation by time, and its head; None without runs."""

    exchanges: dict[str, Exchange]
    head: str | None

    def list_line(self, head: str | None = None) -> list[Exchange]:
        """The exchanges of the branch that ends with `head`, or with the conversation's."""
        end = head or self.head
        parents = {one.run_id: one.parent for one in self.exchanges.values()}
        return [self.exchanges[run_id] for run_id in find_path(parents, end)] if end is not None else []

    def list_siblings(self, run_id: str) -> list[str]:
        """The exchanges that follow the same one, by time, this one included."""
        parent = self.exchanges[run_id].parent
        return [one.run_id for one in self.exchanges.values() if one.parent == parent]

    def find_leaf(self, run_id: str) -> str:
        """The end of the newest branch through an exchange."""
        return [one for one in self.exchanges if self._leads_to(one, run_id)][-1]

    def _leads_to(self, run_id: str, ancestor: str) -> bool:
        at: str | None = run_id
        for _ in self.exchanges:
            if at is None or at == ancestor:
                break
            at = self.exchanges[at].parent if at in self.exchanges else None
        return at == ancestor


class ConversationTree:
    """Reads and sets the heads of conversations, by owner. `clock` gives UTC seconds. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def read_branches(self, owner: str, conversation_id: str) -> Branches:
        """The branches of a conversation; without runs for one that has none yet, or is unknown."""
        named = (owner, _strip(conversation_id))
        rows = await self._statements.read(
            "SELECT run_id, parent, status, created_at FROM runs WHERE owner = ? AND conversation_id = ? "
            "AND NOT hidden ORDER BY created_at, run_id",
            *named,
        )
        parents = resolve_parents([(str(run_id), parent) for run_id, parent, _, _ in rows])
        exchanges = {
            str(run_id): Exchange(str(run_id), parents[str(run_id)], str(status), float(at))
            for run_id, _, status, at in rows
        }
        newest = next(reversed(exchanges.values()), None)
        if newest is None:
            return Branches(exchanges, None)
        chosen = await self._statements.read(
            "SELECT head FROM client_conversations WHERE owner = ? AND id = ? AND head_at > ?",
            *named,
            newest.created_at,
        )
        head = str(chosen[0][0]) if chosen and chosen[0][0] in exchanges else newest.run_id
        return Branches(exchanges, head)

    async def set_head(self, owner: str, conversation_id: str, run_id: str) -> None:
        """Chooses the run that the next message follows. Raises `NotFoundError` for one of no such conversation."""
        branches = await self.read_branches(owner, conversation_id)
        if not branches.exchanges:
            raise build_unknown_conversation_error(conversation_id)
        if run_id not in branches.exchanges:
            raise NotFoundError(f"conversation {conversation_id[:100]!r} has no message {run_id[:100]!r}")
        first = next(iter(branches.exchanges.values()))
        now = self._clock()
        await self._statements.write(
            "INSERT INTO client_conversations (owner, id, metadata, created, head, head_at) VALUES (?,?,'{}',?,?,?) "
            "ON CONFLICT (owner, id) DO UPDATE SET head = excluded.head, head_at = excluded.head_at",
            owner, conversation_id, first.created_at, run_id, now,
        )  # fmt: skip

    async def place(self, owner: str, request: AgentRequest) -> AgentRequest:
        """The request with the run that it follows, if its conversation has branches. A client's own messages
        replace the conversation, so that they follow nothing.

        Raises `BadRequestError` for a parent that is not a run of the conversation.
        """
        conversation = request.conversation_id
        if conversation is None or request.messages is not None:
            return request if request.parent is None else request.model_copy(update={"parent": None})
        if request.parent is None and not await self._has_branches(owner, conversation):
            return request
        branches = await self.read_branches(owner, conversation)
        if request.parent is None:
            return request.model_copy(update={"parent": branches.head or ROOT})
        if request.parent != ROOT and request.parent not in branches.exchanges:
            raise BadRequestError(
                f"parent: conversation {conversation[:100]!r} has no message {request.parent[:100]!r}", param="parent"
            )
        return request

    async def is_in_branch(self, owner: str, placed: AgentRequest, run_id: str) -> bool:
        """Whether a request that `place` has placed continues the branch of this run, also if other runs began after
        it: it may still be running, or wait.
        """
        if placed.parent in (None, run_id) or placed.conversation_id is None:
            return True
        branches = await self.read_branches(owner, placed.conversation_id)
        return any(one.run_id == run_id for one in branches.list_line(placed.parent))

    async def _has_branches(self, owner: str, conversation_id: str) -> bool:
        named = (owner, _strip(conversation_id))
        rows = await self._statements.read(
            "SELECT 1 FROM runs WHERE owner = ? AND conversation_id = ? AND parent IS NOT NULL UNION ALL "
            "SELECT 1 FROM client_conversations WHERE owner = ? AND id = ? AND head IS NOT NULL LIMIT 1",
            *named, *named,
        )  # fmt: skip
        return bool(rows)


def _strip(name: str) -> str:
    return replace_surrogates(name).replace("\x00", "")
