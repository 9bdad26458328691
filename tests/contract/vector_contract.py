"""The contract of every `VectorIndex`. A driver's test class provides `indexes`: two objects on one store, as two
processes have them (the same object if the store admits one process only).
"""

import math

import pytest

from agent.core.errors import ConflictError, NotFoundError, VectorSpaceError
from agent.core.vector_space import VectorSpace
from agent.storage.vectors import Entry, VectorIndex

SPACE = VectorSpace("test-embedder", 4)
SET = "things"


def make_entry(identity: str, *vector: float, owner: str = "ann", scope: str = "", at: float = 1.0) -> Entry:
    """An entry whose payload names it."""
    return Entry(identity, owner, vector, {"text": f"about {identity}", "n": 1}, scope, at)


async def search_ids(index: VectorIndex, *vector: float, owner: str = "ann", limit: int = 10) -> list[str]:
    """The ids of the hits, best first."""
    return [hit.item.id for hit in await index.search(SET, vector, owner=owner, limit=limit)]


def fail_to_compute() -> tuple[float, ...]:
    """A vector that nobody may ask for."""
    raise AssertionError("the vector is computed though there is nothing to compare it with")


class VectorContract:
    MANY = 1200
    """How many entries `test_many_entries` puts and deletes."""

    @pytest.fixture
    def indexes(self) -> tuple[VectorIndex, VectorIndex]:
        raise AssertionError("a driver's test class gives its own `indexes` fixture")

    @pytest.fixture
    async def index(self, indexes: tuple[VectorIndex, VectorIndex]) -> VectorIndex:
        await indexes[0].open(SET, SPACE)
        return indexes[0]

    @pytest.fixture
    def other(self, indexes: tuple[VectorIndex, VectorIndex]) -> VectorIndex:
        return indexes[1]

    async def test_the_nearest_come_first_with_their_cosine(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 3, 3, 0, 0), make_entry("c", 0, 0, 5, 0)])
        hits = await index.search(SET, (2, 0, 0, 0), owner="ann", limit=2)
        assert [hit.item.id for hit in hits] == ["a", "b"]
        assert [hit.score for hit in hits] == pytest.approx([1.0, math.sqrt(0.5)], abs=1e-5)
        assert hits[0].item.payload == {"text": "about a", "n": 1}
        assert (hits[0].item.owner, hits[0].item.scope, hits[0].item.at) == ("ann", "", 1.0)

    async def test_a_vector_may_be_computed_when_there_is_something_to_compare(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 0, 2, 0, 0)])
        hits = await index.search(SET, lambda: (0, 1, 0, 0), owner="ann", limit=1)
        assert [hit.item.id for hit in hits] == ["b"]
        assert hits[0].score == pytest.approx(1.0, abs=1e-5)

    async def test_opposites_have_a_negative_score(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", -1, 0, 0, 0)])
        hits = await index.search(SET, (1, 0, 0, 0), owner="ann", limit=1)
        assert hits[0].score == pytest.approx(-1, abs=1e-5)

    async def test_another_owner_finds_nothing(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 1, 0, 0, 0, owner="bob")])
        assert await search_ids(index, 1, 0, 0, 0) == ["a"]
        assert await search_ids(index, 1, 0, 0, 0, owner="bob") == ["b"]
        assert await search_ids(index, 1, 0, 0, 0, owner="eve") == []

    async def test_scopes_narrow_a_search_and_a_listing(self, index: VectorIndex) -> None:
        await index.put(
            SET,
            [
                make_entry("a", 1, 0, 0, 0),
                make_entry("b", 1, 1, 0, 0, scope="x"),
                make_entry("c", 1, 2, 0, 0, scope="y"),
            ],
        )
        hits = await index.search(SET, (1, 0, 0, 0), owner="ann", limit=9, scopes=["", "y"])
        assert [hit.item.id for hit in hits] == ["a", "c"]
        assert await index.search(SET, (1, 0, 0, 0), owner="ann", limit=9, scopes=["z"]) == []
        assert [item.id for item in await index.list_items(SET, owner="ann", limit=9, scopes=["x"])] == ["b"]

    async def test_putting_an_id_again_replaces_it(self, index: VectorIndex, other: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 0, 1, 0, 0)])
        assert await search_ids(other, 1, 0, 0, 0, limit=1) == ["a"]
        await index.put(SET, [make_entry("a", 0, 0, 1, 0, at=5.0)])
        hits = await other.search(SET, (0, 0, 1, 0), owner="ann", limit=1)
        assert [(hit.item.id, hit.item.at) for hit in hits] == [("a", 5.0)]
        assert len(await index.list_items(SET, owner="ann", limit=9)) == 2

    async def test_stored_vectors_can_be_had_again_by_their_owner(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 0, 3, 0, 4), make_entry("b", 1, 0, 0, 0, owner="bob")])
        stored = await index.get_vectors(SET, ["a", "b", "c"], owner="ann")
        assert stored.space == SPACE
        assert set(stored.vectors) == {"a"}
        assert list(stored.vectors["a"]) == pytest.approx([0, 0.6, 0, 0.8], abs=1e-6)
        assert (await index.get_vectors(SET, [], owner="ann")).vectors == {}
        unknown = await index.get_vectors("never-opened", ["a"], owner="ann")
        assert (unknown.space, dict(unknown.vectors)) == (None, {})

    async def test_an_id_of_another_owner_is_left_alone(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        with pytest.raises(ConflictError):
            await index.put(SET, [make_entry("z", 0, 1, 0, 0, owner="bob"), make_entry("a", 0, 1, 0, 0, owner="bob")])
        assert await index.list_items(SET, owner="bob", limit=9) == [], "all or none"
        assert await search_ids(index, 1, 0, 0, 0) == ["a"]

    async def test_what_another_process_does_is_seen(self, index: VectorIndex, other: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        assert await search_ids(other, 1, 0, 0, 0) == ["a"]
        await index.put(SET, [make_entry("b", 1, 1, 0, 0)])
        assert await search_ids(other, 1, 0, 0, 0) == ["a", "b"]
        await other.put(SET, [make_entry("c", 1, 2, 0, 0)])
        assert await search_ids(index, 1, 0, 0, 0) == ["a", "b", "c"]
        assert await index.delete(SET, ["b"], owner="ann") == 1
        assert await search_ids(other, 1, 0, 0, 0) == ["a", "c"]

    async def test_an_owner_who_had_nothing_is_found_once_there_is_something(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        for number in range(3):
            assert await search_ids(index, 1, 0, 0, 0, owner="bob") == [f"b{n}" for n in range(number)]
            await index.put(SET, [make_entry(f"b{number}", 1, number, 0, 0, owner="bob")])
        assert await search_ids(index, 1, 0, 0, 0, owner="bob") == ["b0", "b1", "b2"]

    async def test_an_owner_may_begin_anew_after_deleting_all(self, index: VectorIndex, other: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 0, 1, 0, 0)])
        for each in (index, other):
            assert await search_ids(each, 1, 0, 0, 0) == ["a", "b"]
        assert await index.delete(SET, ["a", "b"], owner="ann") == 2
        for each in (index, other):
            assert await search_ids(each, 1, 0, 0, 0) == []
        for number, each in enumerate((index, other)):
            await each.put(SET, [make_entry(f"c{number}", 1, number, 0, 0)])
            assert (
                await search_ids(index, 1, 0, 0, 0) == await search_ids(other, 1, 0, 0, 0) == ["c0", "c1"][: number + 1]
            )

    async def test_only_an_owner_deletes(self, index: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        assert await index.delete(SET, ["a"], owner="bob") == 0
        assert await index.delete(SET, ["a", "nothing"], owner="ann") == 1
        assert await index.delete(SET, ["a"], owner="ann") == 0
        assert await search_ids(index, 1, 0, 0, 0) == []

    async def test_items_come_newest_first(self, index: VectorIndex) -> None:
        for number, owner in ((1, "ann"), (2, "bob"), (3, "ann"), (4, "ann")):
            await index.put(SET, [make_entry(f"i{number}", 1, number, 0, 0, owner=owner, at=float(number))])
        assert [item.id for item in await index.list_items(SET, owner="ann", limit=2)] == ["i4", "i3"]
        assert [item.id for item in await index.list_items(SET, owner=None, limit=9)] == ["i4", "i3", "i2", "i1"]

    async def test_vectors_of_two_spaces_are_never_mixed(self, index: VectorIndex, other: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        await other.open(SET, SPACE)
        with pytest.raises(VectorSpaceError, match="another-model"):
            await other.open(SET, VectorSpace("another-model", 4))
        with pytest.raises(VectorSpaceError, match="test-embedder"):
            await other.open(SET, VectorSpace("test-embedder", 5))
        with pytest.raises(VectorSpaceError):
            await index.put(SET, [make_entry("b", 1, 0, 0)])
        with pytest.raises(VectorSpaceError):
            await index.search(SET, (1, 0, 0), owner="ann", limit=1)
        assert await search_ids(index, 1, 0, 0, 0) == ["a"]

    async def test_a_dropped_set_can_be_made_anew(self, index: VectorIndex, other: VectorIndex) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        assert await search_ids(other, 1, 0, 0, 0) == ["a"]
        await index.drop(SET)
        await index.drop(SET)
        assert await index.list_items(SET, owner="ann", limit=9) == []
        await index.open(SET, VectorSpace("another-model", 3))
        await index.put(SET, [make_entry("b", 1, 0, 0)])
        assert await search_ids(other, 1, 0, 0) == ["b"]

    async def test_a_set_that_was_never_opened_is_empty(self, index: VectorIndex) -> None:
        assert await index.search("nothing", (1, 0), owner="ann", limit=3) == []
        assert await index.search("nothing", fail_to_compute, owner="ann", limit=3) == []
        assert await index.list_items("nothing", owner=None, limit=3) == []
        assert await index.delete("nothing", ["a"], owner="ann") == 0
        with pytest.raises(NotFoundError):
            await index.put("nothing", [make_entry("a", 1, 0)])

    async def test_odd_values_survive(self, index: VectorIndex) -> None:
        odd = Entry("id with spaces ☃", "ann", (0, 0, 0, 0), {"text": "nul \x00 and ☃", "deep": {"a": [1, None, True]}})
        await index.put(SET, [odd, make_entry("a", 1, 0, 0, 0)])
        await index.put(SET, [])
        items = {item.id: item for item in await index.list_items(SET, owner="ann", limit=9)}
        assert items["id with spaces ☃"].payload == odd.payload
        assert (await search_ids(index, 1, 0, 0, 0))[0] == "a"

    async def test_many_entries(self, index: VectorIndex, other: VectorIndex) -> None:
        angles = [math.pi * number / self.MANY for number in range(self.MANY)]
        await index.put(SET, [make_entry(f"i{n}", math.cos(a), math.sin(a), 0, 0, at=n) for n, a in enumerate(angles)])
        wanted, last = self.MANY // 2, self.MANY - 1
        assert await search_ids(other, math.cos(angles[wanted]), math.sin(angles[wanted]), 0, 0, limit=1) == [
            f"i{wanted}"
        ]
        assert await index.delete(SET, [f"i{n}" for n in range(last)], owner="ann") == last
        assert await search_ids(other, 1, 0, 0, 0) == [f"i{last}"]
