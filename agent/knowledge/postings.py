"""`PostingsIndex`: BM25F over the postings of an inverted index in a database.

FTS5's own `bm25()` and PostgreSQL's `ts_rank` visit every match one by one: a question of ten words over 10,000
chunks took FTS5 14 ms and more, and `ts_rank` knows nothing of rarity. Here the database finds the postings of a term,
they stay in memory, and a search adds up a few arrays. What was added since is read and joined to them; only where
something was removed is a collection read anew.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agent.core.codec import storable
from agent.core.models import JsonObject
from agent.knowledge.bm25 import FILLER_SHARE, rarity, saturated, weight
from agent.knowledge.filters import read_filters
from agent.knowledge.lexical import Indexed, LexicalHit, LexicalResult, Passage, Selection
from agent.knowledge.postings_rows import CollectionVersion, Lengths, LexicalRows, Numbers, Places, Postings
from agent.knowledge.snowball import STEMMED
from agent.knowledge.stop_words import languages_of
from agent.knowledge.terms import is_filler, mark, query_forms, query_words, terms, was_small

CACHE_NUMBERS = 16_000_000
"""Numbers of four bytes kept in memory over all collections, 64 MB; what was searched least recently goes first."""
THREAD_NUMBERS = 1_000_000
"""Adding up more numbers than this leaves the event loop."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A term's postings, and their scores with places in the collection's arrays, for the passages up to `last`."""

    postings: Postings
    last: int
    places: NDArray[np.int32]
    scores: Numbers
    rarity: float
    weight: float

    @property
    def size(self) -> int:
        """How many numbers of four bytes this holds."""
        return 6 * len(self.places)


@dataclass(slots=True)
class _Loaded:
    """What is in memory of one version of a collection; the words in the order they were searched for."""

    version: CollectionVersion
    lengths: Lengths
    languages: tuple[str, ...]
    """Those of its passages that have stems of their own."""
    words: OrderedDict[str, _Word] = field(default_factory=OrderedDict)

    @property
    def size(self) -> int:
        """How many numbers of four bytes this holds."""
        return 4 * len(self.lengths.numbers) + sum(word.size for word in self.words.values())


class PostingsIndex:
    """Implements `LexicalIndex` on `LexicalRows`."""

    def __init__(self, rows: LexicalRows) -> None:
        self._rows = rows
        self._loaded: OrderedDict[int, _Loaded] = OrderedDict()

    async def put(self, collection: str, passages: Sequence[Passage], *, owner: str) -> None:
        """See `LexicalIndex.put`."""
        if passages:
            # The last one wins, as if they had been put one after the other.
            latest = list({passage.chunk_id: passage for passage in passages}.values())
            await self._rows.put(owner, collection, await asyncio.to_thread(_indexed, latest))

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, filters: JsonObject | None = None
    ) -> LexicalResult:
        """See `LexicalIndex.search`."""
        loaded = await self._load(owner, collection, query)
        if loaded is None:
            return LexicalResult()
        spoken, forms = query_words(query), query_forms(query, loaded.languages)
        # Now: another search may make room for its own.
        words = {term: _joined(loaded, own) for term, own in forms.items()}
        allowed = None
        if filters:
            allowed = await self._rows.filtered(loaded.version.id, read_filters(filters))
        # That an index of before does not know a word it took for a small one says nothing.
        little = [
            is_filler(spoken[term]) or (was_small(spoken[term]) and not held.places.size)
            for term, held in words.items()
        ]
        shares = [FILLER_SHARE if one else 1.0 for one in little]
        weights = {term: share * held.weight for (term, held), share in zip(words.items(), shares, strict=True)}
        if sum(len(word.places) for word in words.values()) > THREAD_NUMBERS:
            best = await asyncio.to_thread(_best, loaded.lengths.numbers, words, weights, limit, allowed)
        else:
            best = _best(loaded.lengths.numbers, words, weights, limit, allowed)
        found = await self._rows.by_number(loaded.version.id, [place.number for place in best.places])
        rarities = {term: held.rarity for term, held in words.items()}
        others = {form: term for term, own in forms.items() for form in own if form != term}
        result = LexicalResult((), best.total, weights, rarities, loaded.lengths.means, others)
        hits = [
            LexicalHit(result.told(found[place.number]), place.score, place.coverage, place.strict)
            for place in best.places
            if place.number in found
        ]
        return replace(result, hits=tuple(hits))

    async def select(self, collection: str, *, owner: str, filters: JsonObject) -> Selection:
        """See `LexicalIndex.select`."""
        version = await self._rows.version(owner, collection)
        return Selection({}, 0) if version is None else await self._rows.documents(version.id, read_filters(filters))

    async def passages(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> Mapping[str, Indexed]:
        """See `LexicalIndex.passages`."""
        version = await self._rows.version(owner, collection)
        return {} if version is None else await self._rows.by_chunk(version.id, chunk_ids)

    async def sample(self, collection: str, *, owner: str, limit: int) -> list[Passage]:
        """See `LexicalIndex.sample`."""
        version = await self._rows.version(owner, collection)
        return [] if version is None else await self._rows.sample(version.id, limit)

    async def renew(self, collection: str, chunk_ids: Sequence[str], *, owner: str) -> int:
        """See `LexicalIndex.renew`."""
        kept = await self.passages(collection, chunk_ids, owner=owner)
        there = [kept[one] for one in chunk_ids if one in kept]
        made = await asyncio.to_thread(_indexed, [one.passage for one in there])
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

    async def _load(self, owner: str, collection: str, query: str) -> _Loaded | None:
        """The collection with the postings of what a query is searched by; begun again when somebody changes it
        meanwhile."""
        while (version := await self._rows.version(owner, collection)) is not None:
            known = self._loaded.get(version.id)
            if known is not None and not version.grew_from(known.version):
                known = None
            held = known.words if known is not None else {}
            languages = known.languages if known is not None else ()
            if known is None or known.version != version:
                there = await self._rows.standing(version.id, [mark(one) for one in STEMMED])
                languages = tuple(one for one in STEMMED if mark(one) in there)
            words = [form for own in query_forms(query, languages).values() for form in own]
            last = known.lengths.last if known is not None else 0
            after = {word: held[word].last if word in held else 0 for word in words}
            is_current = known is not None and known.version == version
            if is_current:
                after = {word: at for word, at in after.items() if word not in held or at < last}
            if known is not None and is_current and not after:
                self._searched(known, words)
                return known
            read = await self._rows.load(version, after, None if is_current else last)
            if read is not None:
                return self._keep(await asyncio.to_thread(_updated, version, languages, known, *read), words)
        return None

    def _keep(self, loaded: _Loaded, asked: Sequence[str]) -> _Loaded:
        """Keep a collection, and as much of the others, and of its own words, as there is room for."""
        self._searched(loaded, asked)
        size = sum(other.size for other in self._loaded.values())
        while size > CACHE_NUMBERS and len(self._loaded) > 1:
            size -= self._loaded.popitem(last=False)[1].size
        while size > CACHE_NUMBERS and len(loaded.words) > len(asked):
            size -= loaded.words.popitem(last=False)[1].size
        return loaded

    def _searched(self, loaded: _Loaded, asked: Sequence[str]) -> None:
        """Note that this was searched last."""
        self._loaded[loaded.version.id] = loaded
        self._loaded.move_to_end(loaded.version.id)
        for word in asked:
            loaded.words.move_to_end(word)


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    score: float
    coverage: float
    strict: bool


@dataclass(frozen=True, slots=True)
class _Best:
    places: list[_Place]
    total: int


def _best(
    numbers: Places, words: Mapping[str, _Word], weights: Mapping[str, float], limit: int, allowed: Places | None
) -> _Best:
    """The best passages: those with every word by their score, then the others by theirs."""
    count = len(numbers)
    if not count or not words or limit < 1:
        return _Best([], 0)
    places = np.concatenate([word.places for word in words.values()])
    scores = np.bincount(places, np.concatenate([word.scores for word in words.values()]), minlength=count)
    held = np.bincount(places, minlength=count)
    if allowed is not None:
        held[~np.isin(numbers, allowed)] = 0
    strict = held == len(words)
    ranked = np.where(held > 0, scores + strict * (scores.max(initial=0.0) + 1.0), -1.0)
    total = int(np.count_nonzero(held))
    first = np.argpartition(-ranked, min(limit, count) - 1)[:limit]
    chosen = sorted((at for at in first.tolist() if held[at]), key=lambda at: (-ranked[at], numbers[at]))
    shares = np.repeat([weights[word] for word in words], [len(word.places) for word in words.values()])
    covered = np.bincount(places, shares, minlength=count) / (sum(weights.values()) or 1.0)
    return _Best(
        [_Place(int(numbers[at]), float(scores[at]), min(float(covered[at]), 1.0), bool(strict[at])) for at in chosen],
        total,
    )


def _updated(
    version: CollectionVersion,
    languages: tuple[str, ...],
    known: _Loaded | None,
    lengths: Lengths | None,
    read: Mapping[str, Postings],
) -> _Loaded:
    """A collection with what was read of it. What is known is not changed: a search may be using it."""
    if known is None:
        assert lengths is not None
        fresh = OrderedDict((word, _word(lengths, held)) for word, held in read.items())
        return _Loaded(version, lengths, languages, fresh)
    joined = known.lengths.joined(lengths) if lengths is not None else known.lengths
    words = OrderedDict(known.words)
    for word, held in read.items():
        words[word] = _word(joined, words[word].postings.joined(held) if word in words else held)
    return _Loaded(version, joined, languages, words)


def _word(lengths: Lengths, postings: Postings) -> _Word:
    """A term with its scores in a collection."""
    places = np.searchsorted(lengths.numbers, postings.numbers)
    held = lengths.title[places].astype(np.float64), lengths.text[places].astype(np.float64)
    passages, holding = len(lengths.numbers), len(places)
    rare = rarity(passages, holding)
    counts = postings.title.astype(np.float64), postings.text.astype(np.float64)
    scores = saturated(rare, *counts, held, lengths.means)
    return _Word(
        postings, lengths.last, places.astype(np.int32), scores.astype(np.float32), rare, weight(passages, holding)
    )


def _joined(loaded: _Loaded, forms: Sequence[str]) -> _Word:
    """A word by all the terms it has in the languages of a collection, as if they were one."""
    held = [loaded.words[form] for form in forms]
    some = [one for one in held if one.places.size]
    if len(some) < 2:
        return some[0] if some else held[0]
    numbers, at = np.unique(np.concatenate([one.postings.numbers for one in some]), return_inverse=True)
    title, text = (
        np.bincount(at, np.concatenate(counts)).astype(np.float32)
        for counts in zip(*((one.postings.title, one.postings.text) for one in some), strict=True)
    )
    return _word(loaded.lengths, Postings(numbers, title, text))


def _indexed(passages: Sequence[Passage]) -> list[Indexed]:
    """The passages with their terms, each in the language that it, or else its document, is told to be in."""
    stored = [
        Passage(storable(p.chunk_id), storable(p.document_id), storable(p.title), storable(p.text), p.metadata)
        for p in passages
    ]
    texts: dict[str, list[str]] = {}
    for passage in stored:
        texts.setdefault(passage.document_id, []).append(passage.text)
    told = {document: iter(languages_of(parts)) for document, parts in texts.items()}
    return [_in(next(told[passage.document_id]), passage) for passage in stored]


def _in(language: str, passage: Passage) -> Indexed:
    """A passage with its terms in a language, if that has stems of its own."""
    if language not in STEMMED:
        return Indexed(passage, tuple(terms(passage.title)), tuple(terms(passage.text)))
    text = (*terms(passage.text, language), mark(language))
    return Indexed(passage, tuple(terms(passage.title, language)), text)
