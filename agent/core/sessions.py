"""`SessionStore`: what is kept of a conversation by the name its runs give it, to be read and cleared."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.codec import whole
from agent.core.errors import ConflictError, NotFoundError
from agent.core.statements import Change, Statements

HISTORY_TURNS = 200
"""Of a long conversation the newest turns; a run sees fewer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said. `at` is UTC seconds since 1970."""

    role: str
    text: str
    at: float


class SessionStore:
    """Conversations by owner and names: one may have an id and the name a chat gave it. Methods raise `StoreError`."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def history(self, owner: str, names: Sequence[str]) -> list[Turn]:
        """What was said, oldest first."""
        rows = await self._statements.read(
            f"SELECT role, text, at FROM turns WHERE owner = ? AND {_NAMED} ORDER BY id DESC LIMIT ?",  # noqa: S608
            owner, *_two(names), HISTORY_TURNS,
        )  # fmt: skip
        return [Turn(str(role), str(text), float(at)) for role, text, at in reversed(rows)]

    async def newest_run(self, owner: str, names: Sequence[str]) -> str | None:
        """The id of its newest run, which may be under way."""
        rows = await self._statements.read(
            f"SELECT run_id FROM runs WHERE owner = ? AND {_NAMED} "  # noqa: S608 - a constant
            "ORDER BY created_at DESC, run_id DESC LIMIT 1",
            owner, *_two(names),
        )  # fmt: skip
        return str(rows[0][0]) if rows else None

    async def clear(self, owner: str, names: Sequence[str]) -> None:
        """Forget what was said: the next run of the name begins anew. Its runs stay, as runs of no conversation.

        `NotFoundError` where there is nothing, `ConflictError` while a run of it is under way."""
        counted = f"FROM runs WHERE owner = ? AND {_NAMED}"
        values = (owner, *_two(names))
        ((runs, open_runs),) = await self._statements.read(
            f"SELECT count(*), coalesce(sum(CASE WHEN terminal THEN 0 ELSE 1 END), 0) {counted}",
            *values,
        )
        if not runs and not await self.history(owner, names):
            raise unknown(names[0])
        if open_runs:
            raise ConflictError(f"a run of {names[0][:100]!r} is under way; wait for its end, or cancel it")
        await self._statements.write_all(
            Change(f"DELETE FROM turns WHERE owner = ? AND {_NAMED}", values),  # noqa: S608 - a constant
            Change(f"UPDATE runs SET conversation_id = NULL WHERE owner = ? AND {_NAMED}", values),  # noqa: S608
        )


_NAMED = "conversation_id IN (?, ?)"


def unknown(name: str) -> NotFoundError:
    """What is told of a conversation that is not there, or is somebody else's."""
    return NotFoundError(f"there is no conversation {name[:100]!r}")


def _two(names: Sequence[str]) -> tuple[str, str]:
    plain = [whole(name).replace("\x00", "") for name in names]
    return plain[0], plain[-1]
