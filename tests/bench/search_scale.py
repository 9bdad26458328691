"""Measures search by words among many passages: `make bench-search` (BENCH_PASSAGES, BENCH_STORE=sqlite or postgres).

The passages are made of sentences of the Cranfield abstracts (or of EVAL_DATASET), drawn with a fixed seed, five for
each passage and one code that no other passage has; the queries are Cranfield's 225 questions. Their few words are in
many passages, which is harder than a collection of as many different texts.

All but the last passages are stored with terms that were computed once for each sentence, so that a million take
minutes. The last `INGESTED` go the way of every ingestion, into the collection that is already so large.
Each line says what was measured:

    filled      rows a second that the store takes, and passages a second that the search index takes from the store
    ingestion   passages a second, from text to index; the process's memory; the size of the index
    reopened    the first search of a process that has just started
    alone       one search after the other: p50, p95, p99; CPU; the longest time for which the event loop did not run
    8 clients   searches a second, p50 and p95 of eight clients that ask at once, and the loop's longest pause
"""

import asyncio
import gc
import os
import random
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, thread_time

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from agent.text.terms import extract_terms
from gateway.features.documents.engine.search.lexical import IndexedPassage, Passage
from gateway.features.documents.engine.search.lexical_postgres import PostgresLexicalRows, create_postgres_index
from gateway.features.documents.engine.search.lexical_rows import LexicalRows
from gateway.features.documents.engine.search.lexical_sqlite import SqliteLexicalRows, create_sqlite_index
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.engine.search.retriever import Retriever
from gateway.features.documents.engine.search.tantivy_index import TantivyIndex
from tests.bench.datasets import Dataset, read
from tests.bench.measure import percentile, resident_kb
from tests.bench.retrieval import DEFAULTS
from tests.support.postgres import fresh_database

OWNER, COLLECTION = "bench", "scale"
DATASET = Path(os.environ.get("EVAL_DATASET") or DEFAULTS[0])
BATCH = 1_000
INGESTED = 20_000
"""Passages that go the way of every ingestion; it takes a millisecond for each."""
SENTENCES = 5
CLIENTS = 8
SEED = 20
_SENTENCE_END = re.compile(r"(?<=\.)\s+")


@dataclass(slots=True)
class LoopPause:
    """The longest time for which the event loop did not run a task that was due: in all, and what of it the loop's
    thread computed. The difference is the machine's, or that of threads that hold Python's lock. In milliseconds.
    """

    longest: float = 0.0
    computed: float = 0.0
    _task: "asyncio.Task[None] | None" = field(default=None)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Measures within the context."""
        self.longest = self.computed = 0.0
        self._task = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            self._task.cancel()

    async def _beat(self) -> None:
        while True:
            start, computed = perf_counter(), thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, (perf_counter() - start) * 1000 - 1)
            self.computed = max(self.computed, (thread_time() - computed) * 1000)

    def __str__(self) -> str:
        return f"loop pause {self.longest:.1f} ms, of which it computed {self.computed:.1f}"


class PassageMaker:
    """Makes passages by number, always the same ones, with terms that are computed once for each sentence."""

    def __init__(self, data: Dataset) -> None:
        texts = [one for passage in data.passages for one in _SENTENCE_END.split(passage.text)]
        self._sentences = [(one, tuple(extract_terms(one))) for one in texts if len(one.split()) >= 4]
        self._titles = [(one.title, tuple(extract_terms(one.title))) for one in data.passages]

    def make(self, start: int, end: int) -> Iterator[list[IndexedPassage]]:
        """Yields the passages with these numbers in batches."""
        for first in range(start, end, BATCH):
            chosen = random.Random(SEED + first)
            yield [self._make_one(chosen, number) for number in range(first, min(end, first + BATCH))]

    def _make_one(self, chosen: random.Random, number: int) -> IndexedPassage:
        title, title_terms = chosen.choice(self._titles)
        sentences = chosen.choices(self._sentences, k=SENTENCES)
        code = f"Ref. x{number:07}."
        passage = Passage(
            f"d{number // 10}.{number % 10}",
            f"d{number // 10}",
            title,
            " ".join([*(text for text, _ in sentences), code]),
            {"source": f"file {number // 10}", "source_type": "local", "pages": [number % 10]},
        )
        terms = (term for _, own in sentences for term in own)
        return IndexedPassage(passage, title_terms, (*terms, *extract_terms(code)))


@asynccontextmanager
async def open_index(where: str, folder: Path, url: str) -> AsyncIterator[tuple[TantivyIndex, Retriever, LexicalRows]]:
    """An index on the store, as a process that has just started has it; and its rows."""
    rows: LexicalRows
    if where == "postgres":
        shared = await open_postgres(url)
        index, rows = create_postgres_index(shared.database, folder), PostgresLexicalRows(shared.database)
        # Nothing has a vector, so that no driver of vectors is asked.
        memory = await open_sqlite(folder / "vectors.db")
        yield index, Retriever(index, ExactIndex(SqliteVectorRows(memory.database))), rows
        await memory.close()
        await shared.close()
        return
    store = await open_sqlite(folder / "scale.db")
    index, rows = create_sqlite_index(store.database), SqliteLexicalRows(store.database)
    yield index, Retriever(index, ExactIndex(SqliteVectorRows(store.database))), rows
    await store.close()


async def fill(index: TantivyIndex, rows: LexicalRows, maker: PassageMaker, count: int) -> None:
    """Stores passages with terms that are known already, and prints how fast store and search index took them."""
    stored = 0.0
    for done, batch in enumerate(maker.make(0, count), 1):
        start = perf_counter()
        await rows.put(OWNER, COLLECTION, batch)
        stored += perf_counter() - start
        if done % 100 == 0:
            print(f"  {done * BATCH:,} rows, {done * BATCH / stored:,.0f} a second", file=sys.stderr, flush=True)
    start = perf_counter()
    await index.search(COLLECTION, "lift", owner=OWNER, limit=1)
    followed = perf_counter() - start
    print(f"filled      {count / stored:,.0f} rows/s, search index {count / followed:,.0f} passages/s", flush=True)


async def ingest(index: TantivyIndex, maker: PassageMaker, start: int, end: int) -> float:
    """Stores and indexes passages as an ingestion does; the seconds it took, without those of making the texts."""
    seconds = 0.0
    for batch in maker.make(start, end):
        passages = [one.passage for one in batch]
        began = perf_counter()
        await index.put(COLLECTION, passages, owner=OWNER)
        seconds += perf_counter() - began
    began = perf_counter()
    await index.search(COLLECTION, "lift", owner=OWNER, limit=1)
    return seconds + perf_counter() - began


async def ask(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """The milliseconds of each search, one after the other."""
    times = []
    for query in queries:
        start = perf_counter()
        wanted = MemoryQuery(query_text=query, min_relevance_score=0)
        await retriever.search(wanted, collection=COLLECTION, owner=OWNER, mode="lexical")
        times.append((perf_counter() - start) * 1000)
    return times


async def measure_searches(retriever: Retriever, queries: Sequence[str]) -> None:
    """Prints the lines of the searches."""
    gc.collect()
    gc.freeze()  # as the gateway does when it has started
    print(f"reopened    first search {(await ask(retriever, queries[:1]))[0]:.1f} ms", flush=True)
    pause = LoopPause()
    with pause.watch():
        await asyncio.sleep(1)
    print(f"idle        {pause}: the machine's own", flush=True)
    used = process_time()
    with pause.watch():
        times = await ask(retriever, queries)
    used = (process_time() - used) * 1000 / len(queries)
    told = ", ".join(f"p{share} {percentile(times, share / 100):.1f}" for share in (50, 95, 99))
    print(f"alone       {told} ms; CPU {used:.1f} ms a search; {pause}", flush=True)
    start = perf_counter()
    with pause.watch():
        rows = await asyncio.gather(*(ask(retriever, [*queries[n:], *queries[:n]]) for n in range(CLIENTS)))
    together = [one for row in rows for one in row]
    told = ", ".join(f"p{share} {percentile(together, share / 100):.1f}" for share in (50, 95))
    rate = len(together) / (perf_counter() - start)
    print(f"{CLIENTS} clients   {rate:.0f} searches/s, {told} ms; {pause}", flush=True)


async def measure(count: int, where: str, url: str) -> None:
    """Prints the figures of one store."""
    data = read(DATASET)
    queries, maker = list(data.queries.values()), PassageMaker(data)
    filled = max(0, count - INGESTED)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"\n{count:,} passages, {where}")
        async with open_index(where, folder, url) as (index, _, rows):
            if filled:
                await fill(index, rows, maker, filled)
            seconds = await ingest(index, maker, filled, count)
        size = sum(one.stat().st_size for one in (folder / "search-index").rglob("*") if one.is_file()) / 1e6
        memory = resident_kb(os.getpid()) / 1024
        rate = (count - filled) / seconds
        print(f"ingestion   {rate:,.0f} passages/s; memory {memory:.0f} MB; index {size:.0f} MB", flush=True)
        async with open_index(where, folder, url) as (_, retriever, _):
            await measure_searches(retriever, queries)
        print(f"memory      {resident_kb(os.getpid()) / 1024:.0f} MB", flush=True)


def main() -> None:
    """Measures the stores that were asked for."""
    if not DATASET.is_dir():
        sys.exit(f"bench-search: {DATASET} is not there; its texts are what the passages are made of")
    count = int(os.environ.get("BENCH_PASSAGES") or 100_000)
    for where in (os.environ.get("BENCH_STORE") or "sqlite postgres").split():
        if where == "postgres":
            with fresh_database() as url:
                asyncio.run(measure(count, where, url))
        else:
            asyncio.run(measure(count, where, ""))


if __name__ == "__main__":
    main()
