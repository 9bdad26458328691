"""Measures search by words among many passages: `make bench-search` (BENCH_PASSAGES, BENCH_STORE=sqlite or postgres).

The passages are made of sentences of the Cranfield abstracts, drawn with a fixed seed, five for each passage and one
code that no other passage has; the queries are Cranfield's 225 questions. Their few words are in many passages, which
is harder than a collection of as many different texts. Each line says what was measured:

    ingestion   passages a second, from text to index; the process's memory; the size of database and index
    reopened    the first search of a process that has just started
    alone       one search after the other: p50, p95, p99; CPU; the longest time for which the event loop did not run
    8 clients   searches a second, p50 and p95 of eight clients that ask at once, and the loop's longest pause
"""

import asyncio
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

from agent.search.lexical import Passage
from agent.search.lexical_postgres import create_postgres_index
from agent.search.lexical_sqlite import create_sqlite_index
from agent.search.models import MemoryQuery
from agent.search.retriever import Retriever
from agent.search.tantivy_index import TantivyIndex
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from tests.bench.datasets import Dataset, read
from tests.bench.measure import percentile, resident_kb
from tests.bench.retrieval import DEFAULTS
from tests.support.postgres import fresh_database

OWNER, COLLECTION = "bench", "scale"
BATCH = 1_000
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


def make_passages(data: Dataset, count: int) -> Iterator[list[Passage]]:
    """Yields so many passages in batches, the same ones for the same count."""
    chosen = random.Random(SEED)
    sentences = [one for passage in data.passages for one in _SENTENCE_END.split(passage.text) if len(one.split()) >= 4]
    titles = [passage.title for passage in data.passages]
    for start in range(0, count, BATCH):
        yield [
            Passage(
                f"d{number // 10}.{number % 10}",
                f"d{number // 10}",
                chosen.choice(titles),
                " ".join([*chosen.choices(sentences, k=SENTENCES), f"Ref. x{number:07}."]),
                {"source": f"file {number // 10}", "source_type": "local", "pages": [number % 10]},
            )
            for number in range(start, min(count, start + BATCH))
        ]


@asynccontextmanager
async def open_index(where: str, folder: Path, url: str) -> AsyncIterator[tuple[TantivyIndex, Retriever]]:
    """An index on the store, as a process that has just started has it."""
    if where == "postgres":
        shared = await open_postgres(url)
        index = create_postgres_index(shared.database, folder)
        # Nothing has a vector, so that no driver of vectors is asked.
        memory = await open_sqlite(folder / "vectors.db")
        yield index, Retriever(index, ExactIndex(SqliteVectorRows(memory.database)))
        await memory.close()
        await shared.close()
        return
    store = await open_sqlite(folder / "scale.db")
    index = create_sqlite_index(store.database)
    yield index, Retriever(index, ExactIndex(SqliteVectorRows(store.database)))
    await store.close()


async def ingest(index: TantivyIndex, data: Dataset, count: int) -> float:
    """Stores and indexes the passages; the seconds it took, without those of making the texts."""
    seconds = 0.0
    for done, batch in enumerate(make_passages(data, count), 1):
        start = perf_counter()
        await index.put(COLLECTION, batch, owner=OWNER)
        seconds += perf_counter() - start
        if done % 100 == 0:
            print(f"  {done * BATCH:,} passages, {done * BATCH / seconds:,.0f} a second", file=sys.stderr, flush=True)
    start = perf_counter()
    await index.search(COLLECTION, "lift", owner=OWNER, limit=1)
    return seconds + perf_counter() - start


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
    data = read(DEFAULTS[0])
    queries = list(data.queries.values())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        async with open_index(where, folder, url) as (index, _):
            seconds = await ingest(index, data, count)
        size = sum(one.stat().st_size for one in (folder / "search-index").rglob("*") if one.is_file()) / 1e6
        print(f"\n{count:,} passages, {where}")
        memory = resident_kb(os.getpid()) / 1024
        print(f"ingestion   {count / seconds:,.0f} passages/s; memory {memory:.0f} MB; index {size:.0f} MB", flush=True)
        async with open_index(where, folder, url) as (_, retriever):
            await measure_searches(retriever, queries)
        print(f"memory      {resident_kb(os.getpid()) / 1024:.0f} MB", flush=True)


def main() -> None:
    """Measures the stores that were asked for."""
    if not DEFAULTS[0].is_dir():
        sys.exit(f"bench-search: {DEFAULTS[0]} is not there; its texts are what the passages are made of")
    count = int(os.environ.get("BENCH_PASSAGES") or 100_000)
    for where in (os.environ.get("BENCH_STORE") or "sqlite postgres").split():
        if where == "postgres":
            with fresh_database() as url:
                asyncio.run(measure(count, where, url))
        else:
            asyncio.run(measure(count, where, ""))


if __name__ == "__main__":
    main()
