"""The measuring: each language's documents are read into a library of their own, and its questions asked of that."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.settings import Settings
from agent.net import SafeClient
from gateway.bootstrap_database import open_store
from gateway.bootstrap_memory import build_vector_index
from gateway.features.documents.bootstrap_documents import build_library
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.models import MemoryQuery, RetrievedContext
from tests.bench.json_lines import read_json_lines

HERE = Path(__file__).parent
LANGUAGES = ("sv", "de")
HALVES = ("dev", "blind")
OWNER, COLLECTION = "local", "office"
LEAST = 0.7
"""The default of `MemoryQuery.min_relevance_score`."""


@dataclass
class Half:
    """What was found for one half of a language's questions: means over the `answerable` ones.

    `ndcg` and `recall` are of the first ten, `first` says that the right document stands first, `sure` that it has the
    least relevance that is asked for by default."""

    name: str
    ndcg: float = 0.0
    recall: float = 0.0
    first: float = 0.0
    sure: float = 0.0
    answerable: int = 0

    def record_ranking(self, ranked: list[RetrievedContext], wanted: str) -> None:
        """Count one answerable question's passages; each document is one passage."""
        names = [one.metadata["source"] for one in ranked]
        at = names.index(f"{wanted}.md") if f"{wanted}.md" in names else None
        self.answerable += 1
        if at is not None:
            self.ndcg += 1 / math.log2(at + 2)
            self.recall += 1
            self.first += at == 0
            self.sure += ranked[at].relevance_score >= LEAST

    def means(self) -> "Half":
        """The sums as means."""
        count = self.answerable or 1
        self.ndcg, self.recall, self.first, self.sure = (
            one / count for one in (self.ndcg, self.recall, self.first, self.sure)
        )
        return self


async def measured(language: str) -> list[Half]:
    """Both halves of a language's questions."""
    halves = {name: Half(name) for name in HALVES}
    with tempfile.TemporaryDirectory() as place:
        docs = Path(place) / "docs"
        docs.mkdir()
        for row in rows(language, "corpus.jsonl"):
            (docs / f"{row['_id']}.md").write_text(f"# {row['title']}\n\n{row['text']}\n", "utf-8")
        settings = Settings(_env_file=None, data_dir=Path(place) / "data")
        store = await open_store(settings)
        library = build_library(settings, store, build_vector_index(settings, store), None, SafeClient())
        try:
            await library.ingest(OWNER, COLLECTION, docs)
            wanted = dict(line.split("\t")[:2] for line in (HERE / language / "qrels.tsv").read_text().splitlines())
            for asked in rows(language, "queries.jsonl"):
                half = halves[asked["half"]]
                if asked["_id"] in wanted:
                    half.record_ranking(await ranked(library, asked["text"]), wanted[asked["_id"]])
        finally:
            await store.close()
    return [half.means() for half in halves.values()]


async def ranked(library: Library, question: str) -> list[RetrievedContext]:
    """The first ten passages, whatever their relevance."""
    query = MemoryQuery(query_text=question, top_k=10, min_relevance_score=0.0)
    try:
        return list((await library.search(OWNER, COLLECTION, query)).results)
    except MemoryNoResultsError:
        return []


def rows(language: str, name: str) -> list[dict[str, Any]]:
    """The lines of one file of a language."""
    return [*read_json_lines(HERE / language / name)]
