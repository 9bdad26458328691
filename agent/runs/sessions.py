"""`SessionStore`: the stored history of conversations, by the names their runs use."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.errors import ConflictError, NotFoundError
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import SqlClient, SqlStatement

HISTORY_TURNS = 200
"""Most turns returned, the newest ones; a run sees fewer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. `at` is UTC seconds since 1970."""

    role: str
    text: str
    at: float


class SessionStore:
    """Conversations by owner and names: one may have both an id and a chat's name. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient) -> None:
        self._statements = statements

    async def list_turns(self, owner: str, names: Sequence[str]) -> list[Turn]:
        """The messages, oldest first."""
        rows = await self._statements.read(
            f"SELECT role, text, {_TURN_TIME} FROM turns WHERE owner = ? AND {_MATCHES_NAME} ORDER BY id DESC LIMIT ?",  # noqa: S608
            owner, *_name_pair(names), HISTORY_TURNS,
        )  # fmt: skip
        return [Turn(str(role), str(text), float(at)) for role, text, at in reversed(rows)]

    async def is_tainted(self, owner: str, name: str) -> bool:
        """Whether any message relies on untrusted content."""
        rows = await self._statements.read(
            f"SELECT 1 FROM turns WHERE owner = ? AND {_MATCHES_NAME} AND tainted LIMIT 1",  # noqa: S608 - a constant
            owner, *_name_pair([name]),
        )  # fmt: skip
        return bool(rows)

    async def find_newest_run(self, owner: str, names: Sequence[str]) -> str | None:
        """The id of the newest run, which may be in progress."""
        rows = await self._statements.read(
            f"SELECT run_id FROM runs WHERE owner = ? AND {_MATCHES_NAME} "  # noqa: S608 - a constant
            "ORDER BY created_at DESC, run_id DESC LIMIT 1",
            owner, *_name_pair(names),
        )  # fmt: skip
        return str(rows[0][0]) if rows else None

    async def exists(self, owner: str, name: str) -> bool:
        """Whether a run or a message has this name."""
        names = (name,)
        return await self.find_newest_run(owner, names) is not None or bool(await self.list_turns(owner, names))

    async def find_user_sessions(self, owner: str, session_id: str) -> list[str]:
        """The names under which `POST /query` stores the sessions of this id, one for each user."""
        ending = f"/{replace_surrogates(_code_session(session_id))}".replace("\x00", "")
        rows = await self._statements.read(
            "SELECT DISTINCT conversation_id FROM runs WHERE owner = ? AND conversation_id IS NOT NULL "
            "AND substr(conversation_id, length(conversation_id) - ?) = ?",
            owner, len(ending) - 1, ending,
        )  # fmt: skip
        return [str(name) for (name,) in rows]

    async def clear_session(self, owner: str, names: Sequence[str]) -> None:
        """Deletes the history: the next run starts afresh. The conversation's runs stay, without a conversation.

        Raises `NotFoundError` if there is no such conversation, and `ConflictError` while one of its runs is in
        progress.
        """
        counted = f"FROM runs WHERE owner = ? AND {_MATCHES_NAME}"
        values = (owner, *_name_pair(names))
        ((runs, open_runs),) = await self._statements.read(
            f"SELECT count(*), coalesce(sum(CASE WHEN terminal THEN 0 ELSE 1 END), 0) {counted}",
            *values,
        )
        if not runs and not await self.list_turns(owner, names):
            raise build_unknown_conversation_error(names[0])
        if open_runs:
            raise ConflictError(f"a run of {names[0][:100]!r} is in progress; wait for its end, or cancel it")
        await self._statements.write_all(
            SqlStatement(f"DELETE FROM turns WHERE owner = ? AND {_MATCHES_NAME}", values),  # noqa: S608 - a constant
            SqlStatement(f"UPDATE runs SET conversation_id = NULL WHERE owner = ? AND {_MATCHES_NAME}", values),  # noqa: S608
        )


_MATCHES_NAME = "conversation_id IN (?, ?)"
# Question and answer are stored together when the run ends; the question was asked when the run was created.
_TURN_TIME = (
    "CASE WHEN role = 'user' THEN coalesce((SELECT created_at FROM runs WHERE runs.run_id = turns.run_id), at) "
    "ELSE at END"
)


def build_unknown_conversation_error(name: str) -> NotFoundError:
    """The error for a conversation that does not exist or has another owner."""
    return NotFoundError(f"there is no conversation {name[:100]!r}")


def _name_pair(names: Sequence[str]) -> tuple[str, str]:
    plain = [replace_surrogates(name).replace("\x00", "") for name in names]
    return plain[0], plain[-1]


def build_session_name(user_id: str, session_id: str) -> str:
    """The name of a user's session among the conversations of the API key's owner. The session `b/c` of the user `a` is
    not the session `c` of the user `a/b`: what is behind the last `/` is a session's id, or its digest.
    """
    return f"{user_id}/{_code_session(session_id)}"


def _code_session(session_id: str) -> str:
    if "/" in session_id or session_id.startswith("%"):
        return f"%{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return session_id
