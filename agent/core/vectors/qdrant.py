"""`QdrantIndex`: a Qdrant server by URL, or qdrant-client's local mode in a folder. One collection a set.

The client is made at the first use: importing it costs half a second of CPU and 70 MB, and its local mode lets one
process in, which no command that needs no vectors should wait for.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from numpy.typing import NDArray

from agent.core.errors import ConflictError, NotFoundError, StoreError, VectorSpaceError
from agent.core.vectors.exact import mismatch
from agent.core.vectors.port import Entry, Hit, Item, Space, Stored

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.models import Filter, Record, ScoredPoint

_IDS = uuid.UUID("6c0f3f5e-8f0d-4a53-9f0c-5a2b6f6f2f57")
"""Qdrant's ids are numbers or UUIDs; ours become UUIDs in this namespace."""
TIMEOUT_SECONDS = 10
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError)
"""What the client lets out where a 200 holds something else: the page of a proxy, half an answer."""


class QdrantIndex:
    """Implements `VectorIndex`. `path` is a folder or `:memory:`; with `url` it is not looked at."""

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
    def where(self) -> str:
        """The server or folder."""
        return self._url or self._path

    async def open(self, name: str, space: Space) -> None:
        """See `VectorIndex.open`."""
        async with self._asking() as (client, models):
            stored = await self._space(client, name)
            if stored is None:
                await _make(client, models, self._collection(name), space)
                if self._url is not None:  # the local mode has no indexes, and warns of each
                    await _index(client, models, self._collection(name))
                stored = await self._space(client, name)
        if stored != space:
            raise mismatch(name, stored or space, space)

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """See `VectorIndex.put`."""
        if not entries:
            return
        async with self._asking() as (client, models):
            space = await self._space(client, name)
            if space is None:
                raise NotFoundError(f"the set of vectors {name!r} has not been opened", agent_id="memory")
            wrong = next((entry for entry in entries if len(entry.vector) != space.dimension), None)
            if wrong is not None:
                raise VectorSpaceError(
                    f"a vector of {len(wrong.vector)} numbers does not belong to {name!r}, made by {space}",
                    agent_id="memory",
                )
            collection = self._collection(name)
            there = await client.retrieve(collection, [_point_id(entry.id) for entry in entries], with_payload=True)
            owners = {record.payload["id"]: record.payload["owner"] for record in there if record.payload}
            taken = next((entry for entry in entries if owners.get(entry.id, entry.owner) != entry.owner), None)
            if taken is not None:
                raise ConflictError(f"the id {taken.id!r} is taken", agent_id="memory")
            points = [
                models.PointStruct(
                    id=_point_id(e.id),
                    vector=[float(x) for x in e.vector],
                    payload={"id": e.id, "owner": e.owner, "scope": e.scope, "at": e.at, "payload": e.payload},
                )
                for e in entries
            ]
            await client.upsert(collection, points, wait=True)

    async def search(
        self, name: str, vector: Sequence[float], *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """See `VectorIndex.search`."""
        async with self._asking() as (client, models):
            space = await self._space(client, name)
            if space is None:
                return []
            if len(vector) != space.dimension:
                raise VectorSpaceError(
                    f"the query has {len(vector)} numbers, the vectors of {name!r} have {space.dimension}",
                    agent_id="memory",
                )
            found = await client.query_points(
                self._collection(name),
                query=[float(x) for x in vector],
                query_filter=_filter(models, owner, scopes),
                limit=limit,
                with_payload=True,
            )
        return [Hit(_item(point), point.score) for point in found.points]

    async def stored(self, name: str, ids: Sequence[str], *, owner: str) -> Stored:
        """See `VectorIndex.stored`."""
        async with self._asking() as (client, _):
            space = await self._space(client, name)
            if space is None or not ids:
                return Stored(space, {})
            points = [_point_id(identity) for identity in ids]
            there = await client.retrieve(self._collection(name), points, with_payload=True, with_vectors=True)
            own = [record for record in there if record.payload and record.payload["owner"] == owner]
            return Stored(space, {str(one.payload["id"]): _numbers(one.vector) for one in own if one.payload})

    async def items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """See `VectorIndex.items`."""
        async with self._asking() as (client, models):
            if await self._space(client, name) is None:
                return []
            records, _ = await client.scroll(
                self._collection(name),
                scroll_filter=_filter(models, owner, scopes),
                limit=limit,
                order_by=models.OrderBy(key="at", direction=models.Direction.DESC),
                with_payload=True,
            )
        return [_item(record) for record in records]

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """See `VectorIndex.delete`."""
        async with self._asking() as (client, models):
            if await self._space(client, name) is None:
                return 0
            collection = self._collection(name)
            there = await client.retrieve(collection, [_point_id(identity) for identity in ids], with_payload=True)
            own = [record.id for record in there if record.payload and record.payload["owner"] == owner]
            if own:
                await client.delete(collection, models.PointIdsList(points=own), wait=True)
            return len(own)

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        async with self._asking() as (client, _):
            await client.delete_collection(self._collection(name))

    async def close(self) -> None:
        """See `VectorIndex.close`."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[tuple["AsyncQdrantClient", Any]]:
        """The client and its models; what it raises becomes a `StoreError` that says what to check."""
        from qdrant_client import models  # noqa: PLC0415 - see the module's docstring
        from qdrant_client.common.client_exceptions import QdrantException  # noqa: PLC0415
        from qdrant_client.http.exceptions import ApiException  # noqa: PLC0415

        try:
            async with self._opening:
                if self._client is None:
                    self._client = await asyncio.to_thread(self._connect)
                client: AsyncQdrantClient = self._client
            yield client, models
        except (ApiException, QdrantException, httpx.HTTPError, OSError, RuntimeError, *_NO_JSON) as error:
            raise self._translated(error) from error

    def _connect(self) -> "AsyncQdrantClient":
        from qdrant_client import AsyncQdrantClient  # noqa: PLC0415

        if self._url is None:
            return AsyncQdrantClient(path=self._path) if self._path != ":memory:" else AsyncQdrantClient(":memory:")
        return AsyncQdrantClient(
            self._url, api_key=self._api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False, trust_env=False
        )

    def _collection(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    async def _space(self, client: "AsyncQdrantClient", name: str) -> Space | None:
        """The space the collection was made for; asked each time, since another process may have made it anew."""
        from qdrant_client.http.exceptions import UnexpectedResponse  # noqa: PLC0415

        collection = self._collection(name)
        try:
            metadata = (await client.get_collection(collection)).config.metadata or {}
        except UnexpectedResponse as error:
            if error.status_code == 404:
                return None
            raise
        except _NO_JSON:
            raise
        except ValueError:  # how the local mode says that there is none
            return None
        if "embedder" not in metadata:
            raise StoreError(
                f"the Qdrant collection {collection!r} at {self.where} was not made by Stepgate; "
                "remove it or use another Qdrant",
                agent_id="memory",
            )
        return Space(str(metadata["embedder"]), int(metadata["dimension"]))

    def _translated(self, error: Exception) -> StoreError:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        if self._url is None and "already accessed" in said:
            return StoreError(
                f"{self._path} is open in another process, and Qdrant's local mode lets only one in; set "
                "AGENT_QDRANT_URL to a server, or unset AGENT_QDRANT_PATH to keep vectors in the data folder",
                agent_id="memory",
            )
        setting = "AGENT_QDRANT_URL" if self._url else "AGENT_QDRANT_PATH"
        return StoreError(f"Qdrant at {self.where} failed: {said}; check {setting}", agent_id="memory")


async def _make(client: "AsyncQdrantClient", models: Any, collection: str, space: Space) -> None:
    """Make the collection; another process may be quicker."""
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


async def _index(client: "AsyncQdrantClient", models: Any, collection: str) -> None:
    """Indexes of what searches and listings filter and sort by."""
    await client.create_payload_index(
        collection, "owner", field_schema=models.KeywordIndexParams(type="keyword", is_tenant=True)
    )
    await client.create_payload_index(collection, "scope", field_schema=models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(collection, "at", field_schema=models.PayloadSchemaType.FLOAT)


def _filter(models: Any, owner: str | None, scopes: Sequence[str] | None) -> "Filter":
    must = []
    if owner is not None:
        must.append(models.FieldCondition(key="owner", match=models.MatchValue(value=owner)))
    if scopes is not None:
        must.append(models.FieldCondition(key="scope", match=models.MatchAny(any=list(scopes))))
    found: Filter = models.Filter(must=must)
    return found


def _numbers(vector: object) -> NDArray[np.float32]:
    """The one vector of a point; a point of ours has no others."""
    return np.array(vector if isinstance(vector, list) else [], np.float32)


def _point_id(identity: str) -> str:
    return str(uuid.uuid5(_IDS, identity))


def _item(point: "ScoredPoint | Record") -> Item:
    stored: dict[str, Any] = point.payload or {}
    return Item(stored["id"], stored["owner"], stored["payload"], stored["scope"], float(stored["at"]))
