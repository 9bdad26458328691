"""`TantivyIndex`: BM25F over the passages of a database, found by a Tantivy index that follows it.

The database is the truth. A search first adds to the index what the database has more, so that it finds what any
process stored before; the index proposes passages, and their exact scores are computed from the stored terms. A
proposed passage that the database no longer has is removed from the index, and the search is made again. An index that
is missing, damaged or ahead of its database is made again from the rows.
"""

import asyncio
import logging
import shutil
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from agent.core.errors import StoreError
from agent.core.event_loop import LoopTurns
from agent.core.models import JsonObject
from agent.core.surrogates import to_storable_text
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
from gateway.features.documents.engine.search.bm25 import (
    FILLER_WEIGHT,
    PassageScorer,
    compute_coverage_weight,
    compute_idf,
)
from gateway.features.documents.engine.search.filters import parse_filters
from gateway.features.documents.engine.search.lexical import IndexedPassage, LexicalResult, Passage, Selection
from gateway.features.documents.engine.search.lexical_rows import CollectionVersion, LexicalRows, PassageChange
from gateway.features.documents.engine.search.term_index_types import IndexBusyError, IndexWriteError, TermStatistics

if TYPE_CHECKING:
    from gateway.features.documents.engine.search.term_index import TermIndex

log = logging.getLogger(__name__)

INDEX_FOLDER = "search-index"
"""The folder of the indexes in the data folder. It may be deleted while no gateway runs; it is made again."""
DERIVED_FOLDERS = (INDEX_FOLDER,)
"""What a backup leaves out."""
MAX_OPEN = 64
"""Indexes that stay open, each with some files and half a megabyte; the least recently used are closed."""
SYNC_PASSAGES = 5_000
"""A writer of so many passages indexes them itself; fewer are indexed by the next search, in 0.2 s at most."""
BATCH_PASSAGES = 5_000
"""Passages in memory at once while an index follows its database."""
CANDIDATES_PER_HIT = 2
"""Passages that the index proposes for each one wanted: its scores differ from BM25F by the length of titles and by k1.
With two, the first hundred of Cranfield's queries are those of an exact search."""
INLINE_PASSAGES = 100
"""Scoring more passages, 0.03 ms each, leaves the event loop."""
BUSY_SECONDS = 60.0
"""How long to wait for another process that writes the same index."""
BUSY_POLL_SECONDS = 0.02


@dataclass(slots=True)
class _OpenIndex:
    """An index with what is known of its collection. `lock` is held while it is written."""

    id: int
    index: "TermIndex"
    removed: set[int] = field(default_factory=set)
    unindexed: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    merging: "asyncio.Future[Any] | None" = None


class TantivyIndex:
    """Implements `LexicalIndex` on `LexicalRows`, with indexes below `folder`, or in memory without one."""

    def __init__(self, rows: LexicalRows, folder: Path | None) -> None:
        self._rows = rows
        self._folder = folder
        self._open: OrderedDict[str, _OpenIndex] = OrderedDict()
        self._opening = asyncio.Lock()
        self._turns = LoopTurns()
        self._swept = False

    async def put(self, collection: str, passages: Sequence[Passage], *, owner: str) -> None:
        """See `LexicalIndex.put`."""
        if passages:
            # The last passage with an id wins, as if they had been put one after the other.
            latest = list({passage.chunk_id: passage for passage in passages}.values())
            indexed = await asyncio.to_thread(_index_passages, latest)
            await self._on_change(owner, collection, await self._rows.put(owner, collection, indexed))

    async def search(
        self, collection: str, query: str, *, owner: str, limit: int, filters: JsonObject | None = None
    ) -> LexicalResult:
        """See `LexicalIndex.search`."""
        wanted = parse_filters(filters or {})
        while (opened := await self._follow(owner, collection)) is not None:
            forms = expand_query_terms(query, opened.index.languages)
            if not forms or limit < 1:
                break
            statistics = opened.index.get_statistics(one for own in forms.values() for one in own)
            numbers = await asyncio.to_thread(
                opened.index.find, list(forms.values()), CANDIDATES_PER_HIT * limit, wanted
            )
            stored = await self._rows.get_by_number(opened.id, numbers)
            gone = [number for number in numbers if number not in stored]
            if not gone:
                result = _build_result(map_query_terms(query), forms, statistics)
                if len(stored) <= INLINE_PASSAGES:
                    async with self._turns.take():
                        return _rank(result, stored, limit)
                return await asyncio.to_thread(_rank, result, stored, limit)
            opened.removed.update(gone)
        return LexicalResult()

    async def select(self, collection: str, *, owner: str, filters: JsonObject) -> Selection:
        """See `LexicalIndex.select`."""
        opened = await self._follow(owner, collection)
        if opened is None:
            return Selection({}, 0)
        numbers = await asyncio.to_thread(opened.index.select, parse_filters(filters))
        return Selection(await self._rows.get_documents(opened.id, numbers), opened.index.passages)

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
        passages = await self.get_passages(collection, chunk_ids, owner=owner)
        there = [passages[one] for one in chunk_ids if one in passages]
        made = await asyncio.to_thread(_index_passages, [one.passage for one in there])
        changed = [new for old, new in zip(there, made, strict=True) if new != old]
        if changed:
            await self._on_change(owner, collection, await self._rows.put(owner, collection, changed))
        return len(changed)

    async def delete(self, collection: str, document_ids: Sequence[str], *, owner: str) -> int:
        """See `LexicalIndex.delete`."""
        change = await self._rows.delete(owner, collection, document_ids)
        if change is None:
            return 0
        await self._on_change(owner, collection, change)
        return len(change.removed)

    async def drop(self, collection: str, *, owner: str) -> None:
        """See `LexicalIndex.drop`."""
        await self._rows.drop(owner, collection)
        async with self._opening:
            await self._sweep()

    async def _on_change(self, owner: str, collection: str, change: PassageChange) -> None:
        """Records removals; indexes additions once `SYNC_PASSAGES` changes have accumulated."""
        opened = await self._get_open(change.version)
        opened.removed.update(change.removed)
        opened.unindexed += change.stored
        if opened.unindexed + len(opened.removed) >= SYNC_PASSAGES:
            await self._follow(owner, collection)

    async def _follow(self, owner: str, collection: str) -> _OpenIndex | None:
        """The index of a collection with all that the database has, or None without a collection."""
        version = await self._rows.get_version(owner, collection)
        if version is None:
            return None
        opened = await self._get_open(version)
        if _is_current(opened, version):
            return opened
        async with opened.lock:
            # A search that was first to write may have seen later changes than this one.
            version = await self._rows.get_version(owner, collection) or version
            if opened.index.changes > version.changes:
                log.warning("the search index %s is ahead of its database and is made again", version.name)
                await asyncio.to_thread(opened.index.clear)
            await self._write(opened, version)
            opened.unindexed = 0
        return opened

    async def _write(self, opened: _OpenIndex, version: CollectionVersion) -> None:
        """Writes what the index lacks, in batches. Raises `StoreError`."""
        index, until, is_reopened = opened.index, monotonic() + BUSY_SECONDS, False
        while not _is_current(opened, version):
            removed = frozenset(opened.removed)
            added = await self._rows.read_after(version.id, index.last, BATCH_PASSAGES)
            if not added and not removed:
                return  # another process has removed them just now
            if opened.merging is not None:
                await opened.merging
            try:
                writer = await asyncio.to_thread(index.write, version.changes, added, sorted(removed))
            except IndexBusyError:
                if monotonic() > until:
                    raise _make_busy_error(version.name) from None
                await asyncio.sleep(BUSY_POLL_SECONDS)
                await asyncio.to_thread(index.reload)
                continue
            except IndexWriteError as error:
                if is_reopened:
                    raise error.to_store_error() from error
                is_reopened = True
                await asyncio.to_thread(index.reopen)
                continue
            opened.removed -= removed
            opened.merging = asyncio.get_running_loop().run_in_executor(None, writer.wait_merging_threads)

    async def _get_open(self, version: CollectionVersion) -> _OpenIndex:
        async with self._opening:
            opened = self._open.get(version.name)
            if opened is None:
                if not self._swept:
                    await self._sweep()
                    self._swept = True
                folder = self._folder / version.name if self._folder is not None else None
                opened = self._open[version.name] = _OpenIndex(version.id, await asyncio.to_thread(_open_terms, folder))
                self._close_unused()
            self._open.move_to_end(version.name)
            return opened

    def _close_unused(self) -> None:
        """Closes the indexes that were used least recently, but none in memory, which would be lost."""
        names = [name for name, one in self._open.items() if not one.lock.locked() and not one.removed]
        for name in names[: max(0, len(self._open) - MAX_OPEN)] if self._folder is not None else ():
            del self._open[name]

    async def _sweep(self) -> None:
        """Removes the indexes of collections that are gone, dropped here or elsewhere."""
        # Listed before the names: a folder that another process makes now has a collection by then.
        folders = await asyncio.to_thread(_list_folders, self._folder)
        names = await self._rows.list_names()
        for name in [name for name in self._open if name not in names]:
            opened = self._open.pop(name)
            if opened.merging is not None:
                await opened.merging
        for one in folders:
            if one.name not in names:
                await asyncio.to_thread(shutil.rmtree, one, ignore_errors=True)


def _is_current(opened: _OpenIndex, version: CollectionVersion) -> bool:
    return opened.index.last >= version.last and opened.index.changes <= version.changes and not opened.removed


def _list_folders(folder: Path | None) -> list[Path]:
    return [one for one in folder.iterdir() if one.is_dir()] if folder is not None and folder.is_dir() else []


def _make_busy_error(name: str) -> StoreError:
    return StoreError(
        f"another process has been writing the search index {name} for {BUSY_SECONDS:.0f} s; end it if it hangs",
        agent_id="store",
    )


def _build_result(
    words_by_term: Mapping[str, str], forms: Mapping[str, Sequence[str]], statistics: TermStatistics
) -> LexicalResult:
    """A result without hits: the weights of the query terms."""
    passages = statistics.passages
    # A passage is in one language, so that the forms of a term are in different passages.
    passage_counts = {
        term: min(passages, sum(statistics.frequencies[one] for one in own)) for term, own in forms.items()
    }
    # An older index lacks words whose stem is a stop word; that such a word is missing proves nothing.
    uninformative = {
        term
        for term in forms
        if is_filler(words_by_term[term]) or (is_legacy_stop_stem(words_by_term[term]) and not passage_counts[term])
    }
    weights = {
        term: compute_coverage_weight(passages, count) * (FILLER_WEIGHT if term in uninformative else 1.0)
        for term, count in passage_counts.items()
    }
    return LexicalResult(
        weights=weights,
        idf={term: compute_idf(passages, count) for term, count in passage_counts.items()},
        mean_lengths=statistics.mean_lengths,
        variants={one: term for term, own in forms.items() for one in own if one != term},
    )


def _rank(result: LexicalResult, stored: Mapping[int, IndexedPassage], limit: int) -> LexicalResult:
    """The result with the best passages: those with every term by score, then the others by score."""
    scorer = PassageScorer(result)
    scored = ((number, scorer.score(indexed)) for number, indexed in stored.items())
    hits = [(number, hit) for number, hit in scored if hit is not None]
    hits.sort(key=lambda one: (not one[1].has_all_terms, -one[1].score, one[0]))
    best = [hit for _, hit in hits[:limit]]
    if result.variants:
        best = [replace(hit, indexed=result.normalize_terms(hit.indexed)) for hit in best]
    return LexicalResult(tuple(best), result.weights, result.idf, result.mean_lengths, result.variants)


def _index_passages(passages: Sequence[Passage]) -> list[IndexedPassage]:
    """The passages with their terms, each in its own detected language or that of its document."""
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
    """A passage with its terms in a language, if there is a stemmer for it."""
    if language not in SNOWBALL_LANGUAGES:
        return IndexedPassage(passage, tuple(extract_terms(passage.title)), tuple(extract_terms(passage.text)))
    text = (*extract_terms(passage.text, language), make_language_marker(language))
    return IndexedPassage(passage, tuple(extract_terms(passage.title, language)), text)


def _open_terms(folder: Path | None) -> "TermIndex":
    from gateway.features.documents.engine.search.term_index import TermIndex  # noqa: PLC0415 - see its docstring

    return TermIndex(folder)
