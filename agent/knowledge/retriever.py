"""`Retriever`: passages of a collection that answer a query, by words, by vectors, or by both.

It degrades rather than fails: whatever is the matter with the vectors, the words are searched, and `note` says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.core.embedder import Embedder
from agent.core.models import JsonObject, RetrievalMode
from agent.core.vectors import VectorIndex
from agent.knowledge.bm25 import scored
from agent.knowledge.collection_store import CollectionStore
from agent.knowledge.dense import DenseBranch, DenseHit, DenseResult
from agent.knowledge.errors_retrieval import MemoryNoResultsError
from agent.knowledge.evidence import Evidence, descending, rank_score, reason, relevance, weigh
from agent.knowledge.fusion import Fused, blend, fuse, near_share
from agent.knowledge.lexical import Indexed, LexicalHit, LexicalIndex, LexicalResult
from agent.knowledge.models import MemoryOutput, MemoryQuery, RetrievedContext
from agent.knowledge.terms import query_words

POOL, SPARE = 20, 10
"""Hits of each branch that are fused, and fused hits that are weighed: at least the first number, and as many more than
are asked for as the second. Forty give the same first ten on four collections, and take twice the time."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the branches found, and the mode that was possible; words alone can be reranked too."""

    mode: RetrievalMode
    rerank: bool
    lexical: LexicalResult
    dense: DenseResult
    limit: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A passage on its way into the result."""

    indexed: Indexed
    evidence: Evidence
    hit: LexicalHit | None
    near: DenseHit | None
    fused: float
    ranks: Mapping[str, int] = field(default_factory=dict)


class Retriever:
    """Searches what a `LexicalIndex` and a `VectorIndex` hold of the same chunks. Without an embedder, or with the
    local one, which finds only what the words find, every mode searches the words. `collections` knows which vectors
    serve a collection; without it, those that were made first do."""

    def __init__(
        self,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None = None,
        collections: CollectionStore | None = None,
    ) -> None:
        self._lexical = lexical
        self._collections = collections
        self._dense = DenseBranch(vectors, embedder)

    async def search(
        self,
        query: MemoryQuery,
        *,
        collection: str,
        owner: str,
        mode: RetrievalMode = "hybrid_rerank",
    ) -> MemoryOutput:
        """The best passages that reach the query's least relevance (see `evidence.py` for the scale).

        Raises `MemoryNoResultsError` when there is nothing, `BadRequestError` for an unknown filter, `StoreError`."""
        found = await self._find(query, query.filters or {}, collection, owner, mode)
        total, results = _results(found, await self._candidates(found, collection, owner), query)
        if not results:
            raise _nothing(query, collection, found.notes)
        return MemoryOutput(results=tuple(results), total_found=total, note="; ".join(found.notes))

    async def _find(
        self, query: MemoryQuery, filters: JsonObject, collection: str, owner: str, mode: RetrievalMode
    ) -> _Found:
        """Ask the branches the mode needs."""
        limit = max(POOL, query.top_k + SPARE)
        lexical = LexicalResult()
        if mode != "vector":
            lexical = await self._words(query, filters, collection, owner, limit)
        dense = DenseResult()
        if mode != "lexical":
            selection = await self._lexical.select(collection, owner=owner, filters=filters) if filters else None
            dense = await self._dense.search(
                collection,
                query.query_text,
                owner=owner,
                limit=limit,
                selection=selection,
                index=self._lexical,
                also=[hit.id for hit in lexical.hits],
                sets=await self._collections.vectors(owner, collection) if self._collections else None,
            )
        if mode == "vector" and not dense.hits:
            lexical = await self._words(query, filters, collection, owner, limit)
        possible: RetrievalMode = mode if dense.hits else "lexical"
        return _Found(possible, mode == "hybrid_rerank", lexical, dense, limit, (dense.note,) if dense.note else ())

    async def _words(
        self, query: MemoryQuery, filters: JsonObject, collection: str, owner: str, limit: int
    ) -> LexicalResult:
        return await self._lexical.search(
            collection, query.query_text, owner=owner, limit=limit, filters=filters or None
        )

    async def _candidates(self, found: _Found, collection: str, owner: str) -> list[_Candidate]:
        """The best of what was found, best first, with what speaks for each."""
        hits = {hit.id: hit for hit in found.lexical.hits}
        near = {hit.id: hit for hit in found.dense.hits}
        fused = fuse({"lexical": list(hits), "vector": list(near)}, {"vector": found.dense.weight})
        missing = [one.id for one in fused if one.id not in hits]
        stored = await self._lexical.passages(collection, missing, owner=owner) if missing else {}
        others = {identity: found.lexical.told(indexed) for identity, indexed in stored.items()}
        for identity, indexed in others.items():
            hit = scored(found.lexical, indexed)
            if hit is not None:
                hits[identity] = hit
        passages = {**others, **{hit.id: hit.indexed for hit in hits.values()}}
        near = {**found.dense.others, **near}
        # What was removed since its vector was found has no passage any more.
        there = [one for one in fused if one.id in passages]
        if found.rerank:
            there = _blended(there, hits, near, found.dense.weight)
        best = max((hit.score for hit in hits.values()), default=0.0)
        candidates = [
            _Candidate(
                passages[one.id],
                weigh(passages[one.id], hits.get(one.id), best, found.lexical, _nearness(near.get(one.id))),
                hits.get(one.id),
                near.get(one.id),
                one.score,
                one.ranks,
            )
            for one in there[: found.limit]
        ]
        return _reranked(candidates, found.dense.weight) if found.rerank else candidates


def _results(found: _Found, candidates: Sequence[_Candidate], query: MemoryQuery) -> tuple[int, list[RetrievedContext]]:
    """How many candidates are relevant enough, and the best of them."""
    scores = descending([relevance(candidate.evidence) for candidate in candidates])
    enough = sum(score >= query.min_relevance_score for score in scores)
    shown = min(enough, query.top_k)
    weights = found.lexical.weights
    spoken = query_words(query.query_text) if found.mode != "vector" else {}
    words = {term: word for term, word in spoken.items() if term in weights or not weights}
    ranked = zip(candidates[:shown], scores[:shown], strict=True)
    return enough, [_context(one, score, found, words) for one, score in ranked]


def _blended(
    fused: Sequence[Fused], hits: Mapping[str, LexicalHit], near: Mapping[str, DenseHit], weight: float
) -> list[Fused]:
    """The fused hits by their scores instead of their ranks."""
    best = max((hit.score for hit in hits.values()), default=0.0) or 1.0
    nearest = max((hit.nearness for hit in near.values()), default=0.0)
    scores = {
        one.id: blend(
            hits[one.id].score / best if one.id in hits else 0.0,
            near_share(near[one.id].nearness, nearest) if one.id in near else 0.0,
            weight,
        )
        for one in fused
    }
    return sorted(fused, key=lambda one: (-scores[one.id], one.id))


def _reranked(candidates: Sequence[_Candidate], weight: float) -> list[_Candidate]:
    """The candidates by all that speaks for them."""
    nearest = max((one.evidence.nearness or 0.0 for one in candidates), default=0.0)
    return sorted(candidates, key=lambda one: -rank_score(one.evidence, nearest, weight))


def _nearness(hit: DenseHit | None) -> float | None:
    return None if hit is None else hit.nearness


def _context(candidate: _Candidate, score: float, found: _Found, words: Mapping[str, str]) -> RetrievedContext:
    passage = candidate.indexed.passage
    terms = {*candidate.indexed.title_terms, *candidate.indexed.text_terms}
    url = passage.metadata.get("source_url")
    return RetrievedContext(
        chunk_id=passage.chunk_id,
        content=passage.text,
        source_id=passage.document_id,
        source_url=url if isinstance(url, str) else None,
        relevance_score=min(1.0, max(0.0, score)),
        retrieval_mode=found.mode,
        why_selected=reason(
            candidate.evidence,
            [word for term, word in words.items() if term in terms],
            [word for term, word in words.items() if term not in terms],
            strict=candidate.hit is not None and candidate.hit.strict,
        ),
        metadata={**passage.metadata, "title": passage.title, "scores": _scores(candidate, found)},
    )


def _scores(candidate: _Candidate, found: _Found) -> JsonObject:
    """Each branch's own rank and score, and the fused one."""
    scores: JsonObject = {"fused": candidate.fused, "vector_weight": found.dense.weight}
    if candidate.hit is not None:
        scores["lexical"] = {
            "rank": candidate.ranks.get("lexical"),
            "bm25": candidate.hit.score,
            "coverage": candidate.hit.coverage,
            "strict": candidate.hit.strict,
        }
    if candidate.near is not None:
        scores["vector"] = {"rank": candidate.ranks.get("vector"), "cosine": candidate.near.score}
    return scores


def _nothing(query: MemoryQuery, collection: str, notes: Sequence[str]) -> MemoryNoResultsError:
    because = f" ({'; '.join(notes)})" if notes else ""
    return MemoryNoResultsError(
        f"nothing in {collection!r} is relevant enough to {query.query_text[:100]!r} (at least "
        f"{query.min_relevance_score:g}); ask more broadly, or lower min_relevance_score{because}",
        agent_id="memory",
        collection=collection,
        min_relevance_score=query.min_relevance_score,
    )
