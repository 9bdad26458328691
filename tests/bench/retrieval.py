"""How well each retrieval mode finds what people judged relevant: `python -m tests.bench.retrieval`.

EVAL_DATASET is a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` (../shared/data/cranfield by default),
RETRIEVAL_MODE picks one mode. AGENT_EMBEDDER_URL (and _MODEL, _API_KEY) gives the vectors; EVAL_EMBEDDER=lsa makes them
by latent semantic analysis of the corpus, a stand-in for a model. EVAL_COPIES=n indexes every passage n times, to time
larger collections (the quality figures mean nothing then).
"""

import asyncio
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import get_args

from agent.core.embedder import Embedder, HttpEmbedder
from agent.core.journal_sqlite import open_sqlite
from agent.core.vectors import VectorIndex
from agent.core.vectors.exact import ExactIndex
from agent.core.vectors.sqlite import SqliteVectorRows
from agent.knowledge.dense import entries
from agent.knowledge.errors_retrieval import MemoryNoResultsError
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.lexical_sqlite import sqlite_index
from agent.knowledge.models import MemoryQuery, RetrievalMode, RetrievedContext
from agent.knowledge.naming import vector_set
from agent.knowledge.retriever import Retriever
from tests.bench.lsa import LsaEmbedder

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield"
OWNER, COLLECTION = "bench", "eval"
BATCH = 500


@dataclass(frozen=True)
class Dataset:
    """Passages, queries by id, and judgements: query id to document id to grade."""

    passages: list[Passage]
    queries: dict[str, str]
    grades: dict[str, dict[str, float]]


@dataclass
class Figures:
    """Sums over the queries of one mode."""

    ndcg: float = 0.0
    recall: float = 0.0
    mrr: float = 0.0
    times: list[float] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    calibration: dict[int, list[bool]] = field(default_factory=dict)

    def add(self, results: Sequence[RetrievedContext], grades: dict[str, float]) -> None:
        """Count one query's results."""
        ranked = list(dict.fromkeys(result.source_id for result in results))
        ideal = sum(g / math.log2(at + 2) for at, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
        self.ndcg += sum(grades.get(d, 0) / math.log2(at + 2) for at, d in enumerate(ranked[:10])) / ideal
        self.recall += len(set(ranked[:100]) & set(grades)) / len(grades)
        self.mrr += next((1 / (at + 1) for at, d in enumerate(ranked) if d in grades), 0.0)
        for result in results[:10]:
            self.calibration.setdefault(int(result.relevance_score * 10), []).append(result.source_id in grades)


def read(folder: Path, copies: int) -> Dataset:
    """A dataset; queries without a judgement are left out."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    grades: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        if grade.replace(".", "").isdigit() and float(grade) > 0:
            grades.setdefault(query, {})[document] = float(grade)
    passages = [
        Passage(f"{row['doc_id']}-{copy}", row["doc_id"], row.get("title") or "", row["text"] or "", {"copy": copy})
        for copy in range(copies)
        for row in corpus
    ]
    return Dataset(passages, {r["query_id"]: r["text"] for r in rows if r["query_id"] in grades}, grades)


async def index_all(data: Dataset, lexical: LexicalIndex, vectors: VectorIndex, embedder: Embedder | None) -> None:
    """Index the passages, and their vectors if there is a model."""
    for start in range(0, len(data.passages), BATCH):
        part = data.passages[start : start + BATCH]
        await lexical.put(COLLECTION, part, owner=OWNER)
        if embedder is not None:
            made = await embedder.embed([f"{passage.title}\n{passage.text}" for passage in part])
            await vectors.open(vector_set(OWNER, COLLECTION), made.space)
            await vectors.put(vector_set(OWNER, COLLECTION), entries(part, made, owner=OWNER))


async def measure(retriever: Retriever, data: Dataset, mode: RetrievalMode) -> Figures:
    """Ask every query twice: the first time for 100 passages, to judge them, then for 10, as users do, to time it."""
    figures = Figures()
    for top_k in (100, 10):
        figures.times.clear()
        for identity, text in data.queries.items():
            query = MemoryQuery(query_text=text, top_k=top_k, min_relevance_score=0.0)
            start = perf_counter()
            try:
                output = await retriever.search(query, collection=COLLECTION, owner=OWNER, mode=mode)
            except MemoryNoResultsError:
                continue
            finally:
                figures.times.append((perf_counter() - start) * 1000)
            figures.notes.add(output.note)
            if top_k == 100:
                figures.add(output.results, data.grades[identity])
    return figures


def show(mode: str, figures: Figures, count: int) -> None:
    """One line of the table."""
    times = sorted(figures.times)
    print(
        f"{mode:<14}{figures.ndcg / count:>9.4f}{figures.recall / count:>12.4f}{figures.mrr / count:>9.4f}"
        f"{sum(times) / len(times):>10.2f}{times[len(times) // 2]:>9.2f}{times[int(len(times) * 0.95)]:>9.2f}"
        f"   {'; '.join(sorted(figures.notes - {''}))}"
    )


def show_calibration(mode: str, figures: Figures) -> None:
    """Of the first ten hits with a score from 0.x on, how many are relevant."""
    held = sorted(figures.calibration.items())
    cells = [f"{at / 10:.1f}: {sum(relevant) / len(relevant):.2f} of {len(relevant)}" for at, relevant in held]
    print(f"{mode:<14}{', '.join(cells)}")


def make_embedder(data: Dataset) -> Embedder | None:
    """The model, if there is one."""
    if os.environ.get("EVAL_EMBEDDER") == "lsa":
        return LsaEmbedder([f"{passage.title}\n{passage.text}" for passage in data.passages])
    url = os.environ.get("AGENT_EMBEDDER_URL")
    key = os.environ.get("AGENT_EMBEDDER_API_KEY")
    return HttpEmbedder(url, os.environ.get("AGENT_EMBEDDER_MODEL"), key, timeout_s=120) if url else None


async def main() -> None:
    """Print the table."""
    folder = Path(os.environ.get("EVAL_DATASET") or DEFAULT)
    wanted = os.environ.get("RETRIEVAL_MODE")
    modes: tuple[RetrievalMode, ...] = get_args(RetrievalMode)
    if wanted and wanted not in modes:
        sys.exit(f"RETRIEVAL_MODE={wanted}: there are {', '.join(modes)}")
    data = read(folder, int(os.environ.get("EVAL_COPIES", "1")))
    embedder = make_embedder(data)
    with tempfile.TemporaryDirectory() as place:
        store = await open_sqlite(Path(place) / "eval.db")
        lexical, vectors = sqlite_index(store.database), ExactIndex(SqliteVectorRows(store.database))
        start = perf_counter()
        await index_all(data, lexical, vectors, embedder)
        print(f"{folder.name}: {len(data.passages)} passages, {len(data.queries)} queries, indexed in", end=" ")
        print(f"{perf_counter() - start:.1f} s; {'a model' if embedder else 'no model'}\n")
        print(f"{'mode':<14}{'nDCG@10':>9}{'recall@100':>12}{'MRR':>9}{'ms/query':>10}{'median':>9}{'p95':>9}")
        retriever = Retriever(lexical, vectors, embedder)
        tables = {}
        for mode in modes:
            if wanted in {None, "", mode}:
                tables[mode] = await measure(retriever, data, mode)
                show(mode, tables[mode], len(data.queries))
        print("\nrelevance_score against the judgements: share relevant of the first ten hits, from each score on")
        for mode, figures in tables.items():
            show_calibration(mode, figures)
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
