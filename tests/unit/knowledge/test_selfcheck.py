"""Whether an embedder reads a collection, and passages whose vectors are there already."""

import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from agent.core.embedder import Embedded
from agent.core.errors import VectorSpaceError
from agent.core.journal_sqlite import SqliteStore, open_sqlite
from agent.core.vectors import Space, VectorIndex
from agent.core.vectors.exact import ExactIndex
from agent.core.vectors.sqlite import SqliteVectorRows
from agent.knowledge.dense import embedded, entries
from agent.knowledge.lexical import LexicalIndex, Passage
from agent.knowledge.lexical_sqlite import sqlite_index
from agent.knowledge.models import MemoryQuery
from agent.knowledge.naming import vector_set
from agent.knowledge.retriever import Retriever
from agent.knowledge.selfcheck import CHECK_SECONDS, SelfCheck, Trust

SPACE = Space("m", 64)
ARABIC = Path(__file__).parents[2] / "bench" / "arabic"
SUBJECTS = ("engine piston valve fuel", "garden rose soil seed", "refund invoice price tax", "planet orbit star moon",
            "bread oven flour yeast", "harbour ship sail crew", "violin concert string bow", "nurse ward fever dose",
            "judge court law trial", "glacier ice summit rope")  # fmt: skip


def texts() -> list[str]:
    """Ten subjects, every passage with other words of its own; halves share a subject, and hardly a word."""
    said = random.Random(4)
    return [
        " ".join(f"{word} {said.choice(('old', 'new', 'fine'))}{n}" for word in subject.split() * 3)
        for n, subject in enumerate(SUBJECTS)
    ]


class Model:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, wanted: Sequence[str]) -> Embedded:
        self.asked += wanted
        return Embedded(SPACE, tuple(self.vector(text) for text in wanted))

    def vector(self, text: str) -> tuple[float, ...]:
        """Which subjects a text speaks of, on a ground that all texts share, as the cosines of many models have it."""
        held = [0.0] * SPACE.dimension
        for number, subject in enumerate(SUBJECTS):
            held[number] = float(sum(text.count(word) for word in subject.split()))
        own = random.Random(text)
        held[20:30] = [0.3 * own.random() for _ in range(10)]
        held[-1] = 3.0
        return tuple(held)

    async def aclose(self) -> None:
        """Nothing to close."""


class Blind(Model):
    """Every text looks the same but for noise, as Arabic does to an English model."""

    def vector(self, text: str) -> tuple[float, ...]:
        own = random.Random(text)
        return tuple(1.0 + 0.2 * own.gauss(0, 1) for _ in range(SPACE.dimension))


class English(Model):
    """Says of itself that it breaks other scripts into letters."""

    def pieces_a_word(self, text: str) -> float:
        return 1.1 if text.isascii() else 4.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_sqlite(tmp_path / "stepgate.db")
    yield opened
    await opened.close()


@pytest.fixture
def lexical(store: SqliteStore) -> LexicalIndex:
    return sqlite_index(store.database)


@pytest.fixture
def vectors(store: SqliteStore) -> VectorIndex:
    return ExactIndex(SqliteVectorRows(store.database))


def passages(held: Sequence[str], document: str = "d") -> list[Passage]:
    return [Passage(f"{document}.{n}", document, "", text) for n, text in enumerate(held)]


async def trust(lexical: LexicalIndex, model: Model, query: str = "the engine") -> Trust:
    return await SelfCheck(model).trust(lexical, "ann", "docs", SPACE, query)


async def test_a_model_that_reads_is_trusted_and_its_scale_is_learnt(lexical: LexicalIndex) -> None:
    await lexical.put("docs", passages(texts()), owner="ann")
    found = await trust(lexical, Model())
    assert found.weight == 1.0
    assert 0.1 < found.strangers < found.own <= 1.0


async def test_a_model_that_does_not_is_left_out(lexical: LexicalIndex) -> None:
    await lexical.put("docs", passages(texts()), owner="ann")
    assert (await trust(lexical, Blind())).weight == 0.0


async def test_few_passages_prove_nothing(lexical: LexicalIndex) -> None:
    await lexical.put("docs", passages(texts()[:3]), owner="ann")
    assert await trust(lexical, Blind()) == Trust()
    await lexical.put("docs", passages(texts()[:5]), owner="ann")
    few = await trust(lexical, Blind())
    assert few.weight == 1.0
    assert few.strangers > 0.9, "that all texts look alike is seen all the same"


async def test_a_vocabulary_of_other_languages_is_enough_to_be_left_out(lexical: LexicalIndex) -> None:
    await lexical.put("docs", passages(texts()), owner="ann")
    assert (await trust(lexical, English())).weight == 1.0
    assert (await trust(lexical, English(), "ما هي سياسة الإجازات؟")).weight == 0.0
    assert (await trust(lexical, Model(), "ما هي سياسة الإجازات؟")).weight == 1.0, "it may know both languages"


async def test_a_check_is_made_once_an_hour(lexical: LexicalIndex) -> None:
    await lexical.put("docs", passages(texts()), owner="ann")
    model, now = Model(), [0.0]
    check = SelfCheck(model, clock=lambda: now[0])
    for at, asked in ((0.0, 20), (CHECK_SECONDS - 1, 20), (CHECK_SECONDS + 1, 40)):
        now[0] = at
        await check.trust(lexical, "ann", "docs", SPACE, "engine")
        assert len(model.asked) == asked


async def shelve(held: Sequence[Passage], model: Model, vectors: VectorIndex, *replaced: str) -> int:
    """Put passages with their vectors; how many texts the model was asked for."""
    before = len(model.asked)
    made = await embedded(held, model, vectors, owner="ann", collection="docs", documents=replaced)
    await vectors.put(vector_set("ann", "docs"), entries(held, made, owner="ann"))
    for vector, one in zip(made.vectors, held, strict=True):
        expected = model.vector(f"\n{one.text}")
        cosine = np.dot(vector, expected) / np.linalg.norm(vector) / np.linalg.norm(expected)
        assert float(cosine) == pytest.approx(1.0)
    return len(model.asked) - before


@pytest.mark.row("S003-26")
async def test_passages_that_have_not_changed_are_not_embedded_again(vectors: VectorIndex) -> None:
    model, held = Model(), texts()
    assert await shelve(passages(held, "d1"), model, vectors) == 10
    assert await shelve(passages(held, "d1"), model, vectors) == 0, "put again"
    assert await shelve(passages([held[3], "a new one", *held[:3]], "d2"), model, vectors, "d1") == 1, "edited"
    assert await shelve(passages(held[:2], "d3"), model, vectors) == 2, "another document's vectors are not searched"
    assert await shelve(passages(["twice", "twice"], "d4"), model, vectors) == 1


async def test_another_embedder_is_refused_not_mixed(vectors: VectorIndex) -> None:
    class Other(Model):
        async def embed(self, wanted: Sequence[str]) -> Embedded:
            made = await super().embed(wanted)
            return Embedded(Space("other", 64), made.vectors)

    await shelve(passages(texts(), "d1"), Model(), vectors)
    with pytest.raises(VectorSpaceError, match="made by m"):
        await embedded(passages(["new"], "d1"), Other(), vectors, owner="ann", collection="docs")


class Letters(Model):
    """An English model on Arabic: it sees the letters, and little else."""

    def vector(self, text: str) -> tuple[float, ...]:
        held = [2.0] * SPACE.dimension
        for letter in text:
            held[ord(letter) % SPACE.dimension] += 4.0 / max(1, len(text))
        return tuple(held)


async def test_on_arabic_the_words_alone_decide_where_the_model_cannot_read(
    lexical: LexicalIndex, vectors: VectorIndex
) -> None:
    """Hybrid search gives what lexical search gives, and finds what people marked."""
    rows = [json.loads(line) for line in (ARABIC / "corpus.jsonl").read_text("utf-8").splitlines()]
    asked = [json.loads(line)["text"] for line in (ARABIC / "queries.jsonl").read_text("utf-8").splitlines()]
    held = [Passage(f"{row['doc_id']}.0", row["doc_id"], row["title"], row["text"]) for row in rows]
    model = Letters()
    await lexical.put("docs", held, owner="ann")
    await vectors.open(vector_set("ann", "docs"), SPACE)
    await vectors.put(
        vector_set("ann", "docs"), entries(held, await model.embed([f"\n{p.text}" for p in held]), owner="ann")
    )
    retriever = Retriever(lexical, vectors, model)
    for number, text in enumerate(asked):
        query = MemoryQuery(query_text=text, min_relevance_score=0)
        plain = await retriever.search(query, collection="docs", owner="ann", mode="lexical")
        fused = await retriever.search(query, collection="docs", owner="ann", mode="hybrid")
        assert [one.chunk_id for one in fused.results] == [one.chunk_id for one in plain.results]
        assert fused.results[0].source_id == rows[number]["doc_id"]
        assert "does not read this collection" in fused.note
