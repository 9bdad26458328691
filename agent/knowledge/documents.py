"""`DocumentStore`: which documents a collection holds, and who is indexing it. The passages lie in the indexes."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from agent.core.codec import whole
from agent.core.statements import Statements
from agent.knowledge.models import FileType, SourceType


class Passages(NamedTuple):
    """The passages of one reading of a document: their common id, and how many there are."""

    document_id: str
    amount: int

    @property
    def chunk_ids(self) -> list[str]:
        """The ids of the passages."""
        return [f"{self.document_id}.{number}" for number in range(self.amount)]


@dataclass(frozen=True, slots=True)
class Document:
    """A source as it was indexed; `name` is what people see of it. `checksum` is the SHA-256 of its bytes;
    `document_id` its passages' id, new with each content; `stale` the passages that an interrupted replacement may
    have left behind. `version` is what its source tells contents apart by; `fingerprint` is of the pipeline that read
    it, empty for the default one; `embedder` made its vectors, empty where there are none."""

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
    stale: tuple[Passages, ...] = ()
    at: float = 0.0
    version: str = ""
    fingerprint: str = ""
    embedder: str = ""
    source_type: SourceType = "local"
    url: str | None = None

    def encoded(self) -> str:
        """As a JSON text."""
        return whole(json.dumps(asdict(self), ensure_ascii=False))

    @staticmethod
    def decoded(text: str) -> "Document":
        """From the JSON text, of this version or an earlier one."""
        data: dict[str, Any] = json.loads(text)
        for name in ("chunk_ids", "uncertainties"):
            data[name] = tuple(data[name])
        # Before the passages were counted, only their id was kept.
        data["stale"] = tuple(Passages(one, 0) if isinstance(one, str) else Passages(*one) for one in data["stale"])
        known = {field.name for field in fields(Document)}
        return Document(**{name: value for name, value in data.items() if name in known})


def document_id(*parts: str) -> str:
    """A document's id, from what makes it this one."""
    digest = hashlib.blake2b("\x00".join(parts).encode("utf-8", "replace"), digest_size=12)
    return f"doc_{digest.hexdigest()}"


class DocumentStore:
    """The documents by owner and collection. Methods raise `StoreError`."""

    def __init__(self, statements: Statements, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def list(self, owner: str, collection: str) -> "Sequence[Document]":
        """The documents of a collection in order of their sources; empty for an unknown one."""
        rows = await self._statements.read(
            "SELECT data FROM documents WHERE owner = ? AND collection = ? ORDER BY source", owner, whole(collection)
        )
        return [Document.decoded(row[0]) for row in rows]

    async def by_source(self, owner: str, collection: str, source: str) -> Document | None:
        """The document of a source; None when there is none."""
        rows = await self._statements.read(
            "SELECT data FROM documents WHERE owner = ? AND collection = ? AND source = ?",
            owner,
            whole(collection),
            whole(source),
        )
        return Document.decoded(rows[0][0]) if rows else None

    async def by_id(self, owner: str, document_id: str) -> "Mapping[str, Document]":
        """The documents of an id, by collection: empty when there is none, more than one when several collections
        were read from the same source by an earlier version."""
        rows = await self._statements.read(
            "SELECT collection, data FROM documents WHERE owner = ? AND document_id = ? ORDER BY collection",
            owner,
            whole(document_id),
        )
        return {str(row[0]): Document.decoded(row[1]) for row in rows}

    async def holding(self, owner: str, source: str, checksum: str) -> int:
        """How many of an owner's collections hold these bytes of a source."""
        rows = await self._statements.read(
            "SELECT count(*) FROM documents WHERE owner = ? AND checksum = ? AND source = ?",
            owner,
            checksum,
            whole(source),
        )
        return int(rows[0][0])

    async def collections(self, owner: str) -> "dict[str, int]":
        """The owner's collections that have documents, and how many each has."""
        rows = await self._statements.read(
            "SELECT collection, count(*) FROM documents WHERE owner = ? GROUP BY collection ORDER BY collection", owner
        )
        return {str(name): int(count) for name, count in rows}

    async def put(self, owner: str, collection: str, document: Document) -> None:
        """Add or replace the document of this source."""
        await self._statements.write(
            "INSERT INTO documents (owner, collection, source, document_id, checksum, data, at) VALUES (?,?,?,?,?,?,?) "
            "ON CONFLICT (owner, collection, source) DO UPDATE SET document_id = excluded.document_id, "
            "checksum = excluded.checksum, data = excluded.data, at = excluded.at",
            owner,
            whole(collection),
            whole(document.source),
            document.document_id,
            document.checksum,
            document.encoded(),
            document.at,
        )

    async def remove(self, owner: str, collection: str, source: str) -> None:
        """Forget a source; forgetting what is not there is done already."""
        await self._statements.write(
            "DELETE FROM documents WHERE owner = ? AND collection = ? AND source = ?",
            owner,
            whole(collection),
            whole(source),
        )

    async def hold(self, owner: str, collection: str, holder: str, seconds: float) -> bool:
        """Keep others from indexing for so long; False while somebody else does. Holding again prolongs."""
        now = self._clock()
        rows = await self._statements.write(
            "INSERT INTO ingestions (owner, collection, holder, until, pending) VALUES (?,?,?,?,'') "
            "ON CONFLICT (owner, collection) DO UPDATE SET holder = excluded.holder, until = excluded.until "
            "WHERE ingestions.holder = excluded.holder OR ingestions.until < ? RETURNING holder",
            owner,
            whole(collection),
            holder,
            now + seconds,
            now,
        )
        return bool(rows)

    async def pending(self, owner: str, collection: str) -> Passages | None:
        """The passages that were about to be written when somebody who held the collection came to grief."""
        rows = await self._statements.read(
            "SELECT pending FROM ingestions WHERE owner = ? AND collection = ?", owner, whole(collection)
        )
        return Passages(*json.loads(rows[0][0])) if rows and rows[0][0] else None

    async def set_pending(self, owner: str, collection: str, holder: str, passages: Passages | None) -> bool:
        """Note what is about to be written, or that it is; False when somebody else holds the collection by now."""
        rows = await self._statements.write(
            "UPDATE ingestions SET pending = ? WHERE owner = ? AND collection = ? AND holder = ? RETURNING holder",
            json.dumps(passages) if passages is not None else "",
            owner,
            whole(collection),
            holder,
        )
        return bool(rows)

    async def let_go(self, owner: str, collection: str, holder: str) -> None:
        """Let others index. What is still pending stays noted for whoever comes next."""
        place = (owner, whole(collection), holder)
        await self._statements.write(
            "DELETE FROM ingestions WHERE owner = ? AND collection = ? AND holder = ? AND pending = ''", *place
        )
        await self._statements.write(
            "UPDATE ingestions SET until = 0 WHERE owner = ? AND collection = ? AND holder = ?", *place
        )
