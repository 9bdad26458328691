"""`SourceStore`: registered sources, addressed by id."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.surrogates import replace_surrogates, to_storable_text
from agent.storage.audit import NO_AUDIT, AuditEvent, AuditLog
from agent.storage.sql import Row, SqlClient
from gateway.features.documents.engine.ingest.allowed_credentials import check_credentials
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.source_pairings import SourcePairings
from gateway.features.documents.engine.search.models import ConnectorInput

PREFIX = "src_"
MAX_SOURCES = 1_000
"""Sources per owner. More than this indicates a loop in a client."""
_COLUMNS = "id, owner, name, request, created"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A registered source. `created` is UTC seconds since 1970."""

    id: str
    owner: str
    name: str
    request: ConnectorInput
    created: float


class SourceStore:
    """The sources of each owner. Methods raise `StoreError`. Local sources must lie beneath `roots`."""

    def __init__(
        self,
        statements: SqlClient,
        roots: Sequence[Path],
        clock: Callable[[], float],
        audit: AuditLog = NO_AUDIT,
        pairings: SourcePairings | None = None,
    ) -> None:
        self._audit = audit
        self.pairings = pairings or SourcePairings(statements)
        self._statements = statements
        self.roots = roots
        self._clock = clock

    async def add(self, owner: str, request: ConnectorInput, name: str = "", *, may_pair: bool = False) -> NamedSource:
        """Registers a source. Returns the existing one if the owner registered it before.

        `may_pair`: the operator, or a person whom they let decide, sends its credential to its address. Raises
        `ConnectorAuthError` for a path outside the roots and for a credential that may not go there,
        `ConnectorNotFoundError` for a path that does not exist, `BadRequestError` if the owner has too many sources.
        """
        if may_pair:
            check_credentials(owner, request)
        else:
            await self.pairings.check(owner, request)
        request = resolve_allowed(request, self.roots)
        known_sources = await self.list(owner, limit=MAX_SOURCES)
        for source in known_sources:
            if source.request == request:
                return source
        if len(known_sources) >= MAX_SOURCES:
            raise BadRequestError(f"there are {MAX_SOURCES} sources already; remove some", param="source_identifier")
        title = replace_surrogates(name.strip() or request.source_identifier)[:200]
        text = replace_surrogates(request.model_dump_json())
        source_id = _make_id(owner, text)
        await self._statements.write(
            f"INSERT INTO sources ({_COLUMNS}) VALUES (?,?,?,?,?) ON CONFLICT (id) DO NOTHING",  # noqa: S608 - constants
            source_id, owner, title, text, self._clock(),
        )  # fmt: skip
        return await self.get(source_id, owner)

    async def get(self, source_id: str, owner: str) -> NamedSource:
        """A source. Raises `NotFoundError`, also for another owner's."""
        query = f"SELECT {_COLUMNS} FROM sources WHERE id = ? AND owner = ?"  # noqa: S608 - constants only
        rows = await self._statements.read(query, to_storable_text(source_id), owner)
        if not rows:
            raise NotFoundError(f"there is no source {source_id[:100]!r}; see GET /v1/sources", agent_id="builder")
        return _parse_row(rows[0])

    async def list(self, owner: str, *, limit: int = 200) -> "list[NamedSource]":
        """The owner's sources, newest first."""
        query = f"SELECT {_COLUMNS} FROM sources WHERE owner = ? ORDER BY created DESC, id LIMIT ?"  # noqa: S608
        return [_parse_row(row) for row in await self._statements.read(query, owner, limit)]

    async def remove(self, source_id: str, owner: str, *, by: str | None = None) -> None:
        """Deletes a source; `by` is recorded. Conversations and collections that used it stay. Raises
        `NotFoundError`."""
        rows = await self._statements.write(
            "DELETE FROM sources WHERE id = ? AND owner = ? RETURNING id", to_storable_text(source_id), owner
        )
        if not rows:
            raise NotFoundError(f"there is no source {source_id[:100]!r}; see GET /v1/sources", agent_id="builder")
        await self._audit.record_afterwards(AuditEvent("source.delete", source_id, owner=owner, by=by))


def _make_id(owner: str, request: str) -> str:
    """The id follows from the source, so that two registrations at once make one source."""
    digest = hashlib.sha256(f"{replace_surrogates(owner)}\0{request}".encode()).hexdigest()
    return f"{PREFIX}{digest[:24]}"


def _parse_row(row: Row) -> NamedSource:
    source_id, owner, name, request, created = row
    return NamedSource(source_id, owner, name, ConnectorInput.model_validate_json(request), float(created))
