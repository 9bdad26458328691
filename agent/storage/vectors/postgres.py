"""The rows of an `ExactIndex` on PostgreSQL, for several machines without a Qdrant."""

import secrets
from collections.abc import Mapping, Sequence

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from agent.core.vector_space import VectorSpace
from agent.storage.postgres import PostgresDatabase
from agent.storage.vectors.exact import SetVersion, VectorChanges, VectorRow
from agent.storage.vectors.port import Entry, Item
from agent.storage.vectors.rows import ITEM_COLUMNS, check_dimension, check_owners, encode_payload, parse_item


class PostgresVectorRows:
    """Implements `VectorRows`. A put locks the set's row until the commit, so `seq` follows the order of commits."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def open(self, name: str, space: VectorSpace) -> VectorSpace:
        """See `VectorRows.open`."""
        async with self._database.transaction() as db:
            stored = await _read_space(db, name)
            if stored is None:
                await db.execute(
                    "INSERT INTO vector_sets (name, embedder, dimension, generation) VALUES (%s,%s,%s,%s) "
                    "ON CONFLICT DO NOTHING",
                    (name, space.embedder, space.dimension, secrets.token_hex(8)),
                )
                stored = await _read_space(db, name)
            return stored or space

    async def put(self, name: str, dimension: int, entries: Sequence[tuple[Entry, bytes]]) -> None:
        """See `VectorRows.put`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "UPDATE vector_sets SET added = added + %s WHERE name = %s RETURNING added", (len(entries), name)
            )
            row = await cursor.fetchone()
            check_dimension(name, await _read_space(db, name), dimension)
            ids = [entry.id for entry, _ in entries]
            cursor = await db.execute("SELECT id, owner FROM vectors WHERE name = %s AND id = ANY(%s)", (name, ids))
            owners = {str(existing[0]): str(existing[1]) for existing in await cursor.fetchall()}
            replaced = check_owners(owners, [entry for entry, _ in entries])
            if replaced:
                await db.execute("UPDATE vector_sets SET removed = removed + %s WHERE name = %s", (replaced, name))
            first = (row[0] if row else len(entries)) - len(entries) + 1
            rows = {
                e.id: (e.id, e.owner, e.scope, first + index, e.at, vector, encode_payload(e))
                for index, (e, vector) in enumerate(entries)
            }
            # One statement, as in the journal: a process that is stopped within a pipeline keeps its locks.
            await db.execute(
                "INSERT INTO vectors (name, id, owner, scope, seq, at, vector, payload) SELECT %s, * FROM "
                "unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::float8[], %s::bytea[], %s::text[]) "
                "ON CONFLICT (name, id) DO UPDATE SET scope = excluded.scope, "
                "seq = excluded.seq, at = excluded.at, vector = excluded.vector, payload = excluded.payload",
                [name, *(list(column) for column in zip(*rows.values(), strict=True))],
            )

    async def read_changes(self, name: str, owner: str, since: SetVersion | None) -> VectorChanges | None:
        """See `VectorRows.read_changes`."""
        async with self._database.begin_single_query() as db:
            version = await _read_version(db, name)
        if version is None:
            return None
        if version == since:  # nearly always, and asked for before each search
            return VectorChanges(version, (), is_complete=False)
        async with self._database.transaction() as db:
            # One snapshot for both queries, so that the version matches the rows.
            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            version = await _read_version(db, name)
            if version is None:
                return None
            after = since.added if since is not None and since.has_only_additions_until(version) else 0
            cursor = await db.execute(
                "SELECT id, scope, vector FROM vectors WHERE name = %s AND owner = %s AND seq > %s ORDER BY seq",
                (name, owner, after),
            )
            rows = [VectorRow(str(r[0]), str(r[1]), bytes(r[2])) for r in await cursor.fetchall()]
            return VectorChanges(version, rows, is_complete=after == 0)

    async def read_items(self, name: str, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """See `VectorRows.read_items`."""
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(
                f"SELECT {ITEM_COLUMNS} FROM vectors WHERE name = %s AND owner = %s AND id = ANY(%s)",  # noqa: S608 - constants
                (name, owner, list(ids)),
            )
            items = [parse_item(row) for row in await cursor.fetchall()]
        return {item.id: item for item in items}

    async def read_vectors(
        self, name: str, owner: str, ids: Sequence[str]
    ) -> tuple[VectorSpace | None, Mapping[str, bytes]]:
        """See `VectorRows.read_vectors`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "SELECT id, vector FROM vectors WHERE name = %s AND owner = %s AND id = ANY(%s)",
                (name, owner, list(ids)),
            )
            return await _read_space(db, name), {str(row[0]): bytes(row[1]) for row in await cursor.fetchall()}

    async def list_items(self, name: str, owner: str | None, limit: int, scopes: Sequence[str] | None) -> list[Item]:
        """See `VectorRows.list_items`."""
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(
                f"SELECT {ITEM_COLUMNS} FROM vectors WHERE name = %s AND (%s::text IS NULL OR owner = %s) "  # noqa: S608
                "AND (%s::text[] IS NULL OR scope = ANY(%s)) ORDER BY seq DESC LIMIT %s",
                (name, owner, owner, *(2 * (None if scopes is None else list(scopes),)), limit),
            )
            return [parse_item(row) for row in await cursor.fetchall()]

    async def delete(self, name: str, owner: str, ids: Sequence[str]) -> int:
        """See `VectorRows.delete`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(
                "DELETE FROM vectors WHERE name = %s AND owner = %s AND id = ANY(%s)", (name, owner, list(ids))
            )
            if cursor.rowcount:
                await db.execute(
                    "UPDATE vector_sets SET removed = removed + %s WHERE name = %s", (cursor.rowcount, name)
                )
            return cursor.rowcount

    async def count_larger_than(self, count: int) -> Mapping[str, int]:
        """See `VectorRows.count_larger_than`."""
        query = "SELECT name, count(*) FROM vectors GROUP BY name, owner HAVING count(*) > %s"
        async with self._database.begin_single_query() as db:
            rows = await (await db.execute(query, (count,))).fetchall()
        return {str(row[0]): int(row[1]) for row in rows}

    async def drop(self, name: str) -> None:
        """See `VectorRows.drop`."""
        async with self._database.transaction() as db:
            await db.execute("DELETE FROM vectors WHERE name = %s", (name,))
            await db.execute("DELETE FROM vector_sets WHERE name = %s", (name,))


async def _read_version(db: AsyncConnection[TupleRow], name: str) -> SetVersion | None:
    cursor = await db.execute("SELECT generation, added, removed FROM vector_sets WHERE name = %s", (name,))
    row = await cursor.fetchone()
    return None if row is None else SetVersion(row[0], row[1], row[2])


async def _read_space(db: AsyncConnection[TupleRow], name: str) -> VectorSpace | None:
    cursor = await db.execute("SELECT embedder, dimension FROM vector_sets WHERE name = %s", (name,))
    row = await cursor.fetchone()
    return None if row is None else VectorSpace(str(row[0]), int(row[1]))
