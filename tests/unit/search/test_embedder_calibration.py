"""Whether an embedder reads a collection, and passages whose vectors are there already."""

import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from agent.core.errors import VectorSpaceError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from gateway.features.documents.engine.search.embedder_calibration import (
    Calibration,
    EmbedderCalibration,
)
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.measured_values import VALID_SECONDS
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.engine.search.naming import make_vector_set_name
from gateway.features.documents.engine.search.retriever import Retriever
from gateway.features.documents.engine.search.vector_search import build_entries, embed_passages

SPACE = VectorSpace("m", 64)
ARABIC = Path(__file__).parents[2] / "bench" / "arabic"
SUBJECTS = ("engine piston valve fuel", "garden rose soil seed", "refund invoice price tax", "planet orbit star moon",
            "bread oven flour yeast", "harbour ship sail crew", "violin concert string bow", "nurse ward fever dose",
            "judge court law trial", "glacier ice summit rope")  # fmt: skip


def make_texts() -> list[str]:
    """Ten subjects, every passage with other words of its own; halves share a subject, and hardly a word."""
    said = random.Random(4)
    return [
        " ".join(f"{word} {said.choice(('old', 'new', 'fine'))}{n}" for word in subject.split() * 3)
        for n, subject in enumerate(SUBJECTS)
    ]


class CountingModel:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, wanted: Sequence[str]) -> Embedded:
        self.asked += wanted
        return Embedded(SPACE, tuple(self.compute_vector(text) for text in wanted))

    def compute_vector(self, text: str) -> tuple[float, ...]:
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


class BlindModel(CountingModel):
    """Every text looks the same but for noise, as Arabic does to an English model."""

    def compute_vector(self, text: str) -> tuple[float, ...]:
        own = random.Random(text)
        return tuple(1.0 + 0.2 * own.gauss(0, 1) for _ in range(SPACE.dimension))


class EnglishModel(CountingModel):
    """Says of itself that it breaks other scripts into letters."""

    def count_tokens_per_word(self, text: str) -> float:
        return 1.1 if text.isascii() else 4.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_sqlite(tmp_path / "stepgate.db")
    yield opened
    await opened.close()


@pytest.fixture
def lexical(store: SqliteStore) -> LexicalIndex:
    return create_sqlite_index(store.database)


@pytest.fixture
def vectors(store: SqliteStore) -> VectorIndex:
    return ExactIndex(SqliteVectorRows(store.database))


def make_passages(held: Sequence[str], document: str = "d") -> list[Passage]:
    return [Passage(f"{document}.{n}", document, "", text) for n, text in enumerate(held)]


async def calibrate(lexical: LexicalIndex, model: CountingModel, query: str = "the engine") -> Calibration:
    return await EmbedderCalibration(model).calibrate(lexical, "ann", "docs", SPACE, query)


async def test_a_model_that_reads_is_trusted_and_its_scale_is_learnt(lexical: LexicalIndex) -> None:
    await lexical.put("docs", make_passages(make_texts()), owner="ann")
    found = await calibrate(lexical, CountingModel())
    assert found.weight == 1.0
    assert 0.1 < found.unrelated_cosine < found.related_cosine <= 1.0


async def test_a_model_that_does_not_is_left_out(lexical: LexicalIndex) -> None:
    await lexical.put("docs", make_passages(make_texts()), owner="ann")
    assert (await calibrate(lexical, BlindModel())).weight == 0.0


async def test_few_passages_prove_nothing(lexical: LexicalIndex) -> None:
    await lexical.put("docs", make_passages(make_texts()[:3]), owner="ann")
    assert await calibrate(lexical, BlindModel()) == Calibration()
    await lexical.put("docs", make_passages(make_texts()[:5]), owner="ann")
    few = await calibrate(lexical, BlindModel())
    assert few.weight == 1.0
    assert few.unrelated_cosine > 0.9, "that all texts look alike is seen all the same"


async def test_a_vocabulary_of_other_languages_is_enough_to_be_left_out(lexical: LexicalIndex) -> None:
    await lexical.put("docs", make_passages(make_texts()), owner="ann")
    assert (await calibrate(lexical, EnglishModel())).weight == 1.0
    assert (await calibrate(lexical, EnglishModel(), "ما هي سياسة الإجازات؟")).weight == 0.0
    assert (await calibrate(lexical, CountingModel(), "ما هي سياسة الإجازات؟")).weight == 1.0, (
        "it may know both languages"
    )


async def test_a_check_is_made_once_an_hour(lexical: LexicalIndex) -> None:
    await lexical.put("docs", make_passages(make_texts()), owner="ann")
    model, now = CountingModel(), [0.0]
    check = EmbedderCalibration(model, clock=lambda: now[0])
    for at, asked in ((0.0, 20), (VALID_SECONDS - 1, 20), (VALID_SECONDS + 1, 40)):
        now[0] = at
        await check.calibrate(lexical, "ann", "docs", SPACE, "engine")
        assert len(model.asked) == asked


async def store_passages(held: Sequence[Passage], model: CountingModel, vectors: VectorIndex, *replaced: str) -> int:
    """Put passages with their vectors; how many texts the model was asked for."""
    before = len(model.asked)
    made = await embed_passages(held, model, vectors, owner="ann", collection="docs", documents=replaced)
    await vectors.put(make_vector_set_name("ann", "docs"), build_entries(held, made, owner="ann"))
    for vector, one in zip(made.vectors, held, strict=True):
        expected = model.compute_vector(f"\n{one.text}")
        cosine = np.dot(vector, expected) / np.linalg.norm(vector) / np.linalg.norm(expected)
        assert float(cosine) == pytest.approx(1.0)
    return len(model.asked) - before


@pytest.mark.row("S003-26")
async def test_passages_that_have_not_changed_are_not_embedded_again(vectors: VectorIndex) -> None:
    model, held = CountingModel(), make_texts()
    assert await store_passages(make_passages(held, "d1"), model, vectors) == 10
    assert await store_passages(make_passages(held, "d1"), model, vectors) == 0, "put again"
    assert await store_passages(make_passages([held[3], "a new one", *held[:3]], "d2"), model, vectors, "d1") == 1, (
        "edited"
    )
    assert await store_passages(make_passages(held[:2], "d3"), model, vectors) == 2, (
        "another document's vectors are not searched"
    )
    assert await store_passages(make_passages(["twice", "twice"], "d4"), model, vectors) == 1


async def test_another_embedder_is_refused_not_mixed(vectors: VectorIndex) -> None:
    class Other(CountingModel):
        async def embed(self, wanted: Sequence[str]) -> Embedded:
            made = await super().embed(wanted)
            return Embedded(VectorSpace("other", 64), made.vectors)

    await store_passages(make_passages(make_texts(), "d1"), CountingModel(), vectors)
    with pytest.raises(VectorSpaceError, match="made by m"):
        await embed_passages(make_passages(["new"], "d1"), Other(), vectors, owner="ann", collection="docs")


class LettersModel(CountingModel):
    """An English model on Arabic: it sees the letters, and little else."""

    def compute_vector(self, text: str) -> tuple[float, ...]:
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
    model = LettersModel()
    await lexical.put("docs", held, owner="ann")
    await vectors.open(make_vector_set_name("ann", "docs"), SPACE)
    await vectors.put(
        make_vector_set_name("ann", "docs"),
        build_entries(held, await model.embed([f"\n{p.text}" for p in held]), owner="ann"),
    )
    retriever = Retriever(lexical, vectors, model)
    for number, text in enumerate(asked):
        query = MemoryQuery(query_text=text, min_relevance_score=0)
        plain = await retriever.search(query, collection="docs", owner="ann", mode="lexical")
        fused = await retriever.search(query, collection="docs", owner="ann", mode="hybrid")
        assert [one.chunk_id for one in fused.results] == [one.chunk_id for one in plain.results]
        assert fused.results[0].source_id == rows[number]["doc_id"]
        assert "does not read this collection" in fused.note
