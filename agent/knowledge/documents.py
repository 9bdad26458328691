"""`DocumentStore`: which documents a collection holds, and who is indexing it. The passages lie in the indexes."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from agent.core.codec import whole
from agent.core.sqlite import Database

if TYPE_CHECKING:
    from agent.core.postgres import PostgresDatabase


@dataclass(frozen=True, slots=True)
class Document:
    """A source as it was indexed; `name` is what people see of it. `checksum` is the SHA-256 of its bytes;
    `document_id` its passages' id, new with each content; `stale` ids of passages that an interrupted replacement may
    have left behind."""

    source: str
    name: str
    document_id: str
    checksum: str
    title: str
    file_type: str
    size: int
    pages: int
    chunk_ids: tuple[str, ...] = ()
    uncertainties: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    at: float = 0.0

    def encoded(self) -> str:
        """As a JSON text."""
        return whole(json.dumps(asdict(self), ensure_ascii=False))

    @staticmethod
    def decoded(text: str) -> "Document":
        """From the JSON text."""
        data = json.loads(text)
        for name in ("chunk_ids", "uncertainties", "stale"):
            data[name] = tuple(data[name])
        return Document(**data)


class DocumentStore(Protocol):
    """The documents by owner and collection. Methods raise `StoreError`."""

    async def list(self, owner: str, collection: str) -> "Sequence[Document]":
        """The documents of a collection in order of their sources; empty for an unknown one."""
        ...

    async def collections(self, owner: str) -> "dict[str, int]":
        """The owner's collections, and how many documents each has."""
        ...

    async def put(self, owner: str, collection: str, document: Document) -> None:
        """Add or replace the document of this source."""
        ...

    async def remove(self, owner: str, collection: str, source: str) -> None:
        """Forget a source; forgetting what is not there is done already."""
        ...

    async def hold(self, owner: str, collection: str, holder: str, seconds: float) -> bool:
        """Keep others from indexing for so long; False while somebody else does. Holding again prolongs."""
        ...

    async def let_go(self, owner: str, collection: str, holder: str) -> None:
        """Let others index."""
        ...


class SqliteDocuments:
    """Implements `DocumentStore` in the store's file."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def list(self, owner: str, collection: str) -> Sequence[Document]:
        """See `DocumentStore.list`."""

        def unit(db: sqlite3.Connection) -> list[Document]:
            query = "SELECT data FROM documents WHERE owner = ? AND collection = ? ORDER BY source"
            return [Document.decoded(row[0]) for row in db.execute(query, (owner, collection)).fetchall()]

        return await self._database.read(unit)

    async def collections(self, owner: str) -> dict[str, int]:
        """See `DocumentStore.collections`."""

        def unit(db: sqlite3.Connection) -> dict[str, int]:
            query = "SELECT collection, count(*) FROM documents WHERE owner = ? GROUP BY collection ORDER BY collection"
            return {str(name): int(count) for name, count in db.execute(query, (owner,)).fetchall()}

        return await self._database.read(unit)

    async def put(self, owner: str, collection: str, document: Document) -> None:
        """See `DocumentStore.put`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT OR REPLACE INTO documents (owner, collection, source, document_id, checksum, data, at) "
                "VALUES (?,?,?,?,?,?,?)",
                _row(owner, collection, document),
            )

        await self._database.run(unit)

    async def remove(self, owner: str, collection: str, source: str) -> None:
        """See `DocumentStore.remove`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute(
                "DELETE FROM documents WHERE owner = ? AND collection = ? AND source = ?",
                (owner, collection, whole(source)),
            )

        await self._database.run(unit)

    async def hold(self, owner: str, collection: str, holder: str, seconds: float) -> bool:
        """See `DocumentStore.hold`."""

        def unit(db: sqlite3.Connection) -> bool:
            now = self._clock()
            row = db.execute(
                "INSERT INTO ingestions (owner, collection, holder, until) VALUES (?,?,?,?) "
                "ON CONFLICT (owner, collection) DO UPDATE SET holder = excluded.holder, until = excluded.until "
                "WHERE ingestions.holder = excluded.holder OR ingestions.until < ? RETURNING holder",
                (owner, collection, holder, now + seconds, now),
            ).fetchone()
            return row is not None

        return await self._database.run(unit)

    async def let_go(self, owner: str, collection: str, holder: str) -> None:
        """See `DocumentStore.let_go`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute(
                "DELETE FROM ingestions WHERE owner = ? AND collection = ? AND holder = ?", (owner, collection, holder)
            )

        await self._database.run(unit)


class PostgresDocuments:
    """Implements `DocumentStore` on PostgreSQL."""

    def __init__(self, database: "PostgresDatabase", clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def list(self, owner: str, collection: str) -> Sequence[Document]:
        """See `DocumentStore.list`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "SELECT data FROM documents WHERE owner = %s AND collection = %s ORDER BY source", (owner, collection)
            )
            return [Document.decoded(row[0]) for row in await cursor.fetchall()]

    async def collections(self, owner: str) -> dict[str, int]:
        """See `DocumentStore.collections`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "SELECT collection, count(*) FROM documents WHERE owner = %s GROUP BY collection ORDER BY collection",
                (owner,),
            )
            return {str(row[0]): int(row[1]) for row in await cursor.fetchall()}

    async def put(self, owner: str, collection: str, document: Document) -> None:
        """See `DocumentStore.put`."""
        async with self._database.transaction() as db:
            await db.execute(
                "INSERT INTO documents (owner, collection, source, document_id, checksum, data, at) "
                "VALUES (%s,%s,%s,%s,%s,%s,%s) ON CONFLICT (owner, collection, source) DO UPDATE SET "
                "document_id = excluded.document_id, checksum = excluded.checksum, data = excluded.data, "
                "at = excluded.at",
                _row(owner, collection, document),
            )

    async def remove(self, owner: str, collection: str, source: str) -> None:
        """See `DocumentStore.remove`."""
        async with self._database.transaction() as db:
            await db.execute(
                "DELETE FROM documents WHERE owner = %s AND collection = %s AND source = %s",
                (owner, collection, whole(source)),
            )

    async def hold(self, owner: str, collection: str, holder: str, seconds: float) -> bool:
        """See `DocumentStore.hold`."""
        now = self._clock()
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "INSERT INTO ingestions (owner, collection, holder, until) VALUES (%s,%s,%s,%s) "
                "ON CONFLICT (owner, collection) DO UPDATE SET holder = excluded.holder, until = excluded.until "
                "WHERE ingestions.holder = excluded.holder OR ingestions.until < %s RETURNING holder",
                (owner, collection, holder, now + seconds, now),
            )
            return await cursor.fetchone() is not None

    async def let_go(self, owner: str, collection: str, holder: str) -> None:
        """See `DocumentStore.let_go`."""
        async with self._database.transaction() as db:
            await db.execute(
                "DELETE FROM ingestions WHERE owner = %s AND collection = %s AND holder = %s",
                (owner, collection, holder),
            )


def _row(owner: str, collection: str, document: Document) -> tuple[object, ...]:
    return (
        owner,
        collection,
        whole(document.source),
        document.document_id,
        document.checksum,
        document.encoded(),
        document.at,
    )
