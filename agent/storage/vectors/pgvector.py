"""`PgvectorIndex`: an `ExactIndex` on PostgreSQL that hands large sets to pgvector's HNSW index, where the database has
the extension (`CREATE EXTENSION vector`, 0.8 or later).

The rows of `vectors` stay the truth. A large set gets a table of its own with half-precision vectors and an HNSW index.
It follows the rows: a search first copies what was added or replaced since, and what is deleted goes by foreign key. So
it does not matter which process stored a vector, or whether it knew of pgvector. The candidates that the index finds
are compared again with the stored vectors, so that scores are exact.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import StoreError, VectorSpaceError
from agent.storage.postgres import PostgresDatabase
from agent.storage.vectors.exact import ExactIndex, normalize
from agent.storage.vectors.port import Entry, Hit, QueryVector, compute_query
from agent.storage.vectors.postgres import PostgresVectorRows
from agent.storage.vectors.rows import ITEM_COLUMNS, parse_item

log = logging.getLogger(__name__)

EXACT_UNTIL = 20_000
"""Vectors of a set that are compared one by one: within 2 ms, and without a second copy."""
MIN_VERSION = (0, 8)
"""The first pgvector that goes on searching its index until enough of what it finds passes the filters."""
MAX_INDEXED_DIMENSION = 4_000
"""More half-precision numbers pgvector does not index; such sets are compared one by one by the server."""
CANDIDATES_PER_HIT = 2
MIN_CANDIDATES = 100
"""Candidates that the index proposes, as `hnsw.ef_search`: more find more of the nearest, and take longer."""
BATCH_ROWS = 2_000
WAIT_SECONDS = 10.0
"""How long a search waits for the table to follow the rows. Afterwards it is refused, and words are searched."""
LOCK_POLL_SECONDS = 0.2
"""How often a process asks for a table that another one writes. It holds no connection meanwhile."""
INDEX_POLL_SECONDS = 2.0
"""How often a process looks for an index that another one makes."""


@dataclass(frozen=True, slots=True)
class _LargeSet:
    """A set with more than `EXACT_UNTIL` vectors. `added` numbers its latest one."""

    name: str
    generation: str
    added: int
    dimension: int

    @property
    def table(self) -> str:
        """The name of its table. A set that was dropped and created again has another one."""
        digest = hashlib.blake2b(f"{self.name}\n{self.generation}".encode(), digest_size=8).hexdigest()
        return f"vectors_hnsw_{digest}"

    @property
    def index(self) -> str:
        """The name of the HNSW index of its table."""
        return f"{self.table}_hnsw"


class PgvectorIndex(ExactIndex):
    """Implements `VectorIndex`."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(PostgresVectorRows(database))
        self._database = database
        self._is_available: bool | None = None
        self._followed: dict[tuple[str, str], int] = {}
        self._wanted: dict[str, set[str]] = {}
        """The owners whose rows a table lacks."""
        self._following: dict[str, asyncio.Task[None]] = {}
        """The task that writes a table."""

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """See `VectorIndex.put`. The table of a large set follows in the background."""
        await super().put(name, entries)
        if entries and (large := await self._read_large_set(name)) is not None:
            for owner in {entry.owner for entry in entries}:
                self._follow_in_background(large, owner)

    async def search(
        self, name: str, vector: QueryVector, *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """See `VectorIndex.search`. Raises `StoreError` while a large set is indexed for the first time."""
        large = await self._read_large_set(name)
        if large is None:
            return await super().search(name, vector, owner=owner, limit=limit, scopes=scopes)
        query = normalize(compute_query(vector))
        if query.shape[0] != large.dimension:
            raise VectorSpaceError(
                f"the query has {query.shape[0]} numbers, the vectors of {name!r} have {large.dimension}",
                agent_id="memory",
            )
        await self._wait_until_followed(large, owner)
        rows = await self._find_candidates(large, query.tolist(), owner, limit, scopes)
        scores = [float(np.frombuffer(row[-1], "<f4") @ query) for row in rows]
        hits = [Hit(parse_item(row), score) for row, score in zip(rows, scores, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.item.id))[:limit]

    async def list_outgrown(self) -> dict[str, int]:
        """See `VectorIndex.list_outgrown`. With pgvector, only sets with vectors too long for its index."""
        outgrown = dict(await super().list_outgrown())
        large_sets = {name: await self._read_large_set(name) for name in outgrown}
        return {
            name: count
            for name, count in outgrown.items()
            if (large := large_sets[name]) is None or large.dimension > MAX_INDEXED_DIMENSION
        }

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        large = await self._read_large_set(name, more_than=-1)
        await super().drop(name)
        if large is not None:
            await self._cancel([large.table])
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._drop_table(large)
            except TimeoutError:
                log.info("%s is dropped by the process that makes its index", large.table)

    async def close(self) -> None:
        """See `VectorIndex.close`. What was not copied yet is copied later."""
        await self._cancel(list(self._following))
        await super().close()

    async def _read_large_set(self, name: str, *, more_than: int | None = None) -> _LargeSet | None:
        """The set if pgvector serves it, else None. `more_than` stands in for `EXACT_UNTIL`."""
        if self._is_available is None:
            async with self._database.begin_single_query() as db:
                row = await _fetch_one(db, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            self._is_available = row is not None and _parse_version(str(row[0])) >= MIN_VERSION
        if not self._is_available:
            return None
        query = "SELECT generation, added, dimension FROM vector_sets WHERE name = %s AND added - removed > %s"
        async with self._database.begin_single_query() as db:
            row = await _fetch_one(db, query, name, EXACT_UNTIL if more_than is None else more_than)
        return None if row is None else _LargeSet(name, str(row[0]), int(row[1]), int(row[2]))

    async def _find_candidates(
        self, large: _LargeSet, query: Sequence[float], owner: str, limit: int, scopes: Sequence[str] | None
    ) -> list[TupleRow]:
        """Items with their stored vectors, the nearest by half-precision vectors."""
        wanted = max(MIN_CANDIDATES, CANDIDATES_PER_HIT * limit)
        scoped = sql.SQL("AND scope = ANY(%(scopes)s)" if scopes is not None else "")
        columns = sql.SQL(", ").join(sql.Identifier("v", one) for one in (*ITEM_COLUMNS.split(", "), "vector"))
        find = sql.SQL(
            "SELECT {columns} FROM (SELECT id, seq FROM {table} WHERE owner = %(owner)s {scoped} "
            "ORDER BY embedding <#> %(query)s::halfvec LIMIT %(wanted)s) AS nearest "
            # A row that was replaced since has another number.
            "JOIN vectors AS v ON v.name = %(name)s AND v.id = nearest.id AND v.seq = nearest.seq"
        ).format(columns=columns, table=sql.Identifier(large.table), scoped=scoped)
        async with self._database.transaction() as db:
            await db.execute(
                "SELECT set_config('hnsw.ef_search', %s, true), "
                "set_config('hnsw.iterative_scan', 'relaxed_order', true)",
                (str(min(1_000, wanted)),),
            )
            cursor = await db.execute(
                find,
                {"owner": owner, "scopes": scopes and list(scopes), "query": str(list(query)), "wanted": wanted}
                | {"name": large.name},
                prepare=False,  # a generic plan would not know how many vectors the owner has
            )
            return await cursor.fetchall()

    async def _wait_until_followed(self, large: _LargeSet, owner: str) -> None:
        """Waits until the table has all that was stored before this search. Raises `StoreError`."""
        key = (large.table, owner)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while self._followed.get(key, -1) < large.added:
                    await asyncio.shield(self._follow_in_background(large, owner))
        except TimeoutError:
            raise StoreError(
                f"the vectors of {large.name!r} are being indexed by pgvector, which takes minutes for a million; "
                "try again then",
                agent_id="memory",
            ) from None

    def _follow_in_background(self, large: _LargeSet, owner: str) -> asyncio.Task[None]:
        self._wanted.setdefault(large.table, set()).add(owner)
        running = self._following.get(large.table)
        if running is None or running.done():
            running = asyncio.create_task(self._follow(large), name=f"follow {large.table}")
            self._following[large.table] = running
            # A search reports a failure; nobody may be waiting when there is one after a put.
            running.add_done_callback(lambda task: None if task.cancelled() else task.exception() and None)
        return running

    async def _follow(self, large: _LargeSet) -> None:
        """Copies what the table lacks of the rows of owners, then makes the index."""
        await self._create_table(large)
        wanted, followed, copied = self._wanted[large.table], {}, 0
        while wanted:
            owner = wanted.pop()
            current = await self._read_large_set(large.name) or large
            while (count := await self._copy_batch(large, owner)) > 0:
                copied += count
            followed[large.table, owner] = current.added
        if large.dimension <= MAX_INDEXED_DIMENSION:
            while not await self._has_hnsw_index(large):
                await self._create_hnsw_index(large)
        if copied > BATCH_ROWS:
            async with self._lock_table(large.table) as db:
                await db.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(large.table)))
        now = await self._read_large_set(large.name, more_than=-1)
        if now is not None and now.generation == large.generation:
            self._followed |= followed
        else:  # it was dropped meanwhile
            await self._drop_table(large)

    async def _create_table(self, large: _LargeSet) -> None:
        async with self._database.begin_single_query() as db:
            if await _fetch_one(db, "SELECT to_regclass(%s)", large.table) != (None,):
                return
        create = sql.SQL(
            "CREATE TABLE IF NOT EXISTS {table} (name text NOT NULL, id text NOT NULL, owner text NOT NULL, "
            "scope text NOT NULL, seq bigint NOT NULL, embedding halfvec({dimension}) NOT NULL, "
            "PRIMARY KEY (name, id), FOREIGN KEY (name, id) REFERENCES vectors (name, id) ON DELETE CASCADE)"
        ).format(table=sql.Identifier(large.table), dimension=sql.Literal(large.dimension))
        index = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} (owner, seq)").format(
            sql.Identifier(f"{large.table}_by_owner"), sql.Identifier(large.table)
        )
        async with self._lock_table(large.table) as db:
            await db.execute(create)
            await db.execute(index)

    async def _create_hnsw_index(self, large: _LargeSet) -> None:
        """Makes the index, or waits a moment while another process does. Rows can be deleted meanwhile."""
        name, table = sql.Identifier(large.index), sql.Identifier(large.table)
        async with self._database.separate_connection() as db:
            if await _try_lock(db, "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", large.table):
                if not await _is_valid_index(db, large.index):  # nobody else has made it just now
                    await db.execute("SET maintenance_work_mem = '512MB'")
                    # What a process that ended in the middle has left is not valid, and is not used.
                    await db.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
                    create = sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} USING hnsw (embedding halfvec_ip_ops)")
                    await db.execute(create.format(name, table))
                return
        await asyncio.sleep(INDEX_POLL_SECONDS)

    async def _has_hnsw_index(self, large: _LargeSet) -> bool:
        async with self._database.begin_single_query() as db:
            return await _is_valid_index(db, large.index)

    async def _drop_table(self, large: _LargeSet) -> None:
        async with self._lock_table(large.table) as db:
            await db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(large.table)))

    @asynccontextmanager
    async def _lock_table(self, table: str) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """Yields a transaction in which no other process writes a table."""
        while True:
            async with self._database.transaction() as db:
                if await _try_lock(db, "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", table):
                    yield db
                    return
            await asyncio.sleep(LOCK_POLL_SECONDS)

    async def _copy_batch(self, large: _LargeSet, owner: str) -> int:
        """Copies the next rows into the table. Returns how many there were."""
        table = sql.Identifier(large.table)
        last = sql.SQL("SELECT coalesce(max(seq), 0) FROM {} WHERE owner = %s").format(table)
        copy = sql.SQL("COPY {} (name, id, owner, scope, seq, embedding) FROM STDIN (FORMAT BINARY)").format(table)
        replaced = sql.SQL("DELETE FROM {} WHERE name = %s AND id = ANY(%s)").format(table)
        async with self._lock_table(large.table) as db:
            row = await (await db.execute(last, (owner,))).fetchone()
            cursor = await db.execute(
                # Locked, so that none is deleted before the foreign key sees it.
                "SELECT id, scope, seq, vector FROM vectors WHERE name = %s AND owner = %s AND seq > %s "
                "ORDER BY seq LIMIT %s FOR KEY SHARE",
                (large.name, owner, row[0] if row else 0, BATCH_ROWS),
            )
            rows = await cursor.fetchall()
            ids = [one[0] for one in rows]
            await db.execute(replaced, (large.name, ids))
            async with db.cursor() as writer, writer.copy(copy) as stream:
                # The bytes of a `bytea` are sent as they are, and read as a `halfvec`.
                stream.set_types(["text", "text", "text", "text", "int8", "bytea"])
                for identity, scope, seq, vector in rows:
                    await stream.write_row((large.name, identity, owner, scope, seq, _to_halfvec(vector)))
            return len(rows)

    async def _cancel(self, tables: Sequence[str]) -> None:
        tasks = [self._following.pop(table) for table in tables if table in self._following]
        await cancel_and_wait(*tasks)


def _to_halfvec(vector: bytes) -> bytes:
    """Pgvector's binary form: the dimension and an unused number, of 16 bits each, then the halves."""
    numbers = np.frombuffer(vector, "<f4").astype(">f2")
    return len(numbers).to_bytes(2, "big") + b"\0\0" + numbers.tobytes()


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in version.split(".")[:2] if one.isdigit())


async def _try_lock(db: AsyncConnection[TupleRow], query: str, table: str) -> bool:
    """Whether this process may write a table, until the end of the transaction or session."""
    return await _fetch_one(db, query, table) == (True,)


async def _is_valid_index(db: AsyncConnection[TupleRow], name: str) -> bool:
    return await _fetch_one(db, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", name) == (True,)


async def _fetch_one(db: AsyncConnection[TupleRow], query: str, *values: object) -> TupleRow | None:
    return await (await db.execute(query.encode(), values)).fetchone()
