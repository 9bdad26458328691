"""`QdrantIndex`: a Qdrant server by URL, or qdrant-client's local mode in a folder. One collection per set.

The client is created at first use: importing it costs half a second of CPU and 70 MB, and its local mode admits one
process only, which commands that need no vectors should not wait for.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from numpy.typing import NDArray

from agent.core.errors import ConflictError, NotFoundError, StoreError, VectorSpaceError
from agent.core.vector_space import VectorSpace
from agent.storage.vectors.exact import build_space_mismatch_error
from agent.storage.vectors.port import Entry, Hit, Item, QueryVector, StoredVectors, compute_query

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.models import Filter, Record, ScoredPoint

_ID_NAMESPACE = uuid.UUID("6c0f3f5e-8f0d-4a53-9f0c-5a2b6f6f2f57")
"""Qdrant's ids are numbers or UUIDs. Our ids become UUIDs in this namespace."""
TIMEOUT_SECONDS = 10
_JSON_ERRORS = (json.JSONDecodeError, UnicodeDecodeError)
"""The exceptions of the client for a 200 that is not a valid reply, such as the page of a proxy or half a reply."""


class QdrantIndex:
    """Implements `VectorIndex`. `path` is a folder or `:memory:`; it is ignored if `url` is set."""

    def __init__(
        self, *, url: str | None = None, api_key: str | None = None, path: str = ":memory:", prefix: str = "stepgate"
    ) -> None:
        self._prefix = prefix
        self._url = url
        self._api_key = api_key
        self._path = path
        self._client: AsyncQdrantClient | None = None
        self._opening = asyncio.Lock()

    @property
    def location(self) -> str:
        """The server or folder."""
        return self._url or self._path

    async def open(self, name: str, space: VectorSpace) -> None:
        """See `VectorIndex.open`."""
        async with self._use_client() as (client, models):
            stored = await self._read_space(client, name)
            if stored is None:
                await _create_collection(client, models, self._build_collection_name(name), space)
                if self._url is not None:  # the local mode has no indexes and logs a warning for each
                    await _create_payload_indexes(client, models, self._build_collection_name(name))
                stored = await self._read_space(client, name)
        if stored != space:
            raise build_space_mismatch_error(name, stored or space, space)

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """See `VectorIndex.put`."""
        if not entries:
            return
        async with self._use_client() as (client, models):
            space = await self._read_space(client, name)
            if space is None:
                raise NotFoundError(f"the set of vectors {name!r} has not been opened", agent_id="memory")
            wrong = next((entry for entry in entries if len(entry.vector) != space.dimension), None)
            if wrong is not None:
                raise VectorSpaceError(
                    f"a vector of {len(wrong.vector)} numbers does not fit {name!r}, made by {space}",
                    agent_id="memory",
                )
            collection = self._build_collection_name(name)
            there = await client.retrieve(
                collection, [_build_point_id(entry.id) for entry in entries], with_payload=True
            )
            owners = {record.payload["id"]: record.payload["owner"] for record in there if record.payload}
            foreign_entry = next((entry for entry in entries if owners.get(entry.id, entry.owner) != entry.owner), None)
            if foreign_entry is not None:
                raise ConflictError(f"the id {foreign_entry.id!r} belongs to another owner", agent_id="memory")
            points = [
                models.PointStruct(
                    id=_build_point_id(e.id),
                    vector=[float(x) for x in e.vector],
                    payload={"id": e.id, "owner": e.owner, "scope": e.scope, "at": e.at, "payload": e.payload},
                )
                for e in entries
            ]
            await client.upsert(collection, points, wait=True)

    async def search(
        self, name: str, vector: QueryVector, *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """See `VectorIndex.search`."""
        async with self._use_client() as (client, models):
            space = await self._read_space(client, name)
            if space is None:
                return []
            query = compute_query(vector)
            if len(query) != space.dimension:
                raise VectorSpaceError(
                    f"the query has {len(query)} numbers, the vectors of {name!r} have {space.dimension}",
                    agent_id="memory",
                )
            points = await client.query_points(
                self._build_collection_name(name),
                query=[float(x) for x in query],
                query_filter=_build_filter(models, owner, scopes),
                limit=limit,
                with_payload=True,
            )
        return [Hit(_parse_point(point), point.score) for point in points.points]

    async def get_vectors(self, name: str, ids: Sequence[str], *, owner: str) -> StoredVectors:
        """See `VectorIndex.get_vectors`."""
        async with self._use_client() as (client, _):
            space = await self._read_space(client, name)
            if space is None or not ids:
                return StoredVectors(space, {})
            points = [_build_point_id(identity) for identity in ids]
            there = await client.retrieve(
                self._build_collection_name(name), points, with_payload=True, with_vectors=True
            )
            own = [record for record in there if record.payload and record.payload["owner"] == owner]
            return StoredVectors(space, {str(one.payload["id"]): _to_array(one.vector) for one in own if one.payload})

    async def list_items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """See `VectorIndex.list_items`."""
        async with self._use_client() as (client, models):
            if await self._read_space(client, name) is None:
                return []
            records, _ = await client.scroll(
                self._build_collection_name(name),
                scroll_filter=_build_filter(models, owner, scopes),
                limit=limit,
                order_by=models.OrderBy(key="at", direction=models.Direction.DESC),
                with_payload=True,
            )
        return [_parse_point(record) for record in records]

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """See `VectorIndex.delete`."""
        async with self._use_client() as (client, models):
            if await self._read_space(client, name) is None:
                return 0
            collection = self._build_collection_name(name)
            there = await client.retrieve(
                collection, [_build_point_id(identity) for identity in ids], with_payload=True
            )
            own = [record.id for record in there if record.payload and record.payload["owner"] == owner]
            if own:
                await client.delete(collection, models.PointIdsList(points=own), wait=True)
            return len(own)

    async def list_outgrown(self) -> Mapping[str, int]:
        """See `VectorIndex.list_outgrown`. Qdrant's index is made for millions."""
        return {}

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        async with self._use_client() as (client, _):
            await client.delete_collection(self._build_collection_name(name))

    async def close(self) -> None:
        """See `VectorIndex.close`."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @asynccontextmanager
    async def _use_client(self) -> AsyncIterator[tuple["AsyncQdrantClient", Any]]:
        """Yields the client and its models. Converts what the client raises to a `StoreError`."""
        from qdrant_client import models  # noqa: PLC0415 - see the module's docstring
        from qdrant_client.common.client_exceptions import QdrantException  # noqa: PLC0415
        from qdrant_client.http.exceptions import ApiException  # noqa: PLC0415

        try:
            async with self._opening:
                if self._client is None:
                    self._client = await asyncio.to_thread(self._connect)
                client: AsyncQdrantClient = self._client
            yield client, models
        except (ApiException, QdrantException, httpx.HTTPError, OSError, RuntimeError, *_JSON_ERRORS) as error:
            raise self._to_store_error(error) from error

    def _connect(self) -> "AsyncQdrantClient":
        from qdrant_client import AsyncQdrantClient  # noqa: PLC0415

        if self._url is None:
            return AsyncQdrantClient(path=self._path) if self._path != ":memory:" else AsyncQdrantClient(":memory:")
        return AsyncQdrantClient(
            self._url, api_key=self._api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False, trust_env=False
        )

    def _build_collection_name(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    async def _read_space(self, client: "AsyncQdrantClient", name: str) -> VectorSpace | None:
        """The space of the collection. Reads it each time, since another process may have created it again."""
        from qdrant_client.http.exceptions import UnexpectedResponse  # noqa: PLC0415

        collection = self._build_collection_name(name)
        try:
            metadata = (await client.get_collection(collection)).config.metadata or {}
        except UnexpectedResponse as error:
            if error.status_code == 404:
                return None
            raise
        except _JSON_ERRORS:
            raise
        except ValueError:  # the local mode raises it for a missing collection
            return None
        if "embedder" not in metadata:
            raise StoreError(
                f"the Qdrant collection {collection!r} at {self.location} was not made by Stepgate; "
                "remove it or use another Qdrant server",
                agent_id="memory",
            )
        return VectorSpace(str(metadata["embedder"]), int(metadata["dimension"]))

    def _to_store_error(self, error: Exception) -> StoreError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if self._url is None and "already accessed" in reason:
            return StoreError(
                f"{self._path} is open in another process, and Qdrant's local mode allows only one; set "
                "AGENT_QDRANT_URL to a server, or unset AGENT_QDRANT_PATH to keep vectors in the data folder",
                agent_id="memory",
            )
        setting = "AGENT_QDRANT_URL" if self._url else "AGENT_QDRANT_PATH"
        return StoreError(f"Qdrant at {self.location} failed: {reason}; check {setting}", agent_id="memory")


async def _create_collection(client: "AsyncQdrantClient", models: Any, collection: str, space: VectorSpace) -> None:
    """Creates the collection. Another process may create it first."""
    from qdrant_client.http.exceptions import UnexpectedResponse  # noqa: PLC0415

    try:
        await client.create_collection(
            collection,
            vectors_config=models.VectorParams(size=space.dimension, distance=models.Distance.COSINE),
            metadata={"embedder": space.embedder, "dimension": space.dimension},
        )
    except UnexpectedResponse as error:
        if error.status_code != 409:
            raise


async def _create_payload_indexes(client: "AsyncQdrantClient", models: Any, collection: str) -> None:
    """Creates indexes on the fields that searches and listings filter and sort by."""
    await client.create_payload_index(
        collection, "owner", field_schema=models.KeywordIndexParams(type="keyword", is_tenant=True)
    )
    await client.create_payload_index(collection, "scope", field_schema=models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(collection, "at", field_schema=models.PayloadSchemaType.FLOAT)


def _build_filter(models: Any, owner: str | None, scopes: Sequence[str] | None) -> "Filter":
    must = []
    if owner is not None:
        must.append(models.FieldCondition(key="owner", match=models.MatchValue(value=owner)))
    if scopes is not None:
        must.append(models.FieldCondition(key="scope", match=models.MatchAny(any=list(scopes))))
    condition: Filter = models.Filter(must=must)
    return condition


def _to_array(vector: object) -> NDArray[np.float32]:
    """Converts the one vector of a point; our points have no others."""
    return np.array(vector if isinstance(vector, list) else [], np.float32)


def _build_point_id(identity: str) -> str:
    return str(uuid.uuid5(_ID_NAMESPACE, identity))


def _parse_point(point: "ScoredPoint | Record") -> Item:
    stored: dict[str, Any] = point.payload or {}
    return Item(stored["id"], stored["owner"], stored["payload"], stored["scope"], float(stored["at"]))
