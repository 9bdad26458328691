"""`SourceStore`: sources that were named once and are spoken of by their ids; and from an id to the source."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.audit import UNRECORDED, Act, AuditLog
from agent.core.codec import storable, whole
from agent.core.errors import BadRequestError, NotFoundError
from agent.core.statements import Row, Statements
from agent.knowledge.models import ConnectorInput
from agent.knowledge.roots import beneath

PREFIX = "src_"
MOST_SOURCES = 1_000
"""Sources of one owner; more are a loop somewhere."""
_COLUMNS = "id, owner, name, request, created"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that somebody registered. `created` is UTC seconds since 1970."""

    id: str
    owner: str
    name: str
    request: ConnectorInput
    created: float


class SourceStore:
    """The sources by owner; another owner's are not there. Methods raise `StoreError`. `roots` are the folders that
    local sources lie beneath."""

    def __init__(
        self,
        statements: Statements,
        roots: Sequence[Path],
        clock: Callable[[], float],
        audit: AuditLog = UNRECORDED,
    ) -> None:
        self._audit = audit
        self._statements = statements
        self.roots = tuple(roots)
        self._clock = clock

    async def add(self, owner: str, request: ConnectorInput, name: str = "") -> NamedSource:
        """Register a source; one that the owner has already is returned as it is.

        Raises `ConnectorAuthError` for a path outside the roots, `ConnectorNotFoundError` for one that is not there,
        `BadRequestError` when there are too many."""
        request = beneath(request, self.roots)
        known = await self.list(owner, limit=MOST_SOURCES)
        for source in known:
            if source.request == request:
                return source
        if len(known) >= MOST_SOURCES:
            raise BadRequestError(f"there are {MOST_SOURCES} sources already; remove some", param="source_identifier")
        title = whole(name.strip() or request.source_identifier)[:200]
        source = NamedSource(f"{PREFIX}{secrets.token_hex(12)}", owner, title, request, self._clock())
        await self._statements.write(
            f"INSERT INTO sources ({_COLUMNS}) VALUES (?,?,?,?,?)",  # noqa: S608 - constants only
            source.id, owner, source.name, whole(request.model_dump_json()), source.created,
        )  # fmt: skip
        return source

    async def get(self, source_id: str, owner: str) -> NamedSource:
        """A source. `NotFoundError`, for another owner's too."""
        query = f"SELECT {_COLUMNS} FROM sources WHERE id = ? AND owner = ?"  # noqa: S608 - constants only
        rows = await self._statements.read(query, storable(source_id), owner)
        if not rows:
            raise NotFoundError(f"there is no source {source_id[:100]!r}; see GET /v1/sources", agent_id="builder")
        return _source(rows[0])

    async def list(self, owner: str, *, limit: int = 200) -> "list[NamedSource]":
        """The owner's sources, newest first."""
        query = f"SELECT {_COLUMNS} FROM sources WHERE owner = ? ORDER BY created DESC, id LIMIT ?"  # noqa: S608
        return [_source(row) for row in await self._statements.read(query, owner, limit)]

    async def remove(self, source_id: str, owner: str, *, by: str | None = None) -> None:
        """Forget a source, `by` whom is recorded; conversations and collections it was read into stay.
        `NotFoundError`."""
        rows = await self._statements.write(
            "DELETE FROM sources WHERE id = ? AND owner = ? RETURNING id", storable(source_id), owner
        )
        if not rows:
            raise NotFoundError(f"there is no source {source_id[:100]!r}; see GET /v1/sources", agent_id="builder")
        await self._audit.note(Act("source.delete", source_id, owner=owner, by=by))


def _source(row: Row) -> NamedSource:
    source_id, owner, name, request, created = row
    return NamedSource(source_id, owner, name, ConnectorInput.model_validate_json(request), float(created))
