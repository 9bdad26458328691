"""`DocumentStore`: the documents of each collection, the lock of its writer, and what may be half written.

The passages are stored in the indexes.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from agent.core.models import JsonObject
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import SqlClient, SqlStatement
from gateway.features.documents.engine.search.models import Coverage, FileType, SourceType


class PassageRange(NamedTuple):
    """The passages of one version of a document: their common id and their number."""

    document_id: str
    amount: int

    @property
    def chunk_ids(self) -> list[str]:
        """The chunk ids of the passages."""
        return [f"{self.document_id}.{number}" for number in range(self.amount)]


class PendingPassages(NamedTuple):
    """Passages that may be half written, and the claim of their writer."""

    passages: PassageRange
    claim: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was indexed.

    `name` is shown to people. `checksum` is the SHA-256 of the bytes; `document_id` changes with the content. `stale`
    are passages that an interrupted replacement may have left in the index. `version` is what the source uses to
    distinguish contents, such as an ETag. `fingerprint` identifies the pipeline that read the document (empty: the
    default pipeline), `embedder` the model of its vectors (empty: no vectors).
    """

    source: str
    name: str
    document_id: str
    checksum: str
    title: str
    file_type: FileType
    size: int
    pages: int
    chunk_ids: tuple[str, ...] = ()
    uncertainties: tuple[str, ...] = ()
    stale: tuple[PassageRange, ...] = ()
    at: float = 0.0
    version: str = ""
    fingerprint: str = ""
    embedder: str = ""
    source_type: SourceType = "local"
    url: str | None = None
    coverage: Coverage | None = None
    """Absent for documents read by an earlier version, and for those without text that can be counted."""
    processing_time_ms: float = 0.0
    """How long reading and splitting the file took; 0 for documents read by an earlier version."""
    source_metadata: JsonObject = field(default_factory=dict)
    """What the source says of the file: headers, owners, times."""

    def to_json(self) -> str:
        """The document as JSON text."""
        data = asdict(self) | {"coverage": self.coverage.model_dump() if self.coverage is not None else None}
        return replace_surrogates(json.dumps(data, ensure_ascii=False))

    @staticmethod
    def from_json(text: str) -> "Document":
        """The document from JSON text of this version or an earlier one."""
        data: dict[str, Any] = json.loads(text)
        for name in ("chunk_ids", "uncertainties"):
            data[name] = tuple(data[name])
        # Before the passages were counted, only their id was kept.
        data["stale"] = tuple(
            PassageRange(one, 0) if isinstance(one, str) else PassageRange(*one) for one in data["stale"]
        )
        coverage = data.get("coverage")
        data["coverage"] = Coverage.model_validate(coverage) if coverage is not None else None
        field_names = {one.name for one in fields(Document)}
        return Document(**{name: value for name, value in data.items() if name in field_names})


def make_document_id(*parts: str) -> str:
    """A document id, a hash of the parts that identify the document."""
    digest = hashlib.blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=12)
    return f"doc_{digest.hexdigest()}"


class DocumentStore:
    """Stores documents by owner and collection. All methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def list(self, owner: str, collection: str) -> "Sequence[Document]":
        """The documents of a collection ordered by source; empty if the collection is unknown."""
        rows = await self._statements.read(
            "SELECT data FROM documents WHERE owner = ? AND collection = ? ORDER BY source",
            owner,
            replace_surrogates(collection),
        )
        return [Document.from_json(row[0]) for row in rows]

    async def list_newest(self, owner: str, limit: int) -> "Sequence[tuple[str, Document]]":
        """Lists the documents of all collections that were read last, each with its collection."""
        rows = await self._statements.read(
            "SELECT collection, data FROM documents WHERE owner = ? ORDER BY at DESC, document_id LIMIT ?", owner, limit
        )
        return [(str(row[0]), Document.from_json(row[1])) for row in rows]

    async def stamp(self, owner: str) -> "tuple[int, float]":
        """The number of documents and when the last one was read, in UTC seconds since 1970."""
        (row,) = await self._statements.read("SELECT count(*), max(at) FROM documents WHERE owner = ?", owner)
        return int(row[0]), float(row[1] or 0)

    async def get_by_source(self, owner: str, collection: str, source: str) -> Document | None:
        """The document of a source, or None."""
        rows = await self._statements.read(
            "SELECT data FROM documents WHERE owner = ? AND collection = ? AND source = ?",
            owner,
            replace_surrogates(collection),
            replace_surrogates(source),
        )
        return Document.from_json(rows[0][0]) if rows else None

    async def get_by_id(self, owner: str, document_id: str) -> "Mapping[str, Document]":
        """The documents with an id, by collection.

        Several collections share an id if an earlier version read the same source into them.
        """
        rows = await self._statements.read(
            "SELECT collection, data FROM documents WHERE owner = ? AND document_id = ? ORDER BY collection",
            owner,
            replace_surrogates(document_id),
        )
        return {str(row[0]): Document.from_json(row[1]) for row in rows}

    async def find_current_ids(self, owner: str, collection: str, document_ids: Sequence[str]) -> AbstractSet[str]:
        """Which of these ids are those of documents."""
        if not document_ids:
            return frozenset()
        rows = await self._statements.read(
            "SELECT document_id FROM documents WHERE owner = ? AND collection = ? "  # noqa: S608 - question marks only
            f"AND document_id IN ({','.join('?' * len(document_ids))})",
            owner,
            replace_surrogates(collection),
            *document_ids,
        )
        return {str(row[0]) for row in rows}

    async def list_with_stale(self, owner: str, collection: str) -> "Sequence[Document]":
        """The documents that replaced others whose passages may still be there."""
        rows = await self._statements.read(
            "SELECT data FROM documents WHERE owner = ? AND collection = ? AND data LIKE ?",
            owner,
            replace_surrogates(collection),
            '%"stale": [[%',
        )
        return [one for row in rows if (one := Document.from_json(row[0])).stale]

    async def count_collections_with(self, owner: str, source: str, checksum: str) -> int:
        """Counts the collections of an owner that hold these bytes of a source."""
        rows = await self._statements.read(
            "SELECT count(*) FROM documents WHERE owner = ? AND checksum = ? AND source = ?",
            owner,
            checksum,
            replace_surrogates(source),
        )
        return int(rows[0][0])

    async def count_by_collection(self, owner: str) -> "dict[str, int]":
        """The number of documents in each of the owner's collections that has any."""
        rows = await self._statements.read(
            "SELECT collection, count(*) FROM documents WHERE owner = ? GROUP BY collection ORDER BY collection", owner
        )
        return {str(name): int(count) for name, count in rows}

    async def get_by_sources(self, owner: str, collection: str, sources: Sequence[str]) -> "Mapping[str, Document]":
        """The documents of sources, by source; unknown ones are left out."""
        if not sources:
            return {}
        wanted = {replace_surrogates(source): source for source in sources}
        rows = await self._statements.read(
            "SELECT source, data FROM documents WHERE owner = ? AND collection = ? "  # noqa: S608 - question marks only
            f"AND source IN ({','.join('?' * len(wanted))})",
            owner,
            replace_surrogates(collection),
            *wanted,
        )
        return {wanted[row[0]]: Document.from_json(row[1]) for row in rows}

    async def put(self, owner: str, collection: str, document: Document) -> None:
        """Adds the document, or replaces the one with the same source."""
        await self.place(owner, collection, [document])

    async def place(
        self,
        owner: str,
        collection: str,
        documents: Sequence[Document],
        *changes: SqlStatement,
        claim: str | None = None,
    ) -> None:
        """Adds documents or replaces those with the same source, forgets what was noted as pending by `claim`, and
        makes further changes before, all in one transaction. Raises `UnchangedError` if one of these fails."""
        forget = "DELETE FROM pending_passages WHERE owner = ? AND collection = ? AND holder = ?"
        place = (owner, replace_surrogates(collection))
        statements = [*changes]
        if documents:
            statements.append(_make_put(place, documents))
        if claim is not None:
            statements.append(SqlStatement(forget, (*place, claim)))
        await self._statements.write_all(*statements)

    async def remove(self, owner: str, collection: str, source: str) -> None:
        """Removes the document of a source, if there is one."""
        await self._statements.write(
            "DELETE FROM documents WHERE owner = ? AND collection = ? AND source = ?",
            owner,
            replace_surrogates(collection),
            replace_surrogates(source),
        )

    async def acquire_lock(self, owner: str, collection: str, holder: str, seconds: float) -> bool:
        """Locks a collection for indexing for `seconds`; the holder can call it again to extend the lock.

        Returns False while another holder has the lock.
        """
        now = self._clock()
        rows = await self._statements.write(
            "INSERT INTO ingestions (owner, collection, holder, until, pending) VALUES (?,?,?,?,'') "
            "ON CONFLICT (owner, collection) DO UPDATE SET holder = excluded.holder, until = excluded.until "
            "WHERE ingestions.holder = excluded.holder OR ingestions.until < ? RETURNING holder",
            owner,
            replace_surrogates(collection),
            holder,
            now + seconds,
            now,
        )
        return bool(rows)

    async def get_pending(self, owner: str, collection: str) -> "Sequence[PendingPassages]":
        """The passages that were about to be written and may have been, by the claims of their writers."""
        rows = await self._statements.read(
            "SELECT document_id, amount, holder FROM pending_passages WHERE owner = ? AND collection = ? "
            "ORDER BY document_id",
            owner,
            replace_surrogates(collection),
        )
        return [PendingPassages(PassageRange(str(row[0]), int(row[1])), str(row[2])) for row in rows]

    async def note_pending(
        self, owner: str, collection: str, holder: str, claim: str, passages: Sequence[PassageRange]
    ) -> bool:
        """Notes the passages that `claim` is about to write. Returns False if `holder` has lost the lock by now."""
        if not passages:
            return True
        rows = await self._statements.write(
            "INSERT INTO pending_passages (owner, collection, document_id, amount, holder) "  # noqa: S608 - question marks only
            "SELECT owner, collection, column1, column2, ? FROM ingestions, "
            f"(VALUES {','.join(['(?,?)'] * len(passages))}) AS noted "
            "WHERE owner = ? AND collection = ? AND holder = ? "
            "ON CONFLICT (owner, collection, document_id) DO UPDATE SET amount = excluded.amount, "
            "holder = excluded.holder RETURNING document_id",
            claim,
            *(value for one in passages for value in (one.document_id, one.amount)),
            owner,
            replace_surrogates(collection),
            holder,
        )
        return bool(rows)

    async def clear_pending(self, owner: str, collection: str, document_ids: Sequence[str]) -> None:
        """Forgets pending passages."""
        forget = "DELETE FROM pending_passages WHERE owner = ? AND collection = ? AND document_id = ?"
        place = (owner, replace_surrogates(collection))
        await self._statements.write_all(*(SqlStatement(forget, (*place, one)) for one in document_ids))

    async def release_lock(self, owner: str, collection: str, holder: str, worker: str = "") -> None:
        """Releases the lock, unless its holder is a job that another worker than `worker` has by now. Pending passages
        stay recorded for the next holder."""
        await self._statements.write(
            "DELETE FROM ingestions WHERE owner = ? AND collection = ? AND holder = ? AND NOT EXISTS "
            "(SELECT 1 FROM jobs WHERE jobs.id = ingestions.holder AND jobs.status = 'running' AND jobs.worker <> ?)",
            owner,
            replace_surrogates(collection),
            holder,
            worker,
        )


def _make_put(place: tuple[str, str], documents: Sequence[Document]) -> SqlStatement:
    """The statement that adds or replaces documents, all at once."""
    rows = ",".join(["(?,?,?,?,?,?,?)"] * len(documents))
    return SqlStatement(
        f"INSERT INTO documents (owner, collection, source, document_id, checksum, data, at) VALUES {rows} "  # noqa: S608
        "ON CONFLICT (owner, collection, source) DO UPDATE SET document_id = excluded.document_id, "
        "checksum = excluded.checksum, data = excluded.data, at = excluded.at",
        tuple(
            value
            for one in documents
            for value in (
                *place, replace_surrogates(one.source), one.document_id, one.checksum, one.to_json(), one.at
            )
        ),
    )  # fmt: skip
