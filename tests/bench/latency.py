"""How long a search takes among 1,000, 10,000 and 100,000 passages: `python -m tests.bench.latency [1000 ...]`.

Passages and queries are made up: words by Zipf's law over a matter each, 384 numbers a vector, made in no time, so that
nothing but the search is measured. SQLite by default; `postgres` as a further argument measures it there.
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from agent.core.models import RetrievalMode
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.postgres import PostgresVectorRows
from agent.storage.vectors.sqlite import SqliteVectorRows
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.lexical_postgres import create_postgres_index
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.engine.search.naming import make_vector_set_name
from gateway.features.documents.engine.search.retriever import Retriever
from gateway.features.documents.engine.search.vector_search import build_entries, format_passage_text
from tests.bench.measure import percentile
from tests.bench.report import Row
from tests.support.postgres import fresh_database

SIZES = (1_000, 10_000, 100_000)
QUERIES, WORDS, MATTERS, PASSAGE_WORDS, QUERY_WORDS = 200, 20_000, 200, 120, 9
MODES: tuple[RetrievalMode, ...] = ("lexical", "hybrid", "hybrid_rerank")
OWNER, COLLECTION, BATCH = "bench", "latency", 1_000
SPACE = VectorSpace("made-up", 384)
AIM_MS = 5.0


class Instant:
    """Vectors of a text by sums of its words' vectors; the time of asking is part of nothing that is measured."""

    def __init__(self) -> None:
        self._words = np.random.default_rng(5).normal(0, 1, (WORDS, SPACE.dimension)).astype(np.float32)
        self._known: dict[str, tuple[float, ...]] = {}

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`."""
        return Embedded(SPACE, tuple(self._known.get(text) or self._vector(text) for text in texts))

    def learn(self, texts: Sequence[str]) -> None:
        """Make the vectors of these texts beforehand."""
        self._known |= {text: self._vector(text) for text in texts}

    async def aclose(self) -> None:
        """Nothing to close."""

    def _vector(self, text: str) -> tuple[float, ...]:
        numbers = [int(word[1:]) for word in text.split()]
        # Frequent words say little: by Zipf's law their number is their rank.
        weights = np.minimum(1.0, np.array(numbers, np.float32) / 500)
        return tuple((weights[:, None] * self._words[numbers]).sum(axis=0).tolist())


@dataclass(frozen=True)
class Figures:
    """Of one mode among so many passages, in milliseconds: the first search after a start, then the middle and the
    slowest of a hundred."""

    mode: str
    passages: int
    first: float
    p50: float
    p99: float


def made_up(count: int, words: int, seed: int) -> list[str]:
    """Texts of so many words: two thirds by Zipf's law, one third of one matter's own hundred words."""
    numbers = np.random.default_rng(seed)
    ranks = np.minimum(numbers.zipf(1.15, (count, words)), WORDS - MATTERS * 50 - 1)
    matters = numbers.integers(0, MATTERS, count)
    own = WORDS - MATTERS * 50 + matters[:, None] * 50 + numbers.integers(0, 50, (count, words))
    chosen = np.where(numbers.random((count, words)) < 1 / 3, own, ranks)
    return [" ".join(f"w{number}" for number in row) for row in chosen.tolist()]


@asynccontextmanager
async def stored(where: str) -> AsyncIterator[tuple[LexicalIndex, VectorIndex]]:
    """Empty indexes on SQLite or PostgreSQL."""
    if where == "postgres":
        with fresh_database() as url:
            shared = await open_postgres(url)
            with tempfile.TemporaryDirectory() as folder:
                lexical = create_postgres_index(shared.database, Path(folder))
                yield lexical, ExactIndex(PostgresVectorRows(shared.database))
            await shared.close()
        return
    with tempfile.TemporaryDirectory() as folder:
        store = await open_sqlite(Path(folder) / "latency.db")
        yield create_sqlite_index(store.database), ExactIndex(SqliteVectorRows(store.database))
        await store.close()


async def filled(lexical: LexicalIndex, vectors: VectorIndex, embedder: Instant, count: int) -> float:
    """Index so many passages; the seconds it took."""
    texts = made_up(count, PASSAGE_WORDS, 1)
    start = perf_counter()
    await vectors.open(make_vector_set_name(OWNER, COLLECTION), SPACE)
    for at in range(0, count, BATCH):
        part = [Passage(f"d{n}.0", f"d{n}", "", texts[n]) for n in range(at, min(count, at + BATCH))]
        await lexical.put(COLLECTION, part, owner=OWNER)
        made = await embedder.embed([format_passage_text(passage) for passage in part])
        await vectors.put(make_vector_set_name(OWNER, COLLECTION), build_entries(part, made, owner=OWNER))
    return perf_counter() - start


async def measured(count: int, where: str) -> list[Figures]:
    """The figures of every mode among so many passages."""
    embedder = Instant()
    asked = made_up(QUERIES, QUERY_WORDS, 2)
    embedder.learn(asked)
    found = []
    async with stored(where) as (lexical, vectors):
        seconds = await filled(lexical, vectors, embedder, count)
        print(f"{count:,} passages indexed in {seconds:.1f} s on {where}", file=sys.stderr, flush=True)
        for mode in MODES:
            # A gateway that has just started: nothing of the collection is in memory.
            fresh = (
                type(lexical)(lexical._rows, lexical._folder),  # type: ignore[attr-defined, call-arg]
                type(vectors)(vectors._rows),  # type: ignore[attr-defined, call-arg]
            )
            retriever = Retriever(*fresh, embedder)
            first = await _timed(retriever, asked[0], mode)
            for query in asked:
                await _timed(retriever, query, mode)
            times = [await _timed(retriever, query, mode) for query in random.Random(3).sample(asked, QUERIES)]
            found.append(Figures(mode, count, first, percentile(times, 0.5), percentile(times, 0.99)))
    return found


async def _timed(retriever: Retriever, query: str, mode: RetrievalMode) -> float:
    start = perf_counter()
    await retriever.search(
        MemoryQuery(query_text=query, min_relevance_score=0), collection=COLLECTION, owner=OWNER, mode=mode
    )
    return (perf_counter() - start) * 1000


async def rows() -> list[Row]:
    """Lines of the whole table: the default mode among 10,000 passages."""
    figures = next(one for one in await measured(10_000, "sqlite") if one.mode == "hybrid_rerank")
    note = f"p99 {figures.p99:.1f}, first {figures.first:.0f}"
    return [Row("10 a search of 10,000 passages, p50", "ms", figures.p50, AIM_MS, note=note)]


async def main(sizes: Sequence[int], where: str) -> None:
    """Print the table."""
    print(f"{'passages':>9}  {'mode':<14}{'first ms':>10}{'p50 ms':>9}{'p99 ms':>9}")
    for size in sizes:
        for one in await measured(size, where):
            print(f"{one.passages:>9,}  {one.mode:<14}{one.first:>10.1f}{one.p50:>9.2f}{one.p99:>9.2f}", flush=True)


if __name__ == "__main__":
    wanted = [argument for argument in sys.argv[1:] if argument != "postgres"]
    asyncio.run(main([int(size) for size in wanted] or SIZES, "postgres" if "postgres" in sys.argv else "sqlite"))
