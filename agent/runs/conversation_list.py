"""`ConversationList`: an owner's chats, newest first, for lists and searches.

Listed are the conversations that were made at `POST /v1/conversations`, and those that earlier versions of the web page
have named. Other clients keep lists of their own.
"""

import json
from dataclasses import dataclass
from typing import Final

from agent.core.errors import BadRequestError
from agent.core.models import RunStatus
from agent.core.surrogates import to_storable_text
from agent.runs.conversation_search import MessageMatch, build_condition, find_messages, parse_words
from agent.storage.sql import Row, SqlClient

OLD_PAGE_IDS: Final = "web-"
"""Began the ids that the web page chose before the gateway made them."""
_FIRST: Final = "owner = ? AND conversation_id = t.id AND NOT hidden ORDER BY created_at, run_id LIMIT 1"
_LAST: Final = "owner = ? AND conversation_id = t.id AND NOT hidden ORDER BY created_at DESC, run_id DESC LIMIT 1"
_NOTES: Final = "SELECT c.metadata FROM client_conversations c WHERE c.owner = ? AND c.id = t.id"
_LISTED: Final = f"""
    WITH talks AS (
        SELECT r.conversation_id AS id, min(r.created_at) AS first, max(r.created_at) AS last,
            sum(CASE WHEN r.terminal THEN 0 ELSE 1 END) AS open
        FROM runs r WHERE r.owner = ? AND NOT r.hidden AND r.conversation_id IS NOT NULL AND (
            r.conversation_id LIKE ? OR EXISTS (
                SELECT 1 FROM client_conversations c WHERE c.owner = r.owner AND c.id = r.conversation_id))
        GROUP BY r.conversation_id
    ), page AS (
        SELECT t.* FROM talks t WHERE (t.last < ? OR (t.last = ? AND t.id < ?)) %WORDS%
        ORDER BY t.last DESC, t.id DESC LIMIT ?
    )
    SELECT t.id, t.first, t.last, t.open, (SELECT title FROM runs WHERE {_FIRST}),
        (SELECT room FROM runs WHERE {_LAST}), (SELECT status FROM runs WHERE {_LAST}), ({_NOTES})
    FROM page t ORDER BY t.last DESC, t.id DESC"""  # noqa: S608 - constants
"""Selects the listed conversations, each once. `%WORDS%` stands for the condition of a search. PostgreSQL compares in
lower case as far as the locale of its database has it."""


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A place in the list: below the conversation `id`, last used at `updated_at`. The id decides between conversations
    of one moment. It needs no conversation to be there: one that was deleted or used since leaves no gap.
    """

    updated_at: float
    id: str = ""

    def format(self) -> str:
        """The position as clients send it back."""
        return f"{self.updated_at!r}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> "ListPosition":
        """The position of a `next`; those of earlier versions were times. Raises `BadRequestError` for another text."""
        at, _, conversation_id = text.partition("~")
        try:
            return cls(float(at), to_storable_text(conversation_id))
        except ValueError as error:
            raise BadRequestError("before: send the `next` of an earlier page", param="before") from error


TOP: Final = ListPosition(1e18)
"""Above all conversations."""


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """A conversation in a list. `status` is that of its newest run; `open_runs` have not ended. Times are UTC
    seconds. `match` is the message that a search has found.
    """

    id: str
    title: str
    room: str
    status: RunStatus
    open_runs: int
    created_at: float
    updated_at: float
    metadata: dict[str, str]
    match: MessageMatch | None = None

    @property
    def position(self) -> ListPosition:
        """The place just below it."""
        return ListPosition(self.updated_at, self.id)


class ConversationList:
    """Lists conversations by owner. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient) -> None:
        self._statements = statements

    async def list_newest(
        self, owner: str, *, limit: int, before: ListPosition = TOP, query: str = ""
    ) -> list[ListedConversation]:
        """Conversations below `before`, newest first. With `query`, those that have each of its words in their title or
        in a message."""
        words = parse_words(query)
        condition, values = build_condition(owner, words, await self._list_titles(owner) if words else [])
        rows = await self._statements.read(
            _LISTED.replace("%WORDS%", condition),
            owner, f"{OLD_PAGE_IDS}%",
            before.updated_at, before.updated_at, before.id,
            *values, limit,
            owner, owner, owner, owner,
        )  # fmt: skip
        matches = await find_messages(self._statements, owner, [str(row[0]) for row in rows], words)
        return [_parse_row(row, matches.get(str(row[0]))) for row in rows]

    async def _list_titles(self, owner: str) -> list[tuple[str, str]]:
        """The chosen titles in lower case, newest first. JSON, in which they are stored, escapes letters."""
        rows = await self._statements.read(
            "SELECT id, metadata FROM client_conversations WHERE owner = ? AND metadata LIKE ? ORDER BY created DESC",
            owner, '%"title"%',
        )  # fmt: skip
        titles = ((str(one), str(json.loads(metadata).get("title") or "")) for one, metadata in rows)
        return [(one, " ".join(title.lower().split())) for one, title in titles]


def _parse_row(row: Row, match: MessageMatch | None) -> ListedConversation:
    conversation_id, first, last, open_runs, title, room, status, metadata = row
    fields: dict[str, str] = json.loads(metadata) if metadata else {}
    return ListedConversation(
        id=str(conversation_id),
        title=fields.get("title") or str(title),
        room=str(room),
        status=status,
        open_runs=int(open_runs),
        created_at=float(first),
        updated_at=float(last),
        metadata=fields,
        match=match,
    )
