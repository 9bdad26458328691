"""Measures each retrieval mode against relevance judgements: `make eval-retrieval`.

EVAL_DATASET is a folder or a file of queries (see `datasets.py`; default: ../shared/data/cranfield, or our own Arabic
passages if that is missing), EVAL_CORPUS the corpus for a file of queries. RETRIEVAL_MODE picks one mode.
AGENT_EMBEDDER_MODEL_DIR, _URL, _MODEL and _API_KEY configure the embedder as for the gateway; EVAL_EMBEDDER=lsa uses
latent semantic analysis of the corpus instead of a model. EVAL_REPORT is the path of the JSON report
(eval-retrieval.json). EVAL_COPIES=n indexes every passage n times, for timing only.

Beside our modes stand two peers on the same passages and queries: bm25s, and all-MiniLM-L6-v2 alone (its nearest
vectors). Both are installed on demand; EVAL_PEERS=off leaves them out. Without an embedder of your own, our modes that
need one use that same model.
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

from agent.core.errors import ConfigError
from agent.core.models import RetrievalMode
from agent.core.settings.loading import load_settings
from agent.llm.embedder import Embedded, Embedder, LanguageAwareEmbedder
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from gateway.bootstrap_memory import build_embedder
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.lexical import LexicalIndex
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.models import MemoryQuery, RetrievedContext
from gateway.features.documents.engine.search.naming import make_vector_set_name
from gateway.features.documents.engine.search.retriever import Retriever
from gateway.features.documents.engine.search.vector_search import build_entries, format_passage_text
from tests.bench import retrieval_peers
from tests.bench.datasets import Dataset, read
from tests.bench.lsa import LsaEmbedder
from tests.bench.retrieval_peers import find_missing

DEFAULTS = (
    Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield",
    Path(__file__).resolve().parent / "arabic",
)
OWNER, COLLECTION = "bench", "eval"
BATCH_SIZE = 500
MIN_RELEVANCE = 0.7
"""The default of `MemoryQuery.min_relevance_score`."""
_NONE_ABOVE = f"nothing_above_{MIN_RELEVANCE:g}"


class TimedEmbedder:
    """An embedder that measures its own time and embeds every text once."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, Embedded] = {}
        self.seconds = 0.0

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`; cached texts take no time."""
        start = perf_counter()
        try:
            if len(texts) > 1:
                return await self._inner.embed(texts)
            if texts[0] not in self._known:
                self._known[texts[0]] = await self._inner.embed(texts)
            return self._known[texts[0]]
        finally:
            self.seconds += perf_counter() - start

    def count_tokens_per_word(self, text: str) -> float:
        """See `LanguageAwareEmbedder.count_tokens_per_word`."""
        return self._inner.count_tokens_per_word(text) if isinstance(self._inner, LanguageAwareEmbedder) else 1.0

    async def aclose(self) -> None:
        """See `Embedder.aclose`."""
        await self._inner.aclose()


@dataclass
class Figures:
    """Sums over the queries of one mode; times in milliseconds, without the embedder's."""

    ndcg: float = 0.0
    recall: float = 0.0
    mrr: float = 0.0
    hits: int = 0
    none_above: int = 0
    times: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    calibration: dict[int, list[bool]] = field(default_factory=dict)

    def add(self, results: Sequence[RetrievedContext], grades: dict[str, float]) -> None:
        """Adds one query's results."""
        self.add_ranking([result.source_id for result in results], grades)
        for result in results[:10]:
            relevant = result.source_id in grades
            self.calibration.setdefault(min(9, int(result.relevance_score * 10)), []).append(relevant)

    def add_ranking(self, documents: Sequence[str], grades: dict[str, float]) -> None:
        """Adds the documents that one query found, best first."""
        ranked = list(dict.fromkeys(documents))
        ideal = sum(g / math.log2(at + 2) for at, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
        self.ndcg += sum(grades.get(d, 0) / math.log2(at + 2) for at, d in enumerate(ranked[:10])) / ideal
        self.recall += len(set(ranked[:100]) & set(grades)) / len(grades)
        self.mrr += next((1 / (at + 1) for at, d in enumerate(ranked) if d in grades), 0.0)
        self.hits += bool(set(ranked[:10]) & set(grades))

    def report(self, count: int) -> dict[str, float | str]:
        """The means by the names of the table's columns."""
        times, embedding = sorted(self.times), sorted(self.embedding) or [0.0]
        return {
            "ndcg@10": self.ndcg / count,
            "recall@100": self.recall / count,
            "mrr": self.mrr / count,
            "hit_rate@10": self.hits / count,
            "ms_per_query": sum(times) / len(times),
            "ms_p50": times[len(times) // 2],
            "ms_p95": times[int(len(times) * 0.95)],
            "embedding_ms_p50": embedding[len(embedding) // 2],
            _NONE_ABOVE: self.none_above / count,
            "notes": "; ".join(sorted(self.notes - {""})),
        }


async def index_all(data: Dataset, lexical: LexicalIndex, vectors: VectorIndex, embedder: Embedder | None) -> None:
    """Indexes the passages, and their vectors if there is a model."""
    for start in range(0, len(data.passages), BATCH_SIZE):
        part = data.passages[start : start + BATCH_SIZE]
        await lexical.put(COLLECTION, part, owner=OWNER)
        if embedder is not None:
            made = await embedder.embed([format_passage_text(passage) for passage in part])
            await vectors.open(make_vector_set_name(OWNER, COLLECTION), made.space)
            await vectors.put(make_vector_set_name(OWNER, COLLECTION), build_entries(part, made, owner=OWNER))


async def measure(retriever: Retriever, timed: TimedEmbedder | None, data: Dataset, mode: RetrievalMode) -> Figures:
    """Runs every query twice: first for 100 passages to judge them, then for 10, as users do, to time it."""
    figures = Figures()
    for top_k in (100, 10):
        figures.times.clear()
        for identity, text in data.queries.items():
            query = MemoryQuery(query_text=text, top_k=top_k, min_relevance_score=0.0)
            before, start = timed.seconds if timed else 0.0, perf_counter()
            try:
                output = await retriever.search(query, collection=COLLECTION, owner=OWNER, mode=mode)
            except MemoryNoResultsError:
                figures.none_above += top_k == 100
                continue
            finally:
                embedding = (timed.seconds if timed else 0.0) - before
                figures.times.append((perf_counter() - start - embedding) * 1000)
                if top_k == 100:
                    figures.embedding.append(embedding * 1000)
            figures.notes.add(output.note)
            if top_k == 100:
                figures.add(output.results, data.grades[identity])
                figures.none_above += output.results[0].relevance_score < MIN_RELEVANCE
    return figures


def print_reports(reports: dict[str, dict[str, float | str]]) -> None:
    """Prints the table, a line for each mode."""
    heads = (
        "ndcg@10",
        "recall@100",
        "mrr",
        "hit_rate@10",
        "ms_per_query",
        "ms_p50",
        "ms_p95",
        _NONE_ABOVE,
    )
    print(f"{'mode':<14}" + "".join(f"{head:>{max(8, len(head)) + 2}}" for head in heads))
    for mode, told in reports.items():
        cells = (f"{told[head]:>{max(8, len(head)) + 2}.{2 if head.startswith('ms') else 4}f}" for head in heads)
        print(f"{mode:<14}{''.join(cells)}   {told['notes']}")


def print_calibration(mode: str, figures: Figures) -> None:
    """Prints how many of the first ten hits with a score from 0.x on are relevant."""
    held = sorted(figures.calibration.items())
    cells = [f"{at / 10:.1f}: {sum(relevant) / len(relevant):.2f} of {len(relevant)}" for at, relevant in held]
    print(f"{mode:<14}{', '.join(cells)}")


def make_embedder(data: Dataset) -> Embedder | None:
    """The embedder, if one is configured."""
    if os.environ.get("EVAL_EMBEDDER") == "lsa":
        return LsaEmbedder([format_passage_text(passage) for passage in data.passages])
    return build_embedder(load_settings())


async def evaluate(data: Dataset, embedder: Embedder | None, modes: Sequence[RetrievalMode]) -> dict[str, Figures]:
    """The figures of each mode, each on its own store."""
    timed = TimedEmbedder(embedder) if embedder is not None else None
    with tempfile.TemporaryDirectory() as place:
        store = await open_sqlite(Path(place) / "eval.db")
        lexical, vectors = create_sqlite_index(store.database), ExactIndex(SqliteVectorRows(store.database))
        start = perf_counter()
        await index_all(data, lexical, vectors, timed)
        print(f"{data.name}: {len(data.passages)} passages, {len(data.queries)} queries, indexed in", end=" ")
        print(f"{perf_counter() - start:.1f} s; {'a model' if embedder else 'no model'}\n")
        retriever = Retriever(lexical, vectors, timed)
        found = {mode: await measure(retriever, timed, data, mode) for mode in modes}
        await store.close()
    return {str(mode): figures for mode, figures in found.items()}


async def measure_peers(data: Dataset, model: Embedder | None) -> dict[str, Figures]:
    """The figures of the peers on the same queries; without a model, of bm25s only."""
    found = {}
    ranks = {retrieval_peers.BM25S: await retrieval_peers.rank_by_bm25s(data)}
    if model is not None:
        ranks[retrieval_peers.MODEL] = await retrieval_peers.rank_by_model(data, model)
    for name, (ranked, times) in ranks.items():
        figures = found[name] = Figures(times=times)
        for identity, documents in zip(data.queries, ranked, strict=True):
            figures.add_ranking(documents, data.grades[identity])
    return found


async def main() -> None:
    """Prints the tables and writes the report."""
    wanted = os.environ.get("RETRIEVAL_MODE")
    modes: tuple[RetrievalMode, ...] = get_args(RetrievalMode)
    if wanted and wanted not in modes:
        sys.exit(f"RETRIEVAL_MODE={wanted}: there are {', '.join(modes)}")
    place = os.environ.get("EVAL_DATASET")
    corpus = os.environ.get("EVAL_CORPUS")
    try:
        data = read(
            Path(place) if place else next(folder for folder in DEFAULTS if folder.is_dir()),
            corpus=Path(corpus) if corpus else None,
            copies=int(os.environ.get("EVAL_COPIES", "1")),
        )
        embedder = make_embedder(data)
    except (ValueError, ConfigError) as error:
        sys.exit(f"eval-retrieval: {error}")
    without = "left out" if os.environ.get("EVAL_PEERS") == "off" else await asyncio.to_thread(find_missing)
    model = None if without or wanted == "lexical" else await asyncio.to_thread(retrieval_peers.load_model)
    embedder = embedder or model
    figures = await evaluate(data, embedder, [mode for mode in modes if wanted in {None, "", mode}])
    reports = {mode: held.report(len(data.queries)) for mode, held in figures.items()}
    if not without:
        peers = await measure_peers(data, model)
        reports |= {name: {**held.report(len(data.queries)), _NONE_ABOVE: math.nan} for name, held in peers.items()}
    print_reports(reports)
    print(f"\nno peers: {without}" if without else "")
    print("relevance_score against the judgements: share relevant of the first ten hits, from each score on")
    for mode, held in figures.items():
        print_calibration(mode, held)
    report = Path(os.environ.get("EVAL_REPORT") or "eval-retrieval.json")
    told = {"dataset": data.name, "passages": len(data.passages), "queries": len(data.queries), "modes": reports}
    await asyncio.to_thread(report.write_text, json.dumps(told, indent=2, ensure_ascii=False), "utf-8")
    print(f"\n{report} holds these figures")
    if embedder is not None:
        await embedder.aclose()


if __name__ == "__main__":
    asyncio.run(main())
