"""The dense branch of retrieval: passages by the vectors of a real embedder, and how far it can be trusted.

Every passage has an entry in the set `vector_set(owner, collection)`, with its chunk id, and its document's id as
scope: filters then narrow the search itself.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from time import monotonic

from agent.core.embedder import Embedded, Embedder, LocalEmbedder
from agent.core.errors import AgentError, EmbedderError, StoreError, VectorSpaceError
from agent.core.models import JsonObject
from agent.core.vectors import Entry, Hit, Space, VectorIndex
from agent.knowledge.lexical import LexicalIndex, Passage, Selection
from agent.knowledge.naming import vector_set
from agent.knowledge.terms import script

log = logging.getLogger(__name__)

PROBES = 16
"""Passages the self-check asks for: enough to tell a model that reads a script from one that does not."""
PROBE_WORDS = 12
DOUBTFUL, SOUND = 0.3, 0.6
"""Share of probes whose passage must come back among the first ten: below the first the branch is left out, from the
second it weighs as much as the words; random vectors find none, a model that can read nearly all."""
CHECK_SECONDS = 3600.0
"""How long a self-check holds."""
MAX_SCOPES = 2_000
"""More documents than this are not named one by one; what filters refuse is then left out of more hits."""
MAX_HITS = 100_000
NO_EMBEDDER = "no embedder is set (AGENT_EMBEDDER_URL), so passages were found by their words alone"


@dataclass(frozen=True, slots=True)
class DenseHit:
    """A passage by its vector. `score` is the cosine; `nearness` is 0 for what two passages of the collection have in
    common by chance and 1 for a passage and its own words, which means the same for every model."""

    id: str
    score: float
    nearness: float


@dataclass(frozen=True, slots=True)
class Trust:
    """What a self-check found: the branch's weight, and the cosines of strangers and of a passage with its words."""

    weight: float = 1.0
    strangers: float = 0.1
    own: float = 0.8


@dataclass(frozen=True, slots=True)
class DenseResult:
    """Hits, best first, and the branch's weight from 0 to 1; or the reason why there are none."""

    hits: tuple[DenseHit, ...] = ()
    weight: float = 0.0
    note: str = ""


class DenseBranch:
    """Searches by vectors; never raises for a fault of the embedder or of the vectors."""

    def __init__(self, vectors: VectorIndex, embedder: Embedder | None) -> None:
        self._vectors = vectors
        # The local embedder hashes letters: it finds what the words find, less well.
        self._embedder = None if isinstance(embedder, LocalEmbedder) else embedder
        self._filled: set[str] = set()
        self._checks: dict[tuple[str, Space, str], tuple[float, Trust]] = {}

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, selection: Selection | None, index: LexicalIndex
    ) -> DenseResult:
        """The passages nearest to the query, of the selection where there is one."""
        if self._embedder is None:
            return DenseResult(note=NO_EMBEDDER)
        name = vector_set(owner, collection)
        try:
            made = await self._embedder.embed([query])
            if made.space.embedder == LocalEmbedder.space.embedder:
                return DenseResult(note=NO_EMBEDDER)
            if not await self._has_vectors(name, owner):
                return DenseResult(note="no passage of this collection has a vector yet; its words alone were searched")
            await self._vectors.open(name, made.space)
            hits = await self._nearest(name, made.vectors[0], owner, limit, selection)
            if not hits:
                return DenseResult()
            trust = await self._trust(self._embedder, name, collection, owner, made.space, script(query), index)
        except (EmbedderError, VectorSpaceError, StoreError) as error:
            return DenseResult(note=_why(error))
        if trust.weight <= 0:
            return DenseResult(note=f"{made.space.embedder} does not read this collection well; it was left out")
        return DenseResult(tuple(_near(hits, trust)), trust.weight)

    async def _has_vectors(self, name: str, owner: str) -> bool:
        """Whether there is anything to search: opening a set that is not there would make it, of this space."""
        if name not in self._filled and await self._vectors.items(name, owner=owner, limit=1):
            self._filled.add(name)
        return name in self._filled

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

    async def _trust(
        self, embedder: Embedder, name: str, collection: str, owner: str, space: Space, written: str,
        index: LexicalIndex,
    ) -> Trust:  # fmt: skip
        """What the self-check says of this model and script; made once an hour."""
        known = self._checks.get((name, space, written))
        if known is not None and monotonic() - known[0] < CHECK_SECONDS:
            return known[1]
        passages = await index.sample(collection, owner=owner, limit=20 * PROBES)
        samples = [passage for passage in passages if script(passage.text) == written]
        samples = samples[:: max(1, len(samples) // PROBES)][:PROBES]
        trust = Trust()  # a script the collection has nothing in: a model of many languages may bridge it
        if samples:
            made = await embedder.embed([_middle(passage.text) for passage in samples])
            trust = await self._checked(name, owner, made, samples)
            log.info("self-check of %s in %s: %s", space, written, trust)
        self._checks[name, space, written] = (monotonic(), trust)
        return trust

    async def _checked(self, name: str, owner: str, made: Embedded, samples: Sequence[Passage]) -> Trust:
        """How often a few words from the middle of a passage lead back to it, and how near they come."""
        own: list[float] = []
        for passage, vector in zip(samples, made.vectors, strict=True):
            hits = await self._vectors.search(name, vector, owner=owner, limit=10)
            own += [hit.score for hit in hits if hit.item.id == passage.chunk_id]
        weight = min(1.0, max(0.0, (len(own) / len(samples) - DOUBTFUL) / (SOUND - DOUBTFUL)))
        pairs = [_cosine(a, b) for at, a in enumerate(made.vectors) for b in made.vectors[:at]]
        if not own or not pairs:
            return Trust(weight)
        strangers = fmean(pairs)
        return Trust(weight, strangers, max(fmean(own), strangers + 0.05))


def entries(passages: Sequence[Passage], made: Embedded, *, owner: str) -> list[Entry]:
    """What belongs into a collection's set of vectors: an entry a passage."""
    empty: JsonObject = {}
    return [
        Entry(passage.chunk_id, owner, vector, empty, passage.document_id)
        for passage, vector in zip(passages, made.vectors, strict=True)
    ]


def _near(hits: Sequence[Hit], trust: Trust) -> list[DenseHit]:
    span = trust.own - trust.strangers
    return [DenseHit(hit.item.id, hit.score, (hit.score - trust.strangers) / span) for hit in hits]


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    length = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0


def _middle(text: str) -> str:
    """A few words from the middle of a passage; of a script without spaces, as many letters as they would have."""
    words = text.split()
    if len(words) < PROBE_WORDS:
        return text[len(text) // 3 : len(text) // 3 + 6 * PROBE_WORDS] or text
    start = (len(words) - PROBE_WORDS) // 2
    return " ".join(words[start : start + PROBE_WORDS])


def _why(error: AgentError) -> str:
    return f"passages were found by their words alone: {error.message}"
