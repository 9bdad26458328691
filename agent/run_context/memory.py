"""`MemoryStore`: remembers texts for a user across conversations and finds them by meaning.

Every memory has a vector of the local embedder, so that it is found even if the endpoint fails, and a vector of the
configured embedder in a separate set. The two sets are never compared.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from agent.core.errors import EmbedderError, NotFoundError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.surrogates import replace_surrogates
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded, Embedder, LocalEmbedder
from agent.llm.embedder.port import EMBEDDER_SETTINGS
from agent.storage.audit import NO_AUDIT, AuditEvent, AuditLog
from agent.storage.vectors import Entry, Hit, Item, VectorIndex

log = logging.getLogger(__name__)

LOCAL_SET = "memory-local"
EMBEDDER_SET = "memory"
FACTS_SCOPE = ""
"""The scope of facts, which every search finds. Exchanges have the scope of their conversation."""
MAX_CHARS = 4_000
"""Longest memory, in characters: a fact or an exchange, not a document."""
CATCH_UP_BATCH = 64
"""How many missed memories are embedded together with a query after the embedder was unreachable."""
REINDEX_LIMIT = 1_000_000

Kind = Literal["fact", "exchange"]

_MIN_SCORES = {"local": 0.18, "embedder": 0.3}
"""The lowest relevant cosine similarity. With the local embedder, paraphrases of stored facts scored 0.19 to 0.82, and
unrelated questions at most 0.28, mostly 0.15. Other embedders differ widely, so their bound is low and the relative
bound below does the rest."""
_MIN_RELATIVE_SCORE = 0.6
"""Hits with less than this share of the best score are left out."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A remembered text. `at` is UTC seconds since 1970; `score` is its cosine similarity to the query."""

    id: str
    owner: str
    text: str
    kind: Kind
    source: str
    at: float
    tainted: bool = False
    score: float | None = None
    run_id: str = ""
    """The run of an exchange."""


@dataclass(frozen=True, slots=True)
class MemorySearchResult:
    """The memories that a search found, best first, the embedder that was used, and why not the configured one."""

    memories: tuple[Memory, ...] = ()
    embedder: str = ""
    fallback_reason: str | None = None


class MemoryStore:
    """Saves and finds memories by owner. Raises `StoreError` if the index cannot be used."""

    def __init__(
        self,
        index: VectorIndex,
        embedder: Embedder | None,
        clock: Callable[[], float],
        audit: AuditLog = NO_AUDIT,
    ) -> None:
        self._audit = audit
        self._index = index
        self._embedder = embedder
        self._local = LocalEmbedder()
        self._clock = clock
        self._fully_embedded_owners: set[str] = set()
        """Owners whose memories all have a vector of the configured embedder, as far as this process knows."""
        self._space: VectorSpace | None = None
        """The space of the embedder's newest vectors; None before the first."""

    @property
    def has_embedder(self) -> bool:
        """Whether an embedder is configured."""
        return self._embedder is not None

    async def save(self, owner: str, text: str, *, source: str, tainted: bool = False) -> Memory:
        """Saves a fact. Saving the same text again only updates its time. A failing embedder does not lose it."""
        memory = self._build_memory(owner, text, "fact", source, tainted=tainted)
        await self._put_local(memory, FACTS_SCOPE)
        if self._embedder is None:
            return memory
        try:
            await self._put_embedded(memory, FACTS_SCOPE, await self._embedder.embed([memory.text]))
        except (EmbedderError, VectorSpaceError) as error:
            self._fully_embedded_owners.discard(owner)
            log.warning("a memory has only its local vector: %s", error.message)
        return memory

    async def save_exchange(
        self, owner: str, conversation_id: str, question: str, answer: str, *, run_id: str = "", tainted: bool = False
    ) -> None:
        """Saves an exchange of a conversation, which only searches in that conversation find.

        The configured embedder processes it with the next search, so that no answer waits for it.
        """
        text = format_exchange(question, answer)
        memory = self._build_memory(owner, text, "exchange", f"conversation {conversation_id}", tainted=tainted)
        await self._put_local(replace(memory, run_id=run_id), _build_scope(conversation_id))
        self._fully_embedded_owners.discard(owner)

    async def search(
        self, owner: str, query: str, *, conversation_id: str | None = None, limit: int = 5
    ) -> MemorySearchResult:
        """The owner's relevant facts, and relevant exchanges of this conversation.

        Falls back to the local vectors, with the reason, if the embedder fails or the stored vectors are another
        embedder's.
        """
        scopes = [FACTS_SCOPE] if conversation_id is None else [FACTS_SCOPE, _build_scope(conversation_id)]
        if self._embedder is None:
            return await self._search_local(owner, query, scopes, limit)
        try:
            return await self._search_embedder(self._embedder, owner, query, scopes, limit)
        except (EmbedderError, VectorSpaceError) as error:
            hits = await self._search_local(owner, query, scopes, limit)
            return MemorySearchResult(hits.memories, hits.embedder, error.message)

    async def list_newest(self, owner: str, *, kind: Kind | None = "fact", limit: int = 100) -> list[Memory]:
        """The owner's newest memories."""
        scopes = [FACTS_SCOPE] if kind == "fact" else None
        items = await self._index.list_items(LOCAL_SET, owner=owner, limit=limit, scopes=scopes)
        return [memory for item in items if (memory := _parse_item(item)) and kind in (None, memory.kind)]

    async def delete(self, owner: str, memory_id: str, *, by: str | None = None) -> None:
        """Deletes one memory; `by` is recorded. Raises `NotFoundError` if it is absent or another owner's."""
        count = await self._index.delete(LOCAL_SET, [memory_id], owner=owner)
        count += await self._index.delete(EMBEDDER_SET, [memory_id], owner=owner)
        if not count:
            raise NotFoundError(f"there is no memory {memory_id!r}", agent_id="memory")
        await self._audit.record_afterwards(AuditEvent("memory.delete", memory_id, owner=owner, by=by))

    async def delete_all(self, owner: str, *, conversation_id: str | None = None, run_id: str | None = None) -> int:
        """Deletes everything of an owner, or the exchanges of one conversation, or those of them that are of a run.
        Returns how many there were.
        """
        scopes = None if conversation_id is None else [_build_scope(conversation_id)]
        ids: set[str] = set()
        for name in (EMBEDDER_SET, LOCAL_SET):
            items = await self._index.list_items(name, owner=owner, limit=REINDEX_LIMIT, scopes=scopes)
            items = [item for item in items if run_id in (None, item.payload.get("run_id"))]
            if items:
                await self._index.delete(name, [item.id for item in items], owner=owner)
            ids |= {item.id for item in items}
        return len(ids)

    async def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Makes every vector of the configured embedder again from the stored texts and returns how many. Raises
        `EmbedderError` before anything is dropped if the embedder cannot be used.
        """
        items = await self._index.list_items(LOCAL_SET, owner=None, limit=REINDEX_LIMIT)
        if self._embedder is None:
            return 0
        space = (await self._embedder.embed(["probe"])).space
        await self._index.drop(EMBEDDER_SET)
        self._space = space
        await self._index.open(EMBEDDER_SET, space)
        for start in range(0, len(items), CATCH_UP_BATCH):
            part = items[start : start + CATCH_UP_BATCH]
            made = await self._embedder.embed([_get_text(item) for item in part])
            await self._index.put(EMBEDDER_SET, _build_entries(part, made))
            progress(start + len(part), len(items))
        return len(items)

    async def check(self, *, ask: bool = False) -> str:
        """A description of what makes the vectors. With `ask`, requests one vector from the embedder.

        Raises `EmbedderError`, `VectorSpaceError` or `StoreError`.
        """
        await self._index.open(LOCAL_SET, self._local.space)
        if self._embedder is None:
            return f"local word vectors (for search by meaning set {EMBEDDER_SETTINGS})"
        if not ask:
            if self._space is not None:
                await self._index.open(EMBEDDER_SET, self._space)
            return "vectors of the configured embedder"
        space = (await self._embedder.embed(["probe"])).space
        await self._index.open(EMBEDDER_SET, space)
        return str(space)

    async def close(self) -> None:
        """Closes connections."""
        await self._index.close()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _search_local(self, owner: str, query: str, scopes: Sequence[str], limit: int) -> MemorySearchResult:
        vector = partial(self._local.compute_vector, query)  # most owners have no memories to compare it with
        hits = await self._index.search(LOCAL_SET, vector, owner=owner, limit=limit, scopes=scopes)
        return MemorySearchResult(_select_relevant(hits, "local"), self._local.space.embedder)

    async def _search_embedder(
        self, embedder: Embedder, owner: str, query: str, scopes: Sequence[str], limit: int
    ) -> MemorySearchResult:
        """Searches with the configured embedder. Memories it has missed are embedded in the same call as the query."""
        missed = await self._find_unembedded(owner)
        made = await embedder.embed([query, *(_get_text(item) for item in missed)])
        self._space = made.space
        await self._index.open(EMBEDDER_SET, made.space)
        if missed:
            await self._index.put(EMBEDDER_SET, _build_entries(missed, Embedded(made.space, made.vectors[1:])))
        if len(missed) < CATCH_UP_BATCH:
            self._fully_embedded_owners.add(owner)
        hits = await self._index.search(EMBEDDER_SET, made.vectors[0], owner=owner, limit=limit, scopes=scopes)
        return MemorySearchResult(_select_relevant(hits, "embedder"), made.space.embedder)

    async def _find_unembedded(self, owner: str) -> list[Item]:
        """Memories without a vector of the configured embedder, newest first, at most `CATCH_UP_BATCH`."""
        if owner in self._fully_embedded_owners:
            return []
        known_ids = {item.id for item in await self._index.list_items(EMBEDDER_SET, owner=owner, limit=REINDEX_LIMIT)}
        items = await self._index.list_items(LOCAL_SET, owner=owner, limit=REINDEX_LIMIT)
        return [item for item in items if item.id not in known_ids][:CATCH_UP_BATCH]

    async def _put_local(self, memory: Memory, scope: str) -> None:
        vector = self._local.compute_vector(memory.text)
        await self._index.open(LOCAL_SET, self._local.space)
        await self._index.put(LOCAL_SET, [_build_entry(memory, scope, vector)])

    async def _put_embedded(self, memory: Memory, scope: str, made: Embedded) -> None:
        self._space = made.space
        await self._index.open(EMBEDDER_SET, made.space)
        await self._index.put(EMBEDDER_SET, [_build_entry(memory, scope, made.vectors[0])])

    def _build_memory(self, owner: str, text: str, kind: Kind, source: str, *, tainted: bool) -> Memory:
        memory_text = replace_surrogates(" ".join(text.split()) if kind == "fact" else text.strip())[
            :MAX_CHARS
        ].replace("\x00", "")
        # The id is a hash, so that saving the same text twice, or again after a crash, stores one memory.
        digest = hashlib.blake2b(
            f"{owner}\x00{kind}\x00{source if kind == 'exchange' else ''}\x00{memory_text}".encode()
        )
        return Memory(f"mem_{digest.hexdigest()[:32]}", owner, memory_text, kind, source, self._clock(), tainted)


def format_exchange(question: str, answer: str) -> str:
    """An exchange as it is remembered."""
    return f"{question.strip()[:1000]}\n{answer.strip()[:2000]}"


def _select_relevant(hits: Sequence[Hit], by: Literal["local", "embedder"]) -> tuple[Memory, ...]:
    """The memories of the hits that score high enough, absolutely and compared with the best."""
    if not hits:
        return ()
    least = max(_MIN_SCORES[by], _MIN_RELATIVE_SCORE * hits[0].score)
    items = (_parse_item(hit.item, hit.score) for hit in hits if hit.score >= least)
    return tuple(memory for memory in items if memory is not None)


def _build_scope(conversation_id: str) -> str:
    return replace_surrogates(f"conversation:{conversation_id}").replace("\x00", "")


def _build_entry(memory: Memory, scope: str, vector: Sequence[float]) -> Entry:
    payload: JsonObject = {
        "text": memory.text,
        "kind": memory.kind,
        "source": memory.source,
        "tainted": memory.tainted,
        **({"run_id": memory.run_id} if memory.run_id else {}),
    }
    return Entry(memory.id, memory.owner, vector, payload, scope, memory.at)


def _build_entries(items: Sequence[Item], made: Embedded) -> list[Entry]:
    return [
        Entry(item.id, item.owner, vector, item.payload, item.scope, item.at)
        for item, vector in zip(items, made.vectors, strict=True)
    ]


def _get_text(item: Item) -> str:
    return str(item.payload.get("text", ""))


def _parse_item(item: Item, score: float | None = None) -> Memory | None:
    """Converts an item of the index to a memory."""
    payload = item.payload
    kind: Kind = "exchange" if payload.get("kind") == "exchange" else "fact"
    tainted = payload.get("tainted") is True
    return Memory(item.id, item.owner, _get_text(item), kind, str(payload.get("source", "")), item.at, tainted, score)
