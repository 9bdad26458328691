"""The contract of every `LexicalIndex`. A driver's test class provides `indexes`: two objects on one store, as two
processes have them.
"""

import pytest

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from agent.text.terms import extract_terms
from gateway.features.documents.engine.search.bm25 import PassageScorer
from gateway.features.documents.engine.search.lexical import IndexedPassage, LexicalIndex, LexicalResult, Passage
from gateway.features.documents.engine.search.lexical_rows import LexicalRows

HOUSE = "house"
SWEDISH = "Hotellkostnaden ers\u00e4tts med h\u00f6gst 1 450 kronor, och kvittot l\u00e4mnas till chefen."
GERMAN = "Der Zuschuss zum Sportverein wird im Januar von der Leitung gezahlt."
ENGLISH = "The policies of the house are that rates of hotels are paid."


def make_passage(identity: str, text: str, title: str = "", document: str | None = None, **metadata: object) -> Passage:
    """A passage with a document of its own."""
    held: JsonObject = dict(metadata)  # type: ignore[arg-type]
    return Passage(identity, document or f"doc-{identity}", title, text, held)


async def search(
    index: LexicalIndex, query: str, *, owner: str = "ann", limit: int = 10, filters: JsonObject | None = None
) -> LexicalResult:
    """Searches one collection."""
    return await index.search(HOUSE, query, owner=owner, limit=limit, filters=filters)


async def search_ids(index: LexicalIndex, query: str, **options: object) -> list[str]:
    """The ids of the hits, best first."""
    return [hit.id for hit in (await search(index, query, **options)).hits]  # type: ignore[arg-type]


QUERIES_LIKE_SYNTAX = (
    '"', 'NEAR("engine" 5)', "engine*", "-engine", "title:engine", "engine AND", "(engine", "engine' OR 1=1 --",
    "{title} : engine", "^engine", "engine & !fuel | (", "engine\x00", "engine \ud800 %s %(x)s \\",
)  # fmt: skip
TEXTS_IN_SCRIPTS = (
    ("ذهب الطلاب إلى المدرسة", "مدرسة"),
    ("كَتَبَ الوَلَدُ الدَّرْسَ", "كتب الولد"),
    ("والمكتبات مفتوحة ٢٠٢٤", "المكتبة 2024"),
    ("می‌خواهم کتاب بخوانم", "كتاب"),
    ("हिन्दी की किताबें", "किताबें"),
    ("東京タワーはどこですか", "東京タワー"),
    ("กรุงเทพมหานครเป็นเมืองหลวง", "เมืองหลวง"),
    ("Москва — столица России", "москва"),
    ("Le café fermé", "cafe FERME"),
    ("Übergrößenträger", "ubergroßentrager"),
    ("서울은 대한민국의 수도", "서울은"),
    ("החתול יושב", "החתול"),
)
"""Each with a query that finds it."""


class LexicalContract:
    @pytest.fixture
    def indexes(self) -> tuple[LexicalIndex, LexicalIndex]:
        raise AssertionError("a driver's test class gives its own `indexes` fixture")

    @pytest.fixture
    def index(self, indexes: tuple[LexicalIndex, LexicalIndex]) -> LexicalIndex:
        return indexes[0]

    @pytest.fixture
    def other(self, indexes: tuple[LexicalIndex, LexicalIndex]) -> LexicalIndex:
        return indexes[1]

    async def test_words_are_found_by_their_stem_and_without_case(self, index: LexicalIndex) -> None:
        await index.put(
            HOUSE, [make_passage("a", "Running engines overheat."), make_passage("b", "A quiet garden.")], owner="ann"
        )
        assert await search_ids(index, "the ENGINE runs") == ["a"]
        assert await search_ids(index, "volcano") == []

    @pytest.fixture
    def rows(self) -> LexicalRows:
        raise AssertionError("a driver's test class gives its own `rows` fixture, on the store of `indexes`")

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            (SWEDISH, "hotellkostnader"),
            (SWEDISH, "Vilka hotellkostnader ers\u00e4tter ni?"),
            (SWEDISH, "kvitto"),
            (SWEDISH, "HOTELLKOSTNAD"),
            (GERMAN, "Zusch\u00fcsse f\u00fcr Sportvereine"),
            (GERMAN, "zuschuesse"),
            ("La facture est approuv\u00e9e par la direction avec les re\u00e7us.", "factures approuv\u00e9es"),
            ("Las facturas se pagan en el banco con los recibos de la casa.", "factura"),
        ],
    )
    async def test_words_are_found_by_the_stems_of_their_language(
        self, index: LexicalIndex, text: str, query: str
    ) -> None:
        await index.put(HOUSE, [make_passage("a", text), make_passage("b", ENGLISH)], owner="ann")
        assert await search_ids(index, query) == ["a"]

    async def test_a_title_and_a_short_part_are_in_the_language_of_their_document(self, index: LexicalIndex) -> None:
        parts = [
            make_passage("a", SWEDISH, "Fakturor", document="d"),
            make_passage("b", "Blanketter: 14", document="d"),
        ]
        await index.put(HOUSE, parts, owner="ann")
        assert await search_ids(index, "fakturan") == ["a"]
        assert await search_ids(index, "blanketten") == ["b"]

    async def test_english_is_stemmed_as_ever_beside_other_languages(self, index: LexicalIndex) -> None:
        await index.put(
            HOUSE, [make_passage("e", ENGLISH), make_passage("s", SWEDISH), make_passage("g", GERMAN)], owner="ann"
        )
        kept = (await index.get_passages(HOUSE, ["e"], owner="ann"))["e"]
        assert kept.text_terms == tuple(extract_terms(ENGLISH))
        assert await search_ids(index, "policy") == ["e"]
        # By the German stemmer "rates" is "rat".
        assert await search_ids(index, "rat") == []

    async def test_a_word_of_several_languages_is_one_word(self, index: LexicalIndex) -> None:
        held = [
            make_passage("e", "The server is in the house."),
            make_passage("s", "Det \u00e4r en server som st\u00e5r i huset och inte i garaget."),
            make_passage("o", "The garden of the house."),
        ]
        await index.put(HOUSE, held, owner="ann")
        result = await search(index, "server")
        assert sorted(hit.id for hit in result.hits) == ["e", "s"]
        assert [(hit.has_all_terms, hit.coverage) for hit in result.hits] == [(True, 1.0), (True, 1.0)]
        assert len(result.weights) == 1
        alone = PassageScorer(result).score(
            result.normalize_terms((await index.get_passages(HOUSE, ["s"], owner="ann"))["s"])
        )
        assert alone is not None
        assert alone.score == pytest.approx(next(hit.score for hit in result.hits if hit.id == "s"), rel=1e-5)

    async def test_two_forms_of_a_word_in_a_question_are_one(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", SWEDISH), make_passage("b", ENGLISH)], owner="ann")
        result = await search(index, "Vad \u00e4r hotellkostnaden bland alla hotellkostnader?")
        assert [(hit.id, len(result.weights)) for hit in result.hits] == [("a", 2)]  # "bland" is the other

    async def test_a_language_that_another_process_brings_is_searched(
        self, index: LexicalIndex, other: LexicalIndex
    ) -> None:
        await index.put(HOUSE, [make_passage("e", ENGLISH)], owner="ann")
        assert await search_ids(index, "hotellkostnader") == []
        await other.put(HOUSE, [make_passage("s", SWEDISH)], owner="ann")
        assert await search_ids(index, "hotellkostnader") == ["s"]
        await other.delete(HOUSE, ["doc-s"], owner="ann")
        assert await search_ids(index, "hotellkostnader") == []

    async def test_what_was_indexed_before_is_found_as_before_until_it_is_renewed(
        self, index: LexicalIndex, rows: LexicalRows
    ) -> None:
        old = make_passage("old", SWEDISH)
        await rows.put(
            "ann", HOUSE, [IndexedPassage(old, tuple(extract_terms(old.title)), tuple(extract_terms(old.text)))]
        )
        assert (await search_ids(index, "hotellkostnaden"), await search_ids(index, "hotellkostnader")) == (
            ["old"],
            [],
        )
        await index.put(HOUSE, [make_passage("new", f"{SWEDISH} Det g\u00e4ller i hela landet.")], owner="ann")
        assert sorted(await search_ids(index, "hotellkostnaden")) == ["new", "old"]
        assert await search_ids(index, "hotellkostnader") == ["new"]
        assert await index.refresh_terms(HOUSE, ["old", "new", "gone"], owner="ann") == 1
        assert sorted(await search_ids(index, "hotellkostnader")) == ["new", "old"]
        assert await index.refresh_terms(HOUSE, ["old", "new"], owner="ann") == 0
        assert await index.refresh_terms("elsewhere", ["old"], owner="ann") == 0

    async def test_passages_with_every_word_come_first_and_others_fill_up(self, index: LexicalIndex) -> None:
        await index.put(
            HOUSE,
            [
                make_passage("some", "refund refund refund refund, and the refund again"),
                make_passage("all", f"{'a long text about other things ' * 20} refund policy"),
                make_passage("none", "nothing of it"),
            ],
            owner="ann",
        )
        result = await search(index, "what is the refund policy?")
        assert [(hit.id, hit.has_all_terms) for hit in result.hits] == [("all", True), ("some", False)]
        assert result.hits[0].coverage == pytest.approx(1.0)
        assert 0 < result.hits[1].coverage < 1
        assert await search_ids(index, "what is the refund policy?", limit=1) == ["all"]

    async def test_the_title_counts_more_than_the_text(self, index: LexicalIndex) -> None:
        words = "one two three four five six"
        await index.put(
            HOUSE,
            [
                make_passage("text", f"invoice {words}", "seven eight"),
                make_passage("title", f"seven {words}", "invoice eight"),
                make_passage("other", words),
            ],
            owner="ann",
        )
        assert await search_ids(index, "invoice") == ["title", "text"]

    async def test_a_rare_word_says_more_than_a_common_one(self, index: LexicalIndex) -> None:
        rows = [make_passage(f"c{n}", f"common words {n}") for n in range(20)]
        await index.put(HOUSE, [*rows, make_passage("rare", "a zebra here")], owner="ann")
        result = await search(index, "common zebra", limit=3)
        assert result.hits[0].id == "rare"
        assert result.weights["zebra"] > result.weights["common"]

    async def test_nothing_in_a_query_is_syntax(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "an engine"), make_passage("b", "oil")], owner="ann")
        for query in QUERIES_LIKE_SYNTAX:
            hits = await search_ids(index, query)
            assert hits[:1] == ([] if query == '"' else ["a"]), query

    async def test_ten_thousand_words_are_a_query_too(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "word77 engine"), make_passage("b", "oil")], owner="ann")
        query = " ".join(f"word{number}" for number in range(10_000)) + " engine" * 3
        assert await search_ids(index, query) == ["a"]
        assert len((await search(index, query)).weights) <= 24

    async def test_a_query_of_stop_words_still_finds_them(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "To be or not to be"), make_passage("b", "oil")], owner="ann")
        assert await search_ids(index, "to be or not to be") == ["a"]
        assert await search_ids(index, " ... ") == []

    async def test_no_script_is_lost(self, index: LexicalIndex) -> None:
        for text, query in TEXTS_IN_SCRIPTS:
            await index.put(HOUSE, [make_passage("a", text), make_passage("b", "something else 99")], owner="ann")
            assert await search_ids(index, query) == ["a"], query

    async def test_filters_are_part_of_the_search(self, index: LexicalIndex) -> None:
        rows = [make_passage(f"n{n}", "engine engine engine", lang="en", n=n) for n in range(30)]
        few = make_passage(
            "x", "an engine far behind the others in rank, with many more words", lang="sv", n=99, ok=True
        )
        await index.put(HOUSE, [*rows, few, make_passage("t", "engine", tags=["red", "blue"])], owner="ann")
        assert await search_ids(index, "engine", limit=3, filters={"lang": "sv"}) == ["x"]
        assert await search_ids(index, "engine", filters={"lang": "en", "n": 7}) == ["n7"]
        assert await search_ids(index, "engine", filters={"n": [7.0, 9]}) == ["n7", "n9"]
        assert await search_ids(index, "engine", filters={"n": "7"}) == []
        assert await search_ids(index, "engine", filters={"tags": "blue"}) == ["t"]
        assert await search_ids(index, "engine", filters={"ok": True, "document_id": "doc-x"}) == ["x"]
        selection = await index.select(HOUSE, owner="ann", filters={"lang": "sv"})
        assert (dict(selection.documents), selection.total) == ({"x": "doc-x"}, 32)

    async def test_an_unknown_filter_is_refused_with_those_there_are(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "engine", lang="en", size=3)], owner="ann")
        with pytest.raises(BadRequestError, match=r"'colour'.*document_id, lang, size") as caught:
            await search(index, "engine", filters={"colour": "red"})
        assert caught.value.details["param"] == "filters.colour"
        with pytest.raises(BadRequestError, match="lang"):
            await search(index, "engine", filters={"lang": {"not": "en"}})
        assert (await index.search("nowhere", "engine", owner="ann", limit=3, filters={"x": 1})).hits == ()

    async def test_owners_and_collections_are_apart(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "engine of ann")], owner="ann")
        await index.put(HOUSE, [make_passage("a", "engine of bob")], owner="bob")
        await index.put("garden", [make_passage("a", "engine of the garden")], owner="ann")
        result = await search(index, "engine bob", owner="ann")
        assert [hit.indexed.passage.text for hit in result.hits] == ["engine of ann"]
        assert await search_ids(index, "engine", owner="eve") == []
        alone = (await search(index, "engine", owner="bob")).hits[0].score
        await index.put("cellar", [make_passage(f"e{n}", "engine") for n in range(50)], owner="ann")
        assert (await search(index, "engine", owner="bob")).hits[0].score == alone, "nobody else's words count"
        assert await index.delete(HOUSE, ["doc-a"], owner="eve") == 0
        assert await index.delete(HOUSE, ["doc-a"], owner="ann") == 1
        assert await search_ids(index, "engine", owner="bob") == ["a"]

    async def test_putting_an_id_again_replaces_it(self, index: LexicalIndex, other: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "engine", lang="en"), make_passage("b", "oil")], owner="ann")
        assert await search_ids(other, "engine") == ["a"]
        await index.put(HOUSE, [make_passage("a", "first"), make_passage("a", "gearbox")], owner="ann")
        assert await search_ids(other, "engine") == []
        assert await search_ids(other, "first") == []
        assert await search_ids(other, "gearbox") == ["a"]
        with pytest.raises(BadRequestError, match="'lang'"):
            await search(other, "gearbox", filters={"lang": "en"})

    async def test_what_another_process_does_is_seen(self, index: LexicalIndex, other: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage("a", "engine oil", document="d1")], owner="ann")
        assert await search_ids(other, "engine") == ["a"]
        await index.put(
            HOUSE, [make_passage("b", "engine", document="d2"), make_passage("c", "engine", document="d1")], owner="ann"
        )
        assert sorted(await search_ids(other, "engine")) == ["a", "b", "c"]
        assert await other.delete(HOUSE, ["d1", "nothing"], owner="ann") == 2
        assert await search_ids(index, "engine oil") == ["b"]
        await index.drop(HOUSE, owner="ann")
        await index.drop(HOUSE, owner="ann")
        assert await search_ids(other, "engine") == []
        await other.put(HOUSE, [make_passage("z", "engine anew")], owner="ann")
        assert await search_ids(index, "engine") == ["z"]

    async def test_passages_come_back_as_they_were_put(self, index: LexicalIndex) -> None:
        odd = Passage(
            "id ☃ 'x", "doc", "Ein Titel", "text with\nlines  and ☃", {"deep": {"a": [1, None]}, "s": "x" * 9000}
        )
        await index.put(HOUSE, [odd, make_passage("b", "nul \x00 and half \ud800")], owner="ann")
        await index.put(HOUSE, [], owner="ann")
        held = await index.get_passages(HOUSE, ["id ☃ 'x", "b", "nothing"], owner="ann")
        assert set(held) == {"id ☃ 'x", "b"}
        assert held["id ☃ 'x"].passage == odd
        assert held["id ☃ 'x"].title_terms == ("ein", "titel")
        assert held["b"].passage.text == "nul \N{REPLACEMENT CHARACTER} and half \N{REPLACEMENT CHARACTER}"
        assert await index.get_passages("nowhere", ["b"], owner="ann") == {}

    async def test_a_sample_is_from_all_over_and_steady(self, index: LexicalIndex) -> None:
        await index.put(HOUSE, [make_passage(f"p{n:03}", f"text {n}") for n in range(600)], owner="ann")
        ids = [one.chunk_id for one in await index.sample(HOUSE, owner="ann", limit=10)]
        assert ids == [one.chunk_id for one in await index.sample(HOUSE, owner="ann", limit=10)]
        assert len(ids) == 10
        assert max(ids) > "p500"
        assert await index.sample("nowhere", owner="ann", limit=10) == []
        assert len(await search_ids(index, "text", limit=600)) == 600

    async def test_what_is_added_between_searches_is_found_as_if_it_had_been_there(
        self, index: LexicalIndex, other: LexicalIndex
    ) -> None:
        """The scores equal those of an index that is made at once."""
        await index.put(
            HOUSE, [make_passage(f"a{n}", f"engine wing {'noise ' * n}", "wing") for n in range(5)], owner="ann"
        )
        assert len(await search_ids(index, "engine")) == 5
        await other.put(HOUSE, [make_passage(f"b{n}", "engine " * (n + 1), "valve") for n in range(4)], owner="ann")
        await other.put("elsewhere", [make_passage("z", "engine")], owner="ann")
        await other.put(HOUSE, [make_passage("c", "an engine valve")], owner="ann")
        for query in ("engine", "wing valve", "noise engine", "volcano"):
            warm, cold = await search(index, query, limit=20), await search(other, query, limit=20)
            assert [(hit.id, hit.has_all_terms) for hit in warm.hits] == [
                (hit.id, hit.has_all_terms) for hit in cold.hits
            ]
            assert [hit.score for hit in warm.hits] == pytest.approx([hit.score for hit in cold.hits], rel=1e-5)
            assert warm.mean_lengths == cold.mean_lengths

    async def test_what_is_replaced_or_removed_between_searches_is_gone(
        self, index: LexicalIndex, other: LexicalIndex
    ) -> None:
        await index.put(HOUSE, [make_passage(f"a{n}", f"engine number{n}") for n in range(5)], owner="ann")
        assert len(await search_ids(index, "engine number4")) == 5
        await other.put(HOUSE, [make_passage("a4", "a quiet garden")], owner="ann")
        assert await search_ids(index, "engine") == ["a0", "a1", "a2", "a3"]
        assert await search_ids(index, "garden") == ["a4"]
        assert await other.delete(HOUSE, ["doc-a4", "doc-a3"], owner="ann") == 2
        await other.put(HOUSE, [make_passage("n1", "engine engine"), make_passage("n2", "volcano")], owner="ann")
        assert sorted(await search_ids(index, "engine")) == ["a0", "a1", "a2", "n1"]
        assert (await search_ids(index, "garden"), await search_ids(index, "volcano")) == ([], ["n2"])

    async def test_a_passage_scores_alone_as_it_does_in_a_search(self, index: LexicalIndex) -> None:
        held = [make_passage(f"a{n}", f"engine {'noise ' * n} wing", "a valve" if n % 2 else "") for n in range(6)]
        await index.put(HOUSE, held, owner="ann")
        result = await search(index, "explain the engine valve noise", limit=10)
        for hit in result.hits:
            alone = PassageScorer(result).score(hit.indexed)
            assert alone is not None
            assert alone.score == pytest.approx(hit.score, rel=1e-5)
            assert alone.coverage == pytest.approx(hit.coverage)
            assert alone.has_all_terms == hit.has_all_terms
        stranger = (await index.get_passages(HOUSE, ["a0"], owner="ann"))["a0"]
        assert PassageScorer(await search(index, "volcano")).score(stranger) is None

    async def test_words_of_the_asking_count_little(self, index: LexicalIndex) -> None:
        await index.put(
            HOUSE, [make_passage("a", "The refund policy."), make_passage("b", "Explain your gardens.")], owner="ann"
        )
        hits = {hit.id: hit for hit in (await search(index, "please explain the refund policy")).hits}
        assert hits["a"].coverage > 0.75
        assert hits["b"].coverage < 0.15
