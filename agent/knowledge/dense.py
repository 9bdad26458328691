"""The dense branch of retrieval: passages by the vectors of a real embedder, as far as it can be trusted.

Every passage has an entry in the set `vector_set(owner, collection)`, with its chunk id, its document's id as scope, so
that filters narrow the search itself, and the checksum of the text it was made of, so that it is made once.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agent.core.embedder import Embedded, Embedder, LocalEmbedder
from agent.core.errors import AgentError, EmbedderError, StoreError, VectorSpaceError
from agent.core.memory import EMBEDDER_SETTINGS
from agent.core.models import JsonObject
from agent.core.vectors import Entry, Hit, Space, Stored, VectorIndex
from agent.knowledge.lexical import LexicalIndex, Passage, Selection
from agent.knowledge.naming import VectorSets, vector_set
from agent.knowledge.selfcheck import SelfCheck, Trust

MAX_SCOPES = 2_000
"""More documents than this are not named one by one; what filters refuse is then left out of more hits."""
SCOPES_AT_ONCE = 500
"""Documents asked for in one listing; old SQLite takes a thousand parameters."""
MAX_HITS = 100_000
NO_EMBEDDER = f"no embedder is set ({EMBEDDER_SETTINGS}), so passages were found by their words alone"


@dataclass(frozen=True, slots=True)
class DenseHit:
    """A passage by its vector. `score` is the cosine; `nearness` is 0 for what strangers in the collection have in
    common and 1 for the two halves of one passage, which means the same for every model."""

    id: str
    score: float
    nearness: float


@dataclass(frozen=True, slots=True)
class DenseResult:
    """Hits, best first, the hits of passages that were asked for besides, and the branch's weight from 0 to 1; or the
    reason why there are none."""

    hits: tuple[DenseHit, ...] = ()
    others: Mapping[str, DenseHit] = field(default_factory=dict)
    weight: float = 0.0
    note: str = ""


class DenseBranch:
    """Searches by vectors; never raises for a fault of the embedder or of the vectors."""

    def __init__(self, vectors: VectorIndex, embedder: Embedder | None) -> None:
        self._vectors = vectors
        # The local embedder hashes letters: it finds what the words find, less well.
        self._embedder = None if isinstance(embedder, LocalEmbedder) else embedder
        self._check = SelfCheck(self._embedder) if self._embedder is not None else None

    async def search(
        self,
        collection: str,
        query: str,
        *,
        owner: str,
        limit: int,
        selection: Selection | None,
        index: LexicalIndex,
        also: Sequence[str] = (),
        sets: VectorSets | None = None,
    ) -> DenseResult:
        """The passages nearest to the query, of the selection where there is one; how near those of `also` are."""
        if self._embedder is None or self._check is None:
            return DenseResult(note=NO_EMBEDDER)
        name, remaking = sets or VectorSets(vector_set(owner, collection))
        try:
            made = await self._embedder.embed([query])
            if made.space.embedder == LocalEmbedder.space.embedder:
                return DenseResult(note=NO_EMBEDDER)
            stored = await self._vectors.stored(name, also, owner=owner)
            if stored.space is None:
                return DenseResult(
                    note=f"no passage of {collection!r} has a vector yet, so its words alone were searched; "
                    + _remade(collection, under_way=bool(remaking))
                )
            if stored.space != made.space:
                why = _differs(collection, stored.space, made.space, under_way=bool(remaking))
                return DenseResult(note=f"passages were found by their words alone: {why}")
            trust = await self._check.trust(index, owner, collection, made.space, query)
            if trust.weight <= 0:
                return DenseResult(note=f"{made.space.embedder} does not read this collection well; it was left out")
            hits = await self._nearest(name, made.vectors[0], owner, limit, selection)
        except (EmbedderError, VectorSpaceError, StoreError) as error:
            return DenseResult(note=_why(error))
        found = tuple(_hit(hit.item.id, hit.score, trust) for hit in hits)
        others = {one: _hit(one, score, trust) for one, score in _cosines(made.vectors[0], stored).items()}
        return DenseResult(found, others, trust.weight)

    async def _nearest(
        self, name: str, vector: Sequence[float], owner: str, limit: int, selection: Selection | None
    ) -> list[Hit]:
        """The nearest of the selection, exactly: hits come by their distance, so that the first `limit` of those that
        pass are the nearest that pass; more are fetched until there are so many, or no more."""
        if selection is None:
            return await self._vectors.search(name, vector, owner=owner, limit=limit)
        documents = sorted(set(selection.documents.values()))
        scopes = documents if len(documents) <= MAX_SCOPES else None
        wanted = min(limit, len(selection.documents))
        fetch = 2 * limit
        while wanted:
            hits = await self._vectors.search(name, vector, owner=owner, limit=fetch, scopes=scopes)
            passed = [hit for hit in hits if hit.item.id in selection.documents]
            if len(passed) >= wanted or len(hits) < fetch or fetch >= MAX_HITS:
                return passed[:limit]
            fetch *= 4
        return []


async def embedded(
    passages: Sequence[Passage],
    embedder: Embedder,
    vectors: VectorIndex,
    *,
    owner: str,
    collection: str,
    name: str = "",
    documents: Sequence[str] = (),
) -> Embedded:
    """A vector a passage, for `entries`; at least one passage. What the set holds of the same text, in the documents of
    these passages and in `documents` (those they replace), is taken from there, and the embedder is asked for the rest.
    The set `name` (without it, the collection's first one) is there then. `EmbedderError`, `VectorSpaceError`,
    `StoreError`."""
    name = name or vector_set(owner, collection)
    texts = [passage_text(passage) for passage in passages]
    scopes = sorted({passage.document_id for passage in passages} | set(documents))
    parts = [scopes[start : start + SCOPES_AT_ONCE] for start in range(0, len(scopes), SCOPES_AT_ONCE)]
    items = [i for part in parts for i in await vectors.items(name, owner=owner, limit=MAX_HITS, scopes=part)]
    held = {str(item.payload["checksum"]): item.id for item in items if "checksum" in item.payload}
    wanted = {text: held[mark] for text in texts if (mark := checksum(text)) in held}
    stored = await vectors.stored(name, sorted(set(wanted.values())), owner=owner)
    known = {text: tuple(stored.vectors[one].tolist()) for text, one in wanted.items() if one in stored.vectors}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    space = stored.space
    if missing or space is None:
        made = await embedder.embed(missing)
        if space is not None and made.space != space:
            raise VectorSpaceError(_differs(collection, space, made.space), agent_id="memory")
        await vectors.open(name, made.space)
        space = made.space
        known |= dict(zip(missing, made.vectors, strict=True))
    return Embedded(space, tuple(known[text] for text in texts))


def entries(passages: Sequence[Passage], made: Embedded, *, owner: str) -> list[Entry]:
    """What belongs into a collection's set of vectors: an entry a passage."""
    return [
        Entry(passage.chunk_id, owner, vector, _payload(passage), passage.document_id)
        for passage, vector in zip(passages, made.vectors, strict=True)
    ]


def passage_text(passage: Passage) -> str:
    """What of a passage is embedded."""
    return f"{passage.title}\n{passage.text}"


def checksum(text: str) -> str:
    """What tells one text from another: 128 bits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _payload(passage: Passage) -> JsonObject:
    return {"checksum": checksum(passage_text(passage))}


def _hit(identity: str, cosine: float, trust: Trust) -> DenseHit:
    return DenseHit(identity, cosine, (cosine - trust.strangers) / (trust.own - trust.strangers))


def _cosines(query: Sequence[float], stored: Stored) -> dict[str, float]:
    """The cosines of the query and of stored vectors, which have length one."""
    if not stored.vectors:
        return {}
    vector = np.array(query, np.float32)
    scores = np.stack(list(stored.vectors.values())) @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
    return dict(zip(stored.vectors, scores.tolist(), strict=True))


def _differs(collection: str, stored: Space, made: Space, *, under_way: bool = False) -> str:
    return f"the vectors of {collection!r} were made by {stored}, the embedder is {made}; set it back, or " + _remade(
        collection, under_way=under_way
    )


def _remade(collection: str, *, under_way: bool) -> str:
    """What makes the vectors anew, or goes on with it."""
    command = f"`stepgate collections reindex {shlex.quote(collection)}`"
    return (
        f"wait until they are made anew, which has begun ({command} goes on with it)"
        if under_way
        else f"{command} makes them"
    )


def _why(error: AgentError) -> str:
    return f"passages were found by their words alone: {error.message}"
