"""The memory: nothing is lost, owners are separated, and two vector spaces are never compared."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.core.errors import EmbedderError, NotFoundError, VectorSpaceError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from agent.run_context.memory import MAX_CHARS, MemoryStore
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.sqlite import SqliteVectorRows


class TopicEmbedder:
    """An embedder with three topics. It counts its calls and can be switched off."""

    WORDS = (("dog", "pet", "animal"), ("city", "live", "home"), ("food", "eat", "allergic"))

    def __init__(self, model: str = "topics") -> None:
        self.calls: list[list[str]] = []
        self.away = False
        self._space = VectorSpace(model, 3)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """One number per topic."""
        self.calls.append(list(texts))
        if self.away:
            raise EmbedderError("the embedder is away", agent_id="embedder")
        return Embedded(self._space, tuple(self._vector(text.lower()) for text in texts))

    async def aclose(self) -> None:
        """Does nothing."""

    def _vector(self, text: str) -> tuple[float, ...]:
        return tuple(0.01 + sum(word in text for word in words) for words in self.WORDS)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_sqlite(tmp_path / "stepgate.db")
    yield opened
    await opened.close()


def make_memory(store: SqliteStore, embedder: TopicEmbedder | None = None, now: float = 1.0) -> MemoryStore:
    return MemoryStore(ExactIndex(SqliteVectorRows(store.database)), embedder, lambda: now)


async def recall_texts(
    memory: MemoryStore, query: str, owner: str = "ann", conversation: str | None = None
) -> list[str]:
    return [m.text for m in (await memory.search(owner, query, conversation_id=conversation)).memories]


@pytest.mark.row("S001-07")
async def test_a_fact_is_found_by_paraphrase_and_by_nobody_else(store: SqliteStore) -> None:
    memory = make_memory(store)
    await memory.save("ann", "My dog is called Fido.", source="run 1")
    await memory.save("ann", "We use PostgreSQL in production.", source="run 1")
    recall = await memory.search("ann", "what is the name of my dog")
    assert [(m.text, m.source, m.kind) for m in recall.memories] == [("My dog is called Fido.", "run 1", "fact")]
    assert recall.memories[0].score == pytest.approx(0.4, abs=0.3)
    assert recall.fallback_reason is None
    assert await recall_texts(memory, "what is the name of my dog", owner="bob") == []
    assert await recall_texts(memory, "how tall is the Eiffel tower") == []


async def test_saying_it_twice_is_one_memory(store: SqliteStore) -> None:
    first = await make_memory(store).save("ann", "I live  in Gothenburg", source="run 1")
    second = await make_memory(store, now=9.0).save("ann", " I live in Gothenburg\n", source="run 2")
    assert first.id == second.id
    newest = await make_memory(store).list_newest("ann")
    assert [(m.text, m.at) for m in newest] == [("I live in Gothenburg", 9.0)]


async def test_an_exchange_is_found_in_its_own_conversation_only(store: SqliteStore) -> None:
    memory = make_memory(store)
    await memory.save_exchange("ann", "chat-1", "Which wine goes with salmon?", "A dry Riesling.")
    assert await recall_texts(memory, "wine for salmon", conversation="chat-1") == [
        "Which wine goes with salmon?\nA dry Riesling."
    ]
    assert await recall_texts(memory, "wine for salmon", conversation="chat-2") == []
    assert await recall_texts(memory, "wine for salmon") == []
    assert await memory.list_newest("ann") == []
    assert [m.kind for m in await memory.list_newest("ann", kind=None)] == ["exchange"]


@pytest.mark.row("S001-08")
async def test_the_embedder_is_asked_once_a_save_and_once_a_search(store: SqliteStore) -> None:
    embedder = TopicEmbedder()
    memory = make_memory(store, embedder)
    await memory.save("ann", "My dog is Fido.", source="s")
    assert await recall_texts(memory, "which pet do I have") == ["My dog is Fido."], "found by meaning, not by words"
    assert await recall_texts(memory, "an animal") == ["My dog is Fido."]
    assert embedder.calls == [["My dog is Fido."], ["which pet do I have"], ["an animal"]]


@pytest.mark.row("S001-09")
async def test_an_embedder_that_is_away_costs_quality_and_no_memory(store: SqliteStore) -> None:
    embedder = TopicEmbedder()
    memory = make_memory(store, embedder)
    embedder.away = True
    await memory.save("ann", "My dog is Fido.", source="s")
    recall = await memory.search("ann", "what is my dog called")
    assert [m.text for m in recall.memories] == ["My dog is Fido."]
    assert (recall.embedder, recall.fallback_reason) == ("stepgate-local-1", "the embedder is away")
    embedder.away = False
    await memory.save_exchange("ann", "chat-1", "Where is my home?", "In Malmö.")
    assert await recall_texts(memory, "which pet", conversation="chat-1") == ["My dog is Fido."]
    assert len(embedder.calls[-1]) == 3, "what was missed goes into the call of the query"
    assert await recall_texts(memory, "which pet", conversation="chat-1") == ["My dog is Fido."]
    assert len(embedder.calls[-1]) == 1


@pytest.mark.row("S001-10")
async def test_another_embedder_is_refused_until_the_vectors_are_made_anew(store: SqliteStore) -> None:
    await make_memory(store, TopicEmbedder("old")).save("ann", "My dog is Fido.", source="s")
    memory = make_memory(store, TopicEmbedder("new"))
    with pytest.raises(VectorSpaceError, match=r"old.*new.*stepgate memory reindex"):
        await memory.check(ask=True)
    recall = await memory.search("ann", "my dog")
    assert [m.text for m in recall.memories] == ["My dog is Fido."]
    assert recall.embedder == "stepgate-local-1"
    assert "memory reindex" in (recall.fallback_reason or "")
    await memory.save("bob", "I eat everything.", source="s")
    seen: list[tuple[int, int]] = []
    assert await memory.reindex(lambda done, total: seen.append((done, total))) == 2
    assert seen == [(2, 2)]
    assert await recall_texts(memory, "which pet") == ["My dog is Fido."]
    assert await memory.check(ask=True) == "new (3 numbers)"


async def test_a_reindex_without_the_embedder_drops_nothing(store: SqliteStore) -> None:
    embedder = TopicEmbedder()
    memory = make_memory(store, embedder)
    await memory.save("ann", "My dog is Fido.", source="s")
    embedder.away = True
    with pytest.raises(EmbedderError):
        await memory.reindex(lambda done, total: None)
    embedder.away = False
    assert await recall_texts(memory, "a pet") == ["My dog is Fido."]


async def test_only_its_owner_forgets_a_memory(store: SqliteStore) -> None:
    memory = make_memory(store, TopicEmbedder())
    saved = await memory.save("ann", "My dog is Fido.", source="s")
    with pytest.raises(NotFoundError):
        await memory.delete("bob", saved.id)
    await memory.delete("ann", saved.id)
    assert await recall_texts(memory, "my dog") == []
    assert await memory.list_newest("ann", kind=None) == []
    with pytest.raises(NotFoundError):
        await memory.delete("ann", saved.id)


async def test_a_memory_keeps_its_taint_and_a_long_one_is_cut(store: SqliteStore) -> None:
    memory = make_memory(store)
    await memory.save("ann", "From a web page: the dog is blue.", source="s", tainted=True)
    assert [m.tainted for m in (await memory.search("ann", "blue dog")).memories] == [True]
    long = await memory.save("ann", "word " * 5000, source="s")
    assert len(long.text) == MAX_CHARS
    odd = await memory.save("ann", "a\x00b\ud800", source="s")
    assert odd.text == "ab\N{REPLACEMENT CHARACTER}"


async def test_an_embedder_of_another_space_is_told_when_it_is_refused(store: SqliteStore) -> None:
    await make_memory(store, TopicEmbedder()).save("ann", "My dog is called Fido.", source="run 1")
    other = make_memory(store, TopicEmbedder("another"))
    assert "embedder" in await other.check()
    assert (await other.search("ann", "dog")).fallback_reason
    with pytest.raises(VectorSpaceError):
        await other.check()
    await other.reindex(lambda _, __: None)
    assert "embedder" in await other.check()
