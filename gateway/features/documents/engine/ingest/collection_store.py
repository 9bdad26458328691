"""`CollectionStore`: the collections, each with the pipeline its documents are read by and the sources they come from.

A collection without a row has documents of the default pipeline: it was made before pipelines were kept.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.core.errors import StoreError
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import OwnedRows, Row, SqlClient
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.documents.engine.search.naming import VectorSets, make_vector_set_name, validate_collection_name

CollectionStatus = Literal["indexing", "ready", "incomplete"]
"""`incomplete`: the last reading did not come to its end; the next one goes on from there."""
_COLUMNS = "name, pipeline, sources, embedder, status, created, updated"


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection. `embedder` made its vectors, empty where there are none; times are UTC seconds since 1970."""

    name: str
    pipeline: PipelineDAG
    sources: tuple[ConnectorInput, ...] = ()
    embedder: str = ""
    status: CollectionStatus = "ready"
    created: float = 0.0
    updated: float = 0.0


class CollectionStore:
    """The collections by owner and name. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock
        self.document_counts: Final = OwnedRows(
            statements,
            "SELECT name, sum(documents) FROM (SELECT name, 0 AS documents FROM collections WHERE owner = ? "
            "UNION ALL SELECT collection, count(*) FROM documents WHERE owner = ? GROUP BY collection) AS counted "
            "GROUP BY name",
        )
        """An owner's collections, with a row or without, and how many documents each has."""

    async def get(self, owner: str, name: str) -> Collection | None:
        """A collection; None where there is no row."""
        rows = await self._statements.read(
            f"SELECT {_COLUMNS} FROM collections WHERE owner = ? AND name = ?",  # noqa: S608 - constants only
            owner,
            replace_surrogates(name),
        )
        return _from_row(rows[0]) if rows else None

    async def get_or_plan(self, owner: str, name: str, pipeline: PipelineDAG) -> Collection:
        """A collection; where there is no row, the one that reading into it by this pipeline will make. Raises
        `BadRequestError` for a name that no new collection may have.
        """
        stored = await self.get(owner, name)
        if stored is None:
            validate_collection_name(name)
        return stored or Collection(name, pipeline)

    async def count_documents(self, owner: str) -> dict[str, int]:
        """The owner's collections, with a row or without, and how many documents each has, in order of name."""
        return await self.document_counts.read_counts(owner)

    async def list_owners(self) -> Sequence[tuple[str, str]]:
        """Every collection, as its owner and name."""
        rows = await self._statements.read("SELECT owner, name FROM collections ORDER BY owner, name")
        return [(str(row[0]), str(row[1])) for row in rows]

    async def put(self, owner: str, collection: Collection) -> None:
        """Add or replace a collection; when it was created stays."""
        now = self._clock()
        sources = json.dumps([source.model_dump(mode="json") for source in collection.sources], ensure_ascii=False)
        await self._statements.write(
            f"INSERT INTO collections (owner, {_COLUMNS}) VALUES (?,?,?,?,?,?,?,?) "  # noqa: S608 - constants only
            "ON CONFLICT (owner, name) DO UPDATE SET pipeline = excluded.pipeline, sources = excluded.sources, "
            "embedder = excluded.embedder, status = excluded.status, updated = excluded.updated",
            owner,
            replace_surrogates(collection.name),
            collection.pipeline.model_dump_json(),
            replace_surrogates(sources),
            replace_surrogates(collection.embedder),
            collection.status,
            now,
            now,
        )

    async def remove(self, owner: str, name: str) -> bool:
        """Forget a collection; whether it was there."""
        rows = await self._statements.write(
            "DELETE FROM collections WHERE owner = ? AND name = ? RETURNING name", owner, replace_surrogates(name)
        )
        place = (owner, replace_surrogates(name))
        await self._statements.write("DELETE FROM collection_vectors WHERE owner = ? AND collection = ?", *place)
        return bool(rows)

    async def get_vector_sets(self, owner: str, name: str) -> VectorSets:
        """The sets of vectors of a collection."""
        rows = await self._statements.read(
            "SELECT serving, remaking FROM collection_vectors WHERE owner = ? AND collection = ?",
            owner,
            replace_surrogates(name),
        )
        return VectorSets(*rows[0]) if rows else VectorSets(make_vector_set_name(owner, name))

    async def set_vector_sets(self, owner: str, name: str, sets: VectorSets) -> None:
        """Let a set serve a collection, and note the one that is being made."""
        await self._statements.write(
            "INSERT INTO collection_vectors (owner, collection, serving, remaking) VALUES (?,?,?,?) ON CONFLICT "
            "(owner, collection) DO UPDATE SET serving = excluded.serving, remaking = excluded.remaking",
            owner,
            replace_surrogates(name),
            *sets,
        )


@asynccontextmanager
async def track_indexing(
    store: CollectionStore, owner: str, collection: Collection, embedder: Callable[[], str]
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Keep a collection's row while it is read into: `indexing` from the first call of what is given, at the end
    `ready`, or `incomplete`. A source that never answers leaves no trace."""
    is_started = False

    async def mark_started() -> None:
        nonlocal is_started
        if not is_started:
            await store.put(owner, replace(collection, status="indexing"))
            is_started = True

    try:
        yield mark_started
    except BaseException:
        if is_started:
            with contextlib.suppress(StoreError):  # it still says `indexing`, and the error itself is raised
                await asyncio.shield(store.put(owner, replace(collection, status="incomplete")))
        raise
    await store.put(owner, replace(collection, status="ready", embedder=embedder() or collection.embedder))


def _from_row(row: Row) -> Collection:
    name, pipeline, sources, embedder, status, created, updated = row
    return Collection(
        name=name,
        pipeline=PipelineDAG.model_validate_json(pipeline),
        sources=tuple(ConnectorInput.model_validate(source) for source in json.loads(sources)),
        embedder=embedder,
        status=status,
        created=created,
        updated=updated,
    )
