"""The retriever's modes, its fallbacks and its scale, on the real indexes."""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.core.errors import BadRequestError, EmbedderError
from agent.core.models import JsonObject, RetrievalMode
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded, LocalEmbedder
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors import VectorIndex
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from agent.text.stemmer import stem_porter
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.models import MemoryOutput, MemoryQuery
from gateway.features.documents.engine.search.naming import make_vector_set_name
from gateway.features.documents.engine.search.retriever import Retriever
from gateway.features.documents.engine.search.vector_search import build_entries

CONCEPTS = (("car", "automobile", "vehicle"), ("refund", "money", "repaid"), ("garden", "flowers", "roses"), ("zebra",))
MODES: tuple[RetrievalMode, ...] = ("lexical", "vector", "hybrid", "hybrid_rerank")


class ConceptEmbedder:
    """Knows which words mean the same."""

    def __init__(self, name: str = "concepts") -> None:
        self.space = VectorSpace(name, 16)
        self.down = False

    async def embed(self, texts: Sequence[str]) -> Embedded:
        if self.down:
            raise EmbedderError("the endpoint cannot be reached", agent_id="embedder")
        return Embedded(self.space, tuple(self.compute_vector(text) for text in texts))

    def compute_vector(self, text: str) -> tuple[float, ...]:
        found = [float(sum(text.lower().count(word) for word in group)) for group in CONCEPTS]
        own = random.Random(text.rpartition(" ")[2])  # passages differ by their last word
        return (*found, *(0.2 * own.random() for _ in range(12)))

    async def aclose(self) -> None:
        """Nothing to close."""


class NoiseEmbedder(ConceptEmbedder):
    """Vectors that mean nothing."""

    def compute_vector(self, text: str) -> tuple[float, ...]:
        own = random.Random(text)
        return tuple(own.gauss(0, 1) for _ in range(16))


class IndexFixture:
    """The indexes of one store, filled."""

    def __init__(self, lexical: LexicalIndex, vectors: VectorIndex) -> None:
        self.lexical = lexical
        self.vectors = vectors

    async def fill(self, passages: Sequence[Passage], embedder: ConceptEmbedder | None) -> Retriever:
        await self.lexical.put("docs", passages, owner="ann")
        if embedder is not None:
            name = make_vector_set_name("ann", "docs")
            made = await embedder.embed([passage.text for passage in passages])
            await self.vectors.open(name, made.space)
            await self.vectors.put(name, build_entries(passages, made, owner="ann"))
        return Retriever(self.lexical, self.vectors, embedder)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[IndexFixture]:
    store = await open_sqlite(tmp_path / "stepgate.db")
    yield IndexFixture(create_sqlite_index(store.database), ExactIndex(SqliteVectorRows(store.database)))
    await store.close()


def make_passages(count: int = 12) -> list[Passage]:
    """Passages about four things, a document for every three."""
    texts = ("the automobile stood still", "money is repaid within a month", "roses grow in the shade")
    return [
        Passage(f"p{n:02}", f"d{n // 3}", f"Part {n}", f"{texts[n % 3]} in section part{n}", {"n": n, "kind": n % 3})
        for n in range(count)
    ]


async def ask(
    retriever: Retriever,
    text: str,
    mode: RetrievalMode = "hybrid",
    least: float = 0.0,
    filters: JsonObject | None = None,
) -> MemoryOutput:
    """A search of Ann's documents."""
    query = MemoryQuery(query_text=text, top_k=5, min_relevance_score=least, filters=filters)
    return await retriever.search(query, collection="docs", owner="ann", mode=mode)


@pytest.mark.parametrize("mode", MODES)
async def test_every_mode_scores_from_0_to_1_best_first_and_says_why(house: IndexFixture, mode: RetrievalMode) -> None:
    retriever = await house.fill(make_passages(), ConceptEmbedder())
    output = await ask(retriever, "automobile in section part3", mode)
    scores = [result.relevance_score for result in output.results]
    assert output.results[0].chunk_id == "p03"
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(result.why_selected and result.retrieval_mode == mode for result in output.results)
    assert output.results[0].source_id == "d1"
    assert output.note == ""
    branches = {"lexical", "vector"} if mode.startswith("hybrid") else {mode}
    assert branches <= set(output.results[0].metadata["scores"])  # type: ignore[arg-type]


async def test_vectors_find_what_the_words_do_not(house: IndexFixture) -> None:
    retriever = await house.fill(make_passages(), ConceptEmbedder())
    with pytest.raises(MemoryNoResultsError):
        await ask(retriever, "my refund", "lexical")
    for mode in ("vector", "hybrid", "hybrid_rerank"):
        output = await ask(retriever, "my refund", mode)
        assert {result.metadata["kind"] for result in output.results[:4]} == {1}
        assert "near in meaning" in output.results[0].why_selected


async def test_an_index_from_before_some_stems_were_told_apart_is_still_searched(
    house: IndexFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the ore of the mine is sold or stored", "we use the lift of the mine", "roses grow in the shade"]
    stored = [Passage(f"p{n}", f"d{n}", "", text, {}) for n, text in enumerate(texts)]
    with monkeypatch.context() as before:
        before.setattr(
            "gateway.features.documents.engine.search.tantivy_index.extract_terms",
            lambda text: [stem_porter(word) for word in text.lower().split()],
        )
        retriever = await house.fill(stored, None)
    for question, found in (("What ore does the mine have?", "p0"), ("How do I use the lift of the mine?", "p1")):
        output = await ask(retriever, question, "lexical", least=0.4)
        assert found in [result.chunk_id for result in output.results]


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("embedder", [None, LocalEmbedder()])
async def test_without_a_real_embedder_the_words_are_searched(
    house: IndexFixture, mode: RetrievalMode, embedder: LocalEmbedder | None
) -> None:
    await house.fill(make_passages(), None)
    output = await ask(Retriever(house.lexical, house.vectors, embedder), "roses", mode)
    assert "AGENT_EMBEDDER_URL" in output.note
    assert {result.retrieval_mode for result in output.results} == {"lexical"}


async def test_faults_of_the_vectors_are_told_and_do_not_stop_a_search(house: IndexFixture) -> None:
    embedder = ConceptEmbedder()
    retriever = await house.fill(make_passages(), embedder)
    embedder.down = True
    output = await ask(retriever, "roses")
    assert ("cannot be reached" in output.note, output.results[0].retrieval_mode) == (True, "lexical")
    output = await ask(Retriever(house.lexical, house.vectors, ConceptEmbedder("another")), "roses", "vector")
    assert ("were made by concepts" in output.note, output.results[0].retrieval_mode) == (True, "lexical")
    await house.vectors.drop(make_vector_set_name("ann", "docs"))
    output = await ask(Retriever(house.lexical, house.vectors, ConceptEmbedder()), "roses")
    assert "has a vector yet" in output.note


async def test_vectors_that_mean_nothing_are_left_out(house: IndexFixture) -> None:
    many = make_passages(300)
    retriever = await house.fill(many, NoiseEmbedder())
    plain = await ask(retriever, "automobile still part42", "lexical")
    fused = await ask(retriever, "automobile still part42", "hybrid")
    assert [result.chunk_id for result in fused.results] == [result.chunk_id for result in plain.results]
    assert "does not read this collection well" in fused.note


@pytest.mark.parametrize("mode", MODES)
async def test_filters_hold_in_every_branch(house: IndexFixture, mode: RetrievalMode) -> None:
    retriever = await house.fill(make_passages(300), ConceptEmbedder())
    output = await ask(retriever, "the automobile part299", mode, filters={"n": [6, 8, 297]})
    assert {result.chunk_id for result in output.results} <= {"p06", "p08", "p297"}
    assert {"p06", "p297"} <= {result.chunk_id for result in output.results}
    with pytest.raises(BadRequestError, match="kind, n"):
        await ask(retriever, "automobile", mode, filters={"colour": "red"})


async def test_what_a_passage_holds_of_the_query_decides_its_relevance(house: IndexFixture) -> None:
    rows = [*make_passages(30), Passage("x", "x", "Refund policy", "Our refund policy: customers get all of it back.")]
    retriever = await house.fill(rows, None)
    assert (await ask(retriever, "What is the refund policy?", least=0.7)).results[0].chunk_id == "x"
    with pytest.raises(MemoryNoResultsError) as caught:
        await ask(retriever, "kubernetes ingress timeouts behind a customers proxy", least=0.7)
    assert caught.value.details["min_relevance_score"] == 0.7


LEAVE = "Employees have thirty days of paid leave a year. Ask for them two weeks ahead; days left over are lost."


@pytest.mark.row("S003-23")
@pytest.mark.parametrize("others", [0, 1, 400])
async def test_a_score_means_the_same_in_a_collection_of_one_document_and_of_many(
    house: IndexFixture, others: int
) -> None:
    rows = [Passage("leave", "leave", "Paid leave", LEAVE), *make_passages(others)]
    retriever = await house.fill(rows, None)
    for asked in (
        "How many days of paid leave are there?",
        "Can you please explain the paid leave?",
        "leave left over",
    ):
        best = (await ask(retriever, asked, "lexical")).results[0]
        assert (best.chunk_id, best.relevance_score >= 0.7) == ("leave", True), (asked, best.relevance_score)
    for asked in ("Who may park in the courtyard after a year?", "which browser do employees use for invoices"):
        with pytest.raises(MemoryNoResultsError):
            await ask(retriever, asked, "lexical", least=0.7)


async def test_the_reranker_begins_with_half_of_each_branch(house: IndexFixture) -> None:
    """What both branches find well comes before what one finds best; a passage one branch missed is asked about."""
    rows = [
        Passage("words", "d1", "", "refund refund of the deposit words"),
        Passage("both", "d2", "", "money is repaid, a refund both"),
        Passage("near", "d3", "", "money repaid repaid repaid near"),
        *make_passages(12)[2::3],
    ]
    retriever = await house.fill(rows, ConceptEmbedder())
    output = await ask(retriever, "refund", "hybrid_rerank")
    assert {result.chunk_id for result in output.results[:3]} == {"words", "both", "near"}
    scores = {result.chunk_id: result.metadata["scores"] for result in output.results}
    assert set(scores["words"]) >= {"lexical", "vector"}  # type: ignore[arg-type]
    assert "vector" in scores["near"]  # type: ignore[operator]
    assert "lexical" not in scores["near"]  # type: ignore[operator]


async def test_a_phrase_close_together_is_put_first_by_the_reranker(house: IndexFixture) -> None:
    far = f"heat {'and other things ' * 12} then at last a shield"
    rows = [
        Passage("far", "far", "", f"shield shield {far} heat heat"),
        Passage("near", "near", "", f"{'and other things ' * 12} then at last a heat shield of steel in it all"),
        *make_passages(20),
    ]
    retriever = await house.fill(rows, None)
    assert (await ask(retriever, "heat shield", "lexical")).results[0].chunk_id == "far"
    output = await ask(retriever, "heat shield", "hybrid_rerank")
    assert {result.chunk_id for result in output.results} == {"far", "near"}
    assert "as in the query" in next(r.why_selected for r in output.results if r.chunk_id == "near")


async def test_a_passage_that_was_removed_is_not_found_by_its_vector(house: IndexFixture) -> None:
    retriever = await house.fill(make_passages(), ConceptEmbedder())
    await house.lexical.delete("docs", ["d0"], owner="ann")
    output = await ask(retriever, "money repaid", "vector")
    assert {"p00", "p01", "p02"}.isdisjoint(result.chunk_id for result in output.results)


async def test_another_owner_finds_nothing(house: IndexFixture) -> None:
    retriever = await house.fill(make_passages(), ConceptEmbedder())
    with pytest.raises(MemoryNoResultsError):
        await retriever.search(
            MemoryQuery(query_text="roses", min_relevance_score=0), collection="docs", owner="bob", mode="hybrid"
        )
