"""`MemoryStore`: what is remembered for a user across conversations, found again by meaning.

Every memory has a vector of the local embedder, so that it is found whatever happens to the endpoint, and one of the
configured embedder in a set of its own. The two are never compared.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.core.audit import UNRECORDED, Act, AuditLog
from agent.core.codec import whole
from agent.core.embedder import Embedded, Embedder, LocalEmbedder
from agent.core.errors import EmbedderError, NotFoundError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vectors import Entry, Hit, Item, Space, VectorIndex

log = logging.getLogger(__name__)

EMBEDDER_SETTINGS = "AGENT_EMBEDDER_URL, AGENT_EMBEDDER_MODEL or AGENT_EMBEDDER_MODEL_DIR"
"""What names an embedder: an endpoint, a provider's model, a folder with a model that runs here."""
LOCAL_SET = "memory-local"
EMBEDDER_SET = "memory"
FACTS = ""
"""The scope of what is remembered everywhere; what was said in a conversation has that conversation's scope."""
MAX_CHARS = 4_000
"""A memory is a fact or an exchange, not a document."""
CATCH_UP = 64
"""Memories an embedder that was away is given at a time, beside the query that is asked anyway."""
REINDEX_LIMIT = 1_000_000

Kind = Literal["fact", "exchange"]

_FLOORS = {"local": 0.18, "embedder": 0.3}
"""The least cosine that counts as having to do with the query. For the local embedder, paraphrases of one's own facts
scored 0.19 to 0.82, questions about something else 0.28 at most and 0.15 as a rule; models differ widely, so theirs is
low, and the relative bound below does the rest."""
_RELATIVE = 0.6
"""Hits far behind the best are left out."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Something remembered. `at` is UTC seconds since 1970; `score` the cosine with the query it was found by."""

    id: str
    owner: str
    text: str
    kind: Kind
    source: str
    at: float
    tainted: bool = False
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Recall:
    """What a search found, best first, by which embedder, and why not by the configured one."""

    memories: tuple[Memory, ...] = ()
    embedder: str = ""
    fallback_reason: str | None = None


class MemoryStore:
    """Saves and finds memories by owner. Raises `StoreError` where the index cannot be used."""

    def __init__(
        self,
        index: VectorIndex,
        embedder: Embedder | None,
        clock: Callable[[], float],
        audit: AuditLog = UNRECORDED,
    ) -> None:
        self._audit = audit
        self._index = index
        self._embedder = embedder
        self._local = LocalEmbedder()
        self._clock = clock
        self._complete: set[str] = set()
        """Owners of whom nothing is missing from the embedder's set, as far as this process knows."""
        self._space: Space | None = None
        """The space of the embedder's newest vectors; None before the first."""

    @property
    def has_embedder(self) -> bool:
        """Whether an endpoint makes the vectors."""
        return self._embedder is not None

    async def save(self, owner: str, text: str, *, source: str, tainted: bool = False) -> Memory:
        """Remember a fact; the same text again only becomes newer. A failing embedder does not lose it."""
        memory = self._memory(owner, text, "fact", source, tainted=tainted)
        await self._put_local(memory, FACTS)
        if self._embedder is None:
            return memory
        try:
            await self._put(memory, FACTS, await self._embedder.embed([memory.text]))
        except (EmbedderError, VectorSpaceError) as error:
            self._complete.discard(owner)
            log.warning("a memory has its local vector only: %s", error.message)
        return memory

    async def save_exchange(
        self, owner: str, conversation_id: str, question: str, answer: str, *, tainted: bool = False
    ) -> None:
        """Remember an exchange of a conversation; it is found in that conversation only.

        The embedder gets it with the next search, so that no answer waits for it."""
        text = f"{question.strip()[:1000]}\n{answer.strip()[:2000]}"
        memory = self._memory(owner, text, "exchange", f"conversation {conversation_id}", tainted=tainted)
        await self._put_local(memory, _scope(conversation_id))
        self._complete.discard(owner)

    async def search(self, owner: str, query: str, *, conversation_id: str | None = None, limit: int = 5) -> Recall:
        """The owner's facts, and exchanges of this conversation, that have to do with the query.

        Falls back to the local vectors, saying why, when the embedder fails or another one made the vectors."""
        scopes = [FACTS] if conversation_id is None else [FACTS, _scope(conversation_id)]
        if self._embedder is None:
            return await self._search_local(owner, query, scopes, limit)
        try:
            return await self._search_embedder(self._embedder, owner, query, scopes, limit)
        except (EmbedderError, VectorSpaceError) as error:
            found = await self._search_local(owner, query, scopes, limit)
            return Recall(found.memories, found.embedder, error.message)

    async def newest(self, owner: str, *, kind: Kind | None = "fact", limit: int = 100) -> list[Memory]:
        """The owner's newest memories."""
        scopes = [FACTS] if kind == "fact" else None
        items = await self._index.items(LOCAL_SET, owner=owner, limit=limit, scopes=scopes)
        return [memory for item in items if (memory := _of_item(item)) and kind in (None, memory.kind)]

    async def delete(self, owner: str, memory_id: str, *, by: str | None = None) -> None:
        """Forget one, `by` whom is recorded. `NotFoundError` when there is none, or it is another owner's."""
        count = await self._index.delete(LOCAL_SET, [memory_id], owner=owner)
        count += await self._index.delete(EMBEDDER_SET, [memory_id], owner=owner)
        if not count:
            raise NotFoundError(f"there is no memory {memory_id!r}", agent_id="memory")
        await self._audit.note(Act("memory.delete", memory_id, owner=owner, by=by))

    async def forget(self, owner: str, *, conversation_id: str | None = None) -> int:
        """Forget everything of an owner, or the exchanges of one conversation; how many memories that were."""
        scopes = None if conversation_id is None else [_scope(conversation_id)]
        found: set[str] = set()
        for name in (EMBEDDER_SET, LOCAL_SET):
            items = await self._index.items(name, owner=owner, limit=REINDEX_LIMIT, scopes=scopes)
            if items:
                await self._index.delete(name, [item.id for item in items], owner=owner)
            found |= {item.id for item in items}
        return len(found)

    async def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Make every vector of the embedder's set anew from the stored texts; how many. Raises `EmbedderError`
        before anything is dropped when the embedder cannot be used."""
        items = await self._index.items(LOCAL_SET, owner=None, limit=REINDEX_LIMIT)
        if self._embedder is None:
            return 0
        space = (await self._embedder.embed(["probe"])).space
        await self._index.drop(EMBEDDER_SET)
        self._space = space
        await self._index.open(EMBEDDER_SET, space)
        for start in range(0, len(items), CATCH_UP):
            part = items[start : start + CATCH_UP]
            made = await self._embedder.embed([_text(item) for item in part])
            await self._index.put(EMBEDDER_SET, _entries(part, made))
            progress(start + len(part), len(items))
        return len(items)

    async def check(self, *, ask: bool = False) -> str:
        """What makes the vectors, in words; with `ask`, the endpoint is asked for one.

        Raises `EmbedderError`, `VectorSpaceError` or `StoreError`."""
        await self._index.open(LOCAL_SET, self._local.space)
        if self._embedder is None:
            return f"local word vectors (for meaning set {EMBEDDER_SETTINGS})"
        if not ask:
            if self._space is not None:
                await self._index.open(EMBEDDER_SET, self._space)
            return "vectors by the embedder that is set"
        space = (await self._embedder.embed(["probe"])).space
        await self._index.open(EMBEDDER_SET, space)
        return str(space)

    async def close(self) -> None:
        """Release connections."""
        await self._index.close()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _search_local(self, owner: str, query: str, scopes: Sequence[str], limit: int) -> Recall:
        vector = self._local.vector(query)
        hits = await self._index.search(LOCAL_SET, vector, owner=owner, limit=limit, scopes=scopes)
        return Recall(_relevant(hits, "local"), self._local.space.embedder)

    async def _search_embedder(
        self, embedder: Embedder, owner: str, query: str, scopes: Sequence[str], limit: int
    ) -> Recall:
        """Search by the embedder; what it has missed goes into the same call as the query."""
        missed = await self._missed(owner)
        made = await embedder.embed([query, *(_text(item) for item in missed)])
        self._space = made.space
        await self._index.open(EMBEDDER_SET, made.space)
        if missed:
            await self._index.put(EMBEDDER_SET, _entries(missed, Embedded(made.space, made.vectors[1:])))
        if len(missed) < CATCH_UP:
            self._complete.add(owner)
        hits = await self._index.search(EMBEDDER_SET, made.vectors[0], owner=owner, limit=limit, scopes=scopes)
        return Recall(_relevant(hits, "embedder"), made.space.embedder)

    async def _missed(self, owner: str) -> list[Item]:
        """Memories without a vector of the embedder, at most `CATCH_UP`, newest first."""
        if owner in self._complete:
            return []
        known = {item.id for item in await self._index.items(EMBEDDER_SET, owner=owner, limit=REINDEX_LIMIT)}
        items = await self._index.items(LOCAL_SET, owner=owner, limit=REINDEX_LIMIT)
        return [item for item in items if item.id not in known][:CATCH_UP]

    async def _put_local(self, memory: Memory, scope: str) -> None:
        vector = self._local.vector(memory.text)
        await self._index.open(LOCAL_SET, self._local.space)
        await self._index.put(LOCAL_SET, [_entry(memory, scope, vector)])

    async def _put(self, memory: Memory, scope: str, made: Embedded) -> None:
        self._space = made.space
        await self._index.open(EMBEDDER_SET, made.space)
        await self._index.put(EMBEDDER_SET, [_entry(memory, scope, made.vectors[0])])

    def _memory(self, owner: str, text: str, kind: Kind, source: str, *, tainted: bool) -> Memory:
        shown = whole(" ".join(text.split()) if kind == "fact" else text.strip())[:MAX_CHARS].replace("\x00", "")
        # The same words of the same owner are one memory: saving twice, or again after a crash, is saving once.
        digest = hashlib.blake2b(f"{owner}\x00{kind}\x00{source if kind == 'exchange' else ''}\x00{shown}".encode())
        return Memory(f"mem_{digest.hexdigest()[:32]}", owner, shown, kind, source, self._clock(), tainted)


def _relevant(hits: Sequence[Hit], by: Literal["local", "embedder"]) -> tuple[Memory, ...]:
    """The hits that have to do with the query."""
    if not hits:
        return ()
    least = max(_FLOORS[by], _RELATIVE * hits[0].score)
    found = (_of_item(hit.item, hit.score) for hit in hits if hit.score >= least)
    return tuple(memory for memory in found if memory is not None)


def _scope(conversation_id: str) -> str:
    return whole(f"conversation:{conversation_id}").replace("\x00", "")


def _entry(memory: Memory, scope: str, vector: Sequence[float]) -> Entry:
    payload: JsonObject = {
        "text": memory.text,
        "kind": memory.kind,
        "source": memory.source,
        "tainted": memory.tainted,
    }
    return Entry(memory.id, memory.owner, vector, payload, scope, memory.at)


def _entries(items: Sequence[Item], made: Embedded) -> list[Entry]:
    return [
        Entry(item.id, item.owner, vector, item.payload, item.scope, item.at)
        for item, vector in zip(items, made.vectors, strict=True)
    ]


def _text(item: Item) -> str:
    return str(item.payload.get("text", ""))


def _of_item(item: Item, score: float | None = None) -> Memory | None:
    """The memory an item stands for; None for what is none."""
    payload = item.payload
    kind: Kind = "exchange" if payload.get("kind") == "exchange" else "fact"
    tainted = payload.get("tainted") is True
    return Memory(item.id, item.owner, _text(item), kind, str(payload.get("source", "")), item.at, tainted, score)
