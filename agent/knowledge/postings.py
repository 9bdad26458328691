"""`PostingsIndex`: BM25F over the postings of an inverted index in a database.

FTS5's own `bm25()` and PostgreSQL's `ts_rank` visit every match one by one: a question of ten words over 10,000
chunks took FTS5 14 ms and more, and `ts_rank` knows nothing of rarity. Here the database finds the postings of a term,
they stay in memory while the collection does not change, and a search adds up a few arrays.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.core.codec import whole
from agent.core.models import JsonObject
from agent.knowledge.filters import Filter, read_filters
from agent.knowledge.lexical import Indexed, LexicalHit, LexicalResult, Passage, Selection
from agent.knowledge.terms import query_terms, terms

SATURATION = 1.6
"""BM25's k1. On Cranfield anything from 1.2 to 2 does within a hundredth of the best."""
TITLE_WEIGHT = 2.0
TEXT_LENGTH = 0.75
TITLE_LENGTH = 0.5
"""How much a long text, or a long title, is held against a passage (BM25's b): the usual values."""
CACHE_NUMBERS = 16_000_000
"""Numbers kept in memory over all collections, 64 MB; the least recently searched go first."""
THREAD_NUMBERS = 1_000_000
"""Adding up more numbers than this leaves the event loop."""

Numbers = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CollectionVersion:
    """A collection's number in the database, and how often it has changed."""

    id: int
    changes: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Every passage of a collection by its number, ascending, with the count of terms of its title and text."""

    numbers: Places
    title: Numbers
    text: Numbers


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term stands: passages by number, and how often in their title and text. A passage may come twice."""

    numbers: Places
    title: Numbers
    text: Numbers


class LexicalRows(Protocol):
    """The rows of a `PostingsIndex`; one driver a database. Each method is one transaction."""

    async def put(self, owner: str, collection: str, passages: Sequence[Indexed]) -> None:
        """See `LexicalIndex.put`."""
        ...

    async def version(self, owner: str, collection: str) -> CollectionVersion | None:
        """The collection's version; None for an unknown one."""
        ...

    async def load(
        self, version: CollectionVersion, words: Sequence[str], *, lengths: bool
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """The postings of words, and the lengths if they are asked for; None when the version has passed."""
        ...

    async def filtered(self, collection_id: int, filters: Sequence[Filter]) -> Places:
        """Numbers of the passages that every filter lets through. `BadRequestError` for an unknown field."""
        ...

    async def by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, Indexed]:
        """Passages by number; those removed meanwhile are missing."""
        ...

    async def by_chunk(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Indexed]:
        """Passages by chunk id."""
        ...

    async def documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalIndex.select`."""
        ...

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalIndex.sample`."""
        ...

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalIndex.delete`."""
        ...

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalIndex.drop`."""
        ...


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A term's postings as places in the collection's arrays, with what each adds to a passage's score."""

    places: Places
    scores: Numbers
    rarity: float


@dataclass(slots=True)
class _Loaded:
    """What is in memory of one version of a collection."""

    version: CollectionVersion
    lengths: Lengths
    words: dict[str, _Weighed] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many numbers this holds."""
        return 4 * len(self.lengths.numbers) + sum(3 * len(word.places) for word in self.words.values())


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
        wanted = query_terms(query)
        loaded = await self._load(owner, collection, wanted)
        if loaded is None:
            return LexicalResult()
        allowed = None
        if filters:
            allowed = await self._rows.filtered(loaded.version.id, read_filters(filters))
        words = {word: loaded.words[word] for word in wanted}
        if sum(len(word.places) for word in words.values()) > THREAD_NUMBERS:
            best = await asyncio.to_thread(_best, loaded.lengths.numbers, words, limit, allowed)
        else:
            best = _best(loaded.lengths.numbers, words, limit, allowed)
        found = await self._rows.by_number(loaded.version.id, [place.number for place in best.places])
        hits = [
            LexicalHit(found[place.number], place.score, place.coverage, place.strict)
            for place in best.places
            if place.number in found
        ]
        return LexicalResult(tuple(hits), best.total, {word: held.rarity for word, held in words.items()})

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

    async def delete(self, collection: str, document_ids: Sequence[str], *, owner: str) -> int:
        """See `LexicalIndex.delete`."""
        return await self._rows.delete(owner, collection, document_ids)

    async def drop(self, collection: str, *, owner: str) -> None:
        """See `LexicalIndex.drop`."""
        await self._rows.drop(owner, collection)

    async def _load(self, owner: str, collection: str, words: Sequence[str]) -> _Loaded | None:
        """The collection with the postings of `words`; begun again when somebody changes it meanwhile."""
        while (version := await self._rows.version(owner, collection)) is not None:
            known = self._loaded.get(version.id)
            if known is not None and known.version != version:
                known = None
            missing = [word for word in words if known is None or word not in known.words]
            if known is not None and not missing:
                self._loaded.move_to_end(version.id)
                return known
            read = await self._rows.load(version, missing, lengths=known is None)
            if read is not None:
                lengths = read[0] or (known.lengths if known else None)
                assert lengths is not None
                weighed = await asyncio.to_thread(_all_weighed, lengths, read[1])
                return self._keep(version, lengths, {**(known.words if known else {}), **weighed}, words)
        return None

    def _keep(
        self, version: CollectionVersion, lengths: Lengths, held: Mapping[str, _Weighed], asked: Sequence[str]
    ) -> _Loaded:
        loaded = _Loaded(version, lengths, dict(held))
        self._loaded[version.id] = loaded
        self._loaded.move_to_end(version.id)
        size = sum(other.size for other in self._loaded.values())
        while size > CACHE_NUMBERS and len(self._loaded) > 1:
            size -= self._loaded.popitem(last=False)[1].size
        if size > CACHE_NUMBERS:  # one collection alone: it keeps what this search needs
            loaded.words = {word: held[word] for word in asked}
        return loaded


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


def _best(numbers: Places, words: Mapping[str, _Weighed], limit: int, allowed: Places | None) -> _Best:
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
    rarities = np.repeat([word.rarity for word in words.values()], [len(word.places) for word in words.values()])
    covered = np.bincount(places, rarities, minlength=count) / (sum(word.rarity for word in words.values()) or 1.0)
    return _Best(
        [_Place(int(numbers[at]), float(scores[at]), min(float(covered[at]), 1.0), bool(strict[at])) for at in chosen],
        total,
    )


def _all_weighed(lengths: Lengths, read: Mapping[str, Postings]) -> dict[str, _Weighed]:
    return {word: _weighed(lengths, postings) for word, postings in read.items()}


def _weighed(lengths: Lengths, postings: Postings) -> _Weighed:
    """BM25F (Robertson et al., 2004): the weighted counts of both fields, each by its length, saturate together."""
    places, at = np.unique(postings.numbers, return_inverse=True)
    title = np.bincount(at, postings.title, minlength=len(places))
    text = np.bincount(at, postings.text, minlength=len(places))
    places = np.searchsorted(lengths.numbers, places)
    weight = TITLE_WEIGHT * title / _long(lengths.title, places, TITLE_LENGTH)
    weight += text / _long(lengths.text, places, TEXT_LENGTH)
    rarity = math.log(1 + (len(lengths.numbers) - len(places) + 0.5) / (len(places) + 0.5))
    scores = rarity * weight * (SATURATION + 1) / (weight + SATURATION)
    return _Weighed(places.astype(np.int64), scores.astype(np.float32), rarity)


def _long(counts: Numbers, places: Places, share: float) -> NDArray[np.float64]:
    mean = float(counts.mean()) if len(counts) else 0.0
    return 1 - share + share * counts[places].astype(np.float64) / (mean or 1.0)


def _indexed(passages: Sequence[Passage]) -> list[Indexed]:
    return [
        Indexed(
            Passage(_clean(p.chunk_id), _clean(p.document_id), _clean(p.title), _clean(p.text), p.metadata),
            tuple(terms(_clean(p.title))),
            tuple(terms(_clean(p.text))),
        )
        for p in passages
    ]


def _clean(text: str) -> str:
    """What both databases take: no half characters, and no NUL, which PostgreSQL refuses."""
    return whole(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")
