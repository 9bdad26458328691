"""The measuring: each language's documents are read into a library of their own, and its questions asked of that."""

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.settings import Settings
from agent.grounded_answers import TailorInput, write_by_rules
from agent.grounded_answers.found import passages_of
from agent.ingest.collections import Library
from agent.net import SafeClient
from agent.search.errors import MemoryNoResultsError
from agent.search.models import MemoryQuery, RetrievedContext
from gateway.bootstrap_stores import build_library, build_vector_index, open_store
from mcp_tools.builtin.knowledge import SearchKnowledgeInput, search_collections
from tests.bench.json_lines import read_json_lines

HERE = Path(__file__).parent
LANGUAGES = ("sv", "de")
HALVES = ("dev", "blind")
OWNER, COLLECTION = "local", "office"
LEAST = 0.7
"""The default of `MemoryQuery.min_relevance_score`."""


@dataclass
class Half:
    """What was found and answered of one half of a language's questions. `ndcg`, `recall` (of the first ten), `first`
    (the right document stands first) and `sure` (it has the least relevance that is asked for by default) are means
    over the `answerable`; the others are counts. `false` are wrong answers that were given without reserve."""

    name: str
    ndcg: float = 0.0
    recall: float = 0.0
    first: float = 0.0
    sure: float = 0.0
    answerable: int = 0
    answered: int = 0
    others: int = 0
    held_back: int = 0
    false: int = 0
    short: list[str] = field(default_factory=list)
    """Questions that were not treated as they should be, with what was answered."""
    refused: list[str] = field(default_factory=list)
    """The answers that cite nothing."""

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

    def record_detection(self, question: str, expected: str, content: str, *, cited: bool) -> None:
        """Count one answer."""
        opening = content.split("\n", 1)[0]
        reserved = not cited or (opening.endswith(":") and "[" not in opening)
        says_it = bool(expected) and expected.casefold() in content.casefold()
        self.others += not expected
        self.refused += [] if cited else [content]
        self.answered += says_it and not reserved
        self.held_back += reserved and not expected
        self.false += not reserved and not says_it
        if reserved if expected else not reserved:
            self.short.append(f"{question} -> {content[:160]!r}")
        elif expected and not says_it:
            self.short.append(f"{question} -> {content[:160]!r} (wants {expected})")

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
                content, cited = await answered(library, asked["text"])
                half.record_detection(asked["text"], asked["answer"], content, cited=cited)
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


async def answered(library: Library, question: str) -> tuple[str, bool]:
    """The answer by rules, as the room `knowledge` gives it without a model, and whether it cites anything."""
    found = await search_collections(library, SearchKnowledgeInput(query=question), OWNER)
    passages = passages_of([found.model_dump(mode="json")])
    output = write_by_rules(TailorInput(user_query=question, context_chunks=passages)).output
    return output.content, bool(output.citations)


def rows(language: str, name: str) -> list[dict[str, Any]]:
    """The lines of one file of a language."""
    return [*read_json_lines(HERE / language / name)]
