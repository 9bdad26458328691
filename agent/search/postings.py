"""`PostingsIndex`: BM25F over the postings of an inverted index in a database.

FTS5's own `bm25()` and PostgreSQL's `ts_rank` visit every match: a query of ten words over 10,000 chunks took FTS5 14
ms and more, and `ts_rank` has no idf. Here the database returns the postings of a term, memory keeps them, and a search
adds a few arrays. Added passages are read and appended; only a removal makes the index read a collection again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agent.core.models import JsonObject
from agent.core.surrogates import to_storable_text
from agent.search.bm25 import FILLER_WEIGHT, compute_coverage_weight, compute_idf, score_bm25f
from agent.search.filters import parse_filters
from agent.search.lexical import IndexedPassage, LexicalHit, LexicalResult, Passage, Selection
from agent.search.postings_rows import CollectionVersion, Lengths, LexicalRows, PassageNumbers, Postings, TermCounts
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.stop_words import detect_part_languages
from agent.text.terms import (
    expand_query_terms,
    extract_terms,
    is_filler,
    is_legacy_stop_stem,
    make_language_marker,
    map_query_terms,
)

MAX_CACHED_NUMBERS = 16_000_000
"""Numbers of four bytes kept in memory over all collections, 64 MB; what was searched least recently goes first."""
MAX_INLINE_NUMBERS = 1_000_000
"""Adding up more numbers than this leaves the event loop."""


@dataclass(frozen=True, slots=True)
class _ScoredTerm:
    """The postings of a term up to passage `last`, with their scores and positions in the collection's arrays."""

    postings: Postings
    last: int
    positions: NDArray[np.int32]
    scores: TermCounts
    idf: float
    weight: float

    @property
    def size(self) -> int:
        """The number of four-byte values in memory."""
        return 6 * len(self.positions)


@dataclass(slots=True)
class _CachedCollection:
    """The part of one collection version that is in memory. The terms are in the order of their last use."""

    version: CollectionVersion
    lengths: Lengths
    languages: tuple[str, ...]
    """The languages of its passages for which there is a stemmer."""
    terms: OrderedDict[str, _ScoredTerm] = field(default_factory=OrderedDict)

    @property
    def size(self) -> int:
        """The number of four-byte values in memory."""
        return 4 * len(self.lengths.numbers) + sum(word.size for word in self.terms.values())


class PostingsIndex:
    """Implements `LexicalIndex` on `LexicalRows`."""

    def __init__(self, rows: LexicalRows) -> None:
        self._rows = rows
        self._cache: OrderedDict[int, _CachedCollection] = OrderedDict()

    async def put(self, collection: str, passages: Sequence[Passage], *, owner: str) -> None:
        """See `LexicalIndex.put`."""
        if passages:
            # The last passage with an id wins, as if they had been put one after the other.
            latest = list({passage.chunk_id: passage for passage in passages}.values())
            await self._rows.put(owner, collection, await asyncio.to_thread(_index_passages, latest))

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, filters: JsonObject | None = None
    ) -> LexicalResult:
        """See `LexicalIndex.search`."""
        cached = await self._load_collection(owner, collection, query)
        if cached is None:
            return LexicalResult()
        words_by_term, variants = map_query_terms(query), expand_query_terms(query, cached.languages)
        # Merge before the next await: a concurrent search may evict terms.
        words = {term: _merge_variants(cached, own) for term, own in variants.items()}
        allowed = None
        if filters:
            allowed = await self._rows.list_filtered_numbers(cached.version.id, parse_filters(filters))
        # An older index lacks words whose stem is a stop word; that such a word is missing proves nothing.
        is_uninformative = [
            is_filler(words_by_term[term]) or (is_legacy_stop_stem(words_by_term[term]) and not held.positions.size)
            for term, held in words.items()
        ]
        shares = [FILLER_WEIGHT if one else 1.0 for one in is_uninformative]
        weights = {term: share * held.weight for (term, held), share in zip(words.items(), shares, strict=True)}
        if sum(len(word.positions) for word in words.values()) > MAX_INLINE_NUMBERS:
            best = await asyncio.to_thread(_rank_passages, cached.lengths.numbers, words, weights, limit, allowed)
        else:
            best = _rank_passages(cached.lengths.numbers, words, weights, limit, allowed)
        found = await self._rows.get_by_number(cached.version.id, [place.number for place in best.passages])
        idf_by_term = {term: held.idf for term, held in words.items()}
        others = {form: term for term, own in variants.items() for form in own if form != term}
        result = LexicalResult((), best.total, weights, idf_by_term, cached.lengths.mean_lengths, others)
        hits = [
            LexicalHit(result.normalize_terms(found[place.number]), place.score, place.coverage, place.strict)
            for place in best.passages
            if place.number in found
        ]
        return replace(result, hits=tuple(hits))

    async def select(self, collection: str, *, owner: str, filters: JsonObject) -> Selection:
        """See `LexicalIndex.select`."""
        version = await self._rows.get_version(owner, collection)
        if version is None:
            return Selection({}, 0)
        return await self._rows.select_documents(version.id, parse_filters(filters))

    async def get_passages(
        self, collection: str, chunk_ids: Sequence[str], *, owner: str
    ) -> Mapping[str, IndexedPassage]:
        """See `LexicalIndex.get_passages`."""
        version = await self._rows.get_version(owner, collection)
        return {} if version is None else await self._rows.get_by_chunk_id(version.id, chunk_ids)

    async def sample(self, collection: str, *, owner: str, limit: int) -> list[Passage]:
        """See `LexicalIndex.sample`."""
        version = await self._rows.get_version(owner, collection)
        return [] if version is None else await self._rows.sample(version.id, limit)

    async def refresh_terms(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> int:
        """See `LexicalIndex.refresh_terms`."""
        kept = await self.get_passages(collection, chunk_ids, owner=owner)
        there = [kept[one] for one in chunk_ids if one in kept]
        made = await asyncio.to_thread(_index_passages, [one.passage for one in there])
        changed = [new for old, new in zip(there, made, strict=True) if new != old]
        if changed:
            await self._rows.put(owner, collection, changed)
        return len(changed)

    async def delete(self, collection: str, document_ids: Sequence[str], *, owner: str) -> int:
        """See `LexicalIndex.delete`."""
        return await self._rows.delete(owner, collection, document_ids)

    async def drop(self, collection: str, *, owner: str) -> None:
        """See `LexicalIndex.drop`."""
        await self._rows.drop(owner, collection)

    async def _load_collection(self, owner: str, collection: str, query: str) -> _CachedCollection | None:
        """Returns the collection with the postings of the query terms, or None if it does not exist.

        Starts again if another process changes the collection meanwhile.
        """
        while (version := await self._rows.get_version(owner, collection)) is not None:
            known = self._cache.get(version.id)
            if known is not None and not version.only_added_since(known.version):
                known = None
            held = known.terms if known is not None else {}
            languages = known.languages if known is not None else ()
            if known is None or known.version != version:
                there = await self._rows.find_existing_terms(
                    version.id, [make_language_marker(one) for one in SNOWBALL_LANGUAGES]
                )
                languages = tuple(one for one in SNOWBALL_LANGUAGES if make_language_marker(one) in there)
            words = [form for own in expand_query_terms(query, languages).values() for form in own]
            last = known.lengths.last if known is not None else 0
            after = {word: held[word].last if word in held else 0 for word in words}
            is_current = known is not None and known.version == version
            if is_current:
                after = {word: at for word, at in after.items() if word not in held or at < last}
            if known is not None and is_current and not after:
                self._mark_used(known, words)
                return known
            read = await self._rows.load(version, after, None if is_current else last)
            if read is not None:
                return self._cache_collection(
                    await asyncio.to_thread(_merge_update, version, languages, known, *read), words
                )
        return None

    def _cache_collection(self, cached: _CachedCollection, query_terms: Sequence[str]) -> _CachedCollection:
        """Caches a collection, and evicts the least recently used collections and terms beyond the limit."""
        self._mark_used(cached, query_terms)
        size = sum(other.size for other in self._cache.values())
        while size > MAX_CACHED_NUMBERS and len(self._cache) > 1:
            size -= self._cache.popitem(last=False)[1].size
        while size > MAX_CACHED_NUMBERS and len(cached.terms) > len(query_terms):
            size -= cached.terms.popitem(last=False)[1].size
        return cached

    def _mark_used(self, cached: _CachedCollection, query_terms: Sequence[str]) -> None:
        """Marks a collection and its terms as most recently used."""
        self._cache[cached.version.id] = cached
        self._cache.move_to_end(cached.version.id)
        for word in query_terms:
            cached.terms.move_to_end(word)


@dataclass(frozen=True, slots=True)
class _RankedPassage:
    number: int
    score: float
    coverage: float
    strict: bool


@dataclass(frozen=True, slots=True)
class _Ranking:
    passages: list[_RankedPassage]
    total: int


def _rank_passages(
    numbers: PassageNumbers,
    words: Mapping[str, _ScoredTerm],
    weights: Mapping[str, float],
    limit: int,
    allowed: PassageNumbers | None,
) -> _Ranking:
    """Returns the best passages: those with every term by score, then the others by score."""
    count = len(numbers)
    if not count or not words or limit < 1:
        return _Ranking([], 0)
    positions = np.concatenate([word.positions for word in words.values()])
    scores = np.bincount(positions, np.concatenate([word.scores for word in words.values()]), minlength=count)
    held = np.bincount(positions, minlength=count)
    if allowed is not None:
        held[~np.isin(numbers, allowed)] = 0
    strict = held == len(words)
    ranked = np.where(held > 0, scores + strict * (scores.max(initial=0.0) + 1.0), -1.0)
    total = int(np.count_nonzero(held))
    first = np.argpartition(-ranked, min(limit, count) - 1)[:limit]
    chosen = sorted((at for at in first.tolist() if held[at]), key=lambda at: (-ranked[at], numbers[at]))
    shares = np.repeat([weights[word] for word in words], [len(word.positions) for word in words.values()])
    covered = np.bincount(positions, shares, minlength=count) / (sum(weights.values()) or 1.0)
    return _Ranking(
        [
            _RankedPassage(int(numbers[at]), float(scores[at]), min(float(covered[at]), 1.0), bool(strict[at]))
            for at in chosen
        ],
        total,
    )


def _merge_update(
    version: CollectionVersion,
    languages: tuple[str, ...],
    known: _CachedCollection | None,
    lengths: Lengths | None,
    read: Mapping[str, Postings],
) -> _CachedCollection:
    """Returns a collection with newly read postings. The old object stays unchanged, because a search may use it."""
    if known is None:
        assert lengths is not None
        fresh = OrderedDict((word, _score_term(lengths, held)) for word, held in read.items())
        return _CachedCollection(version, lengths, languages, fresh)
    joined = known.lengths.concatenate(lengths) if lengths is not None else known.lengths
    words = OrderedDict(known.terms)
    for word, held in read.items():
        words[word] = _score_term(joined, words[word].postings.concatenate(held) if word in words else held)
    return _CachedCollection(version, joined, languages, words)


def _score_term(lengths: Lengths, postings: Postings) -> _ScoredTerm:
    """Returns a term with its scores in a collection."""
    positions = np.searchsorted(lengths.numbers, postings.numbers)
    held = lengths.title[positions].astype(np.float64), lengths.text[positions].astype(np.float64)
    passages, holding = len(lengths.numbers), len(positions)
    rare = compute_idf(passages, holding)
    counts = postings.title.astype(np.float64), postings.text.astype(np.float64)
    scores = score_bm25f(rare, *counts, held, lengths.mean_lengths)
    return _ScoredTerm(
        postings,
        lengths.last,
        positions.astype(np.int32),
        scores.astype(np.float32),
        rare,
        compute_coverage_weight(passages, holding),
    )


def _merge_variants(cached: _CachedCollection, variants: Sequence[str]) -> _ScoredTerm:
    """Returns the stems that a word has in the languages of a collection, merged into one term."""
    held = [cached.terms[form] for form in variants]
    some = [one for one in held if one.positions.size]
    if len(some) < 2:
        return some[0] if some else held[0]
    numbers, at = np.unique(np.concatenate([one.postings.numbers for one in some]), return_inverse=True)
    title, text = (
        np.bincount(at, np.concatenate(counts)).astype(np.float32)
        for counts in zip(*((one.postings.title, one.postings.text) for one in some), strict=True)
    )
    return _score_term(cached.lengths, Postings(numbers, title, text))


def _index_passages(passages: Sequence[Passage]) -> list[IndexedPassage]:
    """Returns the passages with their terms, each in its own detected language or that of its document."""
    stored = [
        Passage(
            to_storable_text(p.chunk_id),
            to_storable_text(p.document_id),
            to_storable_text(p.title),
            to_storable_text(p.text),
            p.metadata,
        )
        for p in passages
    ]
    texts: dict[str, list[str]] = {}
    for passage in stored:
        texts.setdefault(passage.document_id, []).append(passage.text)
    languages = {document: iter(detect_part_languages(parts)) for document, parts in texts.items()}
    return [_index_in_language(next(languages[passage.document_id]), passage) for passage in stored]


def _index_in_language(language: str, passage: Passage) -> IndexedPassage:
    """Returns a passage with its terms in a language, if there is a stemmer for it."""
    if language not in SNOWBALL_LANGUAGES:
        return IndexedPassage(passage, tuple(extract_terms(passage.title)), tuple(extract_terms(passage.text)))
    text = (*extract_terms(passage.text, language), make_language_marker(language))
    return IndexedPassage(passage, tuple(extract_terms(passage.title, language)), text)
