"""`Retriever`: finds the passages of a collection that match a query, by words, by vectors, or by both.

If the vectors cannot be used, it searches the words alone, and `note` gives the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.event_loop import LoopTurns
from agent.core.models import JsonObject, RetrievalMode
from agent.llm.embedder import Embedder
from agent.storage.vectors import VectorIndex
from agent.text.terms import map_query_terms
from gateway.features.documents.engine.search.bm25 import PassageScorer
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.fusion import FusedHit, blend_scores, fuse_rankings, normalize_similarity
from gateway.features.documents.engine.search.lexical import IndexedPassage, LexicalHit, LexicalIndex, LexicalResult
from gateway.features.documents.engine.search.models import MemoryOutput, MemoryQuery, RetrievedContext
from gateway.features.documents.engine.search.naming import VectorSets
from gateway.features.documents.engine.search.scoring import (
    Evidence,
    collect_evidence,
    compute_rank_score,
    compute_relevance,
    format_reason,
    make_monotone,
)
from gateway.features.documents.engine.search.vector_search import VectorHit, VectorResult, VectorSearch

POOL, SPARE = 20, 10
"""Each branch is asked for `max(POOL, top_k + SPARE)` hits. A pool of forty gives the same first ten results on four
collections and takes twice the time."""


@dataclass(frozen=True, slots=True)
class _BranchResults:
    """The results of the branches, and the mode that was possible. Lexical results can be reranked too."""

    mode: RetrievalMode
    rerank: bool
    lexical: LexicalResult
    vector: VectorResult
    limit: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A passage on its way into the results."""

    indexed: IndexedPassage
    evidence: Evidence
    hit: LexicalHit | None
    vector_hit: VectorHit | None
    fused_score: float
    ranks: Mapping[str, int] = field(default_factory=dict)


class VectorSetLookup(Protocol):
    """Names the vector sets of a collection. `ingest.collection_store.CollectionStore` implements it."""

    async def get_vector_sets(self, owner: str, name: str) -> VectorSets:
        """The set that serves searches, and the one that is being rebuilt, if any."""


class Retriever:
    """Searches the chunks that a `LexicalIndex` and a `VectorIndex` hold.

    Without an embedder every mode searches the words, and also with the local embedder, which finds only what the words
    find. `collections` names the vector set that serves a collection; without it, the first set does.
    """

    def __init__(
        self,
        lexical: LexicalIndex,
        vectors: VectorIndex,
        embedder: Embedder | None = None,
        collections: VectorSetLookup | None = None,
    ) -> None:
        self._lexical = lexical
        self._collections = collections
        self._vector_search = VectorSearch(vectors, embedder)
        self._turns = LoopTurns()

    async def search(
        self,
        query: MemoryQuery,
        *,
        collection: str,
        owner: str,
        mode: RetrievalMode = "hybrid_rerank",
    ) -> MemoryOutput:
        """The best passages that reach the minimum relevance of the query (scale: `scoring.py`).

        Raises `MemoryNoResultsError` if there is none, `BadRequestError` for an unknown filter, and `StoreError`.
        """
        branches = await self._query_branches(query, query.filters or {}, collection, owner, mode)
        stored = await self._read_missing(branches, collection, owner)
        async with self._turns.take():
            total, results = _select_results(branches, _build_candidates(branches, stored), query)
        if not results:
            raise make_no_results_error(query, [collection], branches.notes)
        return MemoryOutput(results=tuple(results), total_found=total, note="; ".join(branches.notes))

    async def _query_branches(
        self, query: MemoryQuery, filters: JsonObject, collection: str, owner: str, mode: RetrievalMode
    ) -> _BranchResults:
        """Queries the branches that the mode needs."""
        limit = max(POOL, query.top_k + SPARE)
        lexical = LexicalResult()
        if mode != "vector":
            lexical = await self._search_words(query, filters, collection, owner, limit)
        vector = VectorResult()
        if mode != "lexical":
            selection = await self._lexical.select(collection, owner=owner, filters=filters) if filters else None
            vector = await self._vector_search.search(
                collection,
                query.query_text,
                owner=owner,
                limit=limit,
                selection=selection,
                index=self._lexical,
                also=[hit.id for hit in lexical.hits],
                sets=await self._collections.get_vector_sets(owner, collection) if self._collections else None,
            )
        if mode == "vector" and not vector.hits:
            lexical = await self._search_words(query, filters, collection, owner, limit)
        actual_mode: RetrievalMode = mode if vector.hits else "lexical"
        notes = (vector.note,) if vector.note else ()
        return _BranchResults(actual_mode, mode == "hybrid_rerank", lexical, vector, limit, notes)

    async def _search_words(
        self, query: MemoryQuery, filters: JsonObject, collection: str, owner: str, limit: int
    ) -> LexicalResult:
        return await self._lexical.search(
            collection, query.query_text, owner=owner, limit=limit, filters=filters or None
        )

    async def _read_missing(
        self, branches: _BranchResults, collection: str, owner: str
    ) -> Mapping[str, IndexedPassage]:
        """The passages that were found by their vectors only."""
        known_hit_ids = {hit.id for hit in branches.lexical.hits}
        missing = [hit.id for hit in branches.vector.hits if hit.id not in known_hit_ids]
        return await self._lexical.get_passages(collection, missing, owner=owner) if missing else {}


def _build_candidates(branches: _BranchResults, stored: Mapping[str, IndexedPassage]) -> list[_Candidate]:
    """The best passages of both branches, best first, with their evidence."""
    hits = {hit.id: hit for hit in branches.lexical.hits}
    vector_hits = {hit.id: hit for hit in branches.vector.hits}
    fused = fuse_rankings({"lexical": list(hits), "vector": list(vector_hits)}, {"vector": branches.vector.weight})
    others = {identity: branches.lexical.normalize_terms(indexed) for identity, indexed in stored.items()}
    scorer = PassageScorer(branches.lexical)
    for identity, indexed in others.items():
        hit = scorer.score(indexed)
        if hit is not None:
            hits[identity] = hit
    passages = {**others, **{hit.id: hit.indexed for hit in hits.values()}}
    vector_hits = {**branches.vector.requested_hits, **vector_hits}
    # A passage can be removed between the vector search and the read of what it found.
    known_ids = [one for one in fused if one.id in passages]
    if branches.rerank:
        known_ids = _blend_ranking(known_ids, hits, vector_hits, branches.vector.weight)
    best = max((hit.score for hit in hits.values()), default=0.0)
    candidates = [
        _Candidate(
            passages[one.id],
            collect_evidence(
                passages[one.id], hits.get(one.id), best, branches.lexical, _get_similarity(vector_hits.get(one.id))
            ),
            hits.get(one.id),
            vector_hits.get(one.id),
            one.score,
            one.ranks,
        )
        for one in known_ids[: branches.limit]
    ]
    return _rerank(candidates, branches.vector.weight) if branches.rerank else candidates


def _select_results(
    branches: _BranchResults, candidates: Sequence[_Candidate], query: MemoryQuery
) -> tuple[int, list[RetrievedContext]]:
    """The number of candidates that are relevant enough, and the best of them."""
    scores = make_monotone([compute_relevance(candidate.evidence) for candidate in candidates])
    relevant_count = sum(score >= query.min_relevance_score for score in scores)
    result_count = min(relevant_count, query.top_k)
    weights = branches.lexical.weights
    words_by_term = map_query_terms(query.query_text) if branches.mode != "vector" else {}
    words = {term: word for term, word in words_by_term.items() if term in weights or not weights}
    ranked = zip(candidates[:result_count], scores[:result_count], strict=True)
    return relevant_count, [_to_context(one, score, branches, words) for one, score in ranked]


def _blend_ranking(
    fused: Sequence[FusedHit], hits: Mapping[str, LexicalHit], vector_hits: Mapping[str, VectorHit], weight: float
) -> list[FusedHit]:
    """The fused hits reordered by blended scores instead of ranks."""
    best = max((hit.score for hit in hits.values()), default=0.0) or 1.0
    best_similarity = max((hit.similarity for hit in vector_hits.values()), default=0.0)
    scores = {
        one.id: blend_scores(
            hits[one.id].score / best if one.id in hits else 0.0,
            normalize_similarity(vector_hits[one.id].similarity, best_similarity) if one.id in vector_hits else 0.0,
            weight,
        )
        for one in fused
    }
    return sorted(fused, key=lambda one: (-scores[one.id], one.id))


def _rerank(candidates: Sequence[_Candidate], weight: float) -> list[_Candidate]:
    """The candidates ordered by all their evidence."""
    best_similarity = max((one.evidence.similarity or 0.0 for one in candidates), default=0.0)
    return sorted(candidates, key=lambda one: -compute_rank_score(one.evidence, best_similarity, weight))


def _get_similarity(hit: VectorHit | None) -> float | None:
    return None if hit is None else hit.similarity


def _to_context(
    candidate: _Candidate, score: float, branches: _BranchResults, words: Mapping[str, str]
) -> RetrievedContext:
    passage = candidate.indexed.passage
    terms = {*candidate.indexed.title_terms, *candidate.indexed.text_terms}
    url = passage.metadata.get("source_url")
    return RetrievedContext(
        chunk_id=passage.chunk_id,
        content=passage.text,
        source_id=passage.document_id,
        source_url=url if isinstance(url, str) else None,
        relevance_score=min(1.0, max(0.0, score)),
        retrieval_mode=branches.mode,
        why_selected=format_reason(
            candidate.evidence,
            [word for term, word in words.items() if term in terms],
            [word for term, word in words.items() if term not in terms],
            strict=candidate.hit is not None and candidate.hit.has_all_terms,
        ),
        metadata={**passage.metadata, "title": passage.title, "scores": _describe_scores(candidate, branches)},
    )


def _describe_scores(candidate: _Candidate, branches: _BranchResults) -> JsonObject:
    """The rank and score of each branch, and the fused score, for the metadata."""
    scores: JsonObject = {"fused": candidate.fused_score, "vector_weight": branches.vector.weight}
    if candidate.hit is not None:
        scores["lexical"] = {
            "rank": candidate.ranks.get("lexical"),
            "bm25": candidate.hit.score,
            "coverage": candidate.hit.coverage,
            "strict": candidate.hit.has_all_terms,
        }
    if candidate.vector_hit is not None:
        scores["vector"] = {"rank": candidate.ranks.get("vector"), "cosine": candidate.vector_hit.cosine}
    return scores


def make_no_results_error(
    query: MemoryQuery, collections: Sequence[str], notes: Sequence[str] = ()
) -> MemoryNoResultsError:
    """The error of a search that found nothing relevant in these collections; `details` name a single one."""
    because = f" ({'; '.join(notes)})" if notes else ""
    place = repr(collections[0]) if len(collections) == 1 else f"{len(collections)} collections"
    return MemoryNoResultsError(
        f"nothing in {place} is relevant enough to {query.query_text[:100]!r} (at least "
        f"{query.min_relevance_score:g}); ask more broadly, or lower min_relevance_score{because}",
        agent_id="memory",
        min_relevance_score=query.min_relevance_score,
        **({"collection": collections[0]} if len(collections) == 1 else {}),
    )
