"""What a store of rooms promises: a change happens as a whole or not at all, and of two changes one is told."""

import threading
from collections.abc import Callable

import pytest

from agent.core.errors import ConflictError, NotFoundError
from gateway.features.studio.engine.errors import ValidationError, VersionConflictError
from gateway.features.studio.engine.room_store import RoomStore

OLD = b"# Ours\nname: Old   # for now\n"


def accept(text: str) -> None:
    """Accepts every text."""


def refuse_at(number: int) -> Callable[[str], None]:
    """A check that refuses the text at its `number`th call: 1 before it is written, 2 as it then stands."""
    texts = list[str]()

    def check(text: str) -> None:
        texts.append(text)
        if len(texts) == number:
            raise ValidationError("not like this", "check_config")

    return check


class RoomStoreContract:
    """The contract. `stores` are two on the same rooms, as two processes have them."""

    def test_a_room_is_created_read_edited_and_deleted(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        created = one.create("old", OLD, accept)
        assert other.read("old") == created
        assert (created.data, created.is_managed) == (OLD, True)
        edited = other.edit("old", lambda text: text.replace("Old", "New"), accept, version=created.version)
        assert one.read("old") == edited
        assert edited.data == OLD.replace(b"Old", b"New")
        one.delete("old", version=edited.version)
        assert other.read("old") is None
        assert list(other.list_stamps() or {}) == []
        assert other.create("old", OLD, accept).data == OLD, "the id is free again"

    def test_erased_texts_are_gone_and_other_rooms_stay(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        for room_id in ("first", "second", "third"):
            one.create(room_id, b"name: x\nowner: anna\n", accept)
        one.create("other", OLD, accept)
        one.edit("first", lambda text: f"{text}#\n", accept, version=None)
        one.delete("second", version=None)
        one.edit("third", lambda text: text, accept, version=None, managed=False)
        before = dict(other.list_stamps() or {})
        one.erase(lambda data: b"owner: anna" in data)
        assert sorted(other.list_stamps() or {}) == ["other", "third"], "people edit the third one"
        for room_id in ("first", "second"):
            assert other.read(room_id) is None
            assert [text for text in other.list_revisions(room_id) or () if text.data is not None] == []
        again = other.create("first", b"name: y\n", accept)
        assert one.read("first") == again
        assert (one.list_stamps() or {})["first"] != before["first"]

    def test_a_stamp_changes_with_every_change(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        assert one.list_stamps() == {}
        one.create("old", OLD, accept)
        before = dict(other.list_stamps() or {})
        one.edit("old", lambda _: "name: A longer name\n", accept, version=None)
        after = dict(other.list_stamps() or {})
        assert list(before) == list(after) == ["old"]
        assert before != after

    @pytest.mark.parametrize("number", [1, 2])
    def test_what_a_check_refuses_changes_nothing(self, stores: tuple[RoomStore, RoomStore], number: int) -> None:
        one, other = stores
        created = one.create("old", OLD, accept)
        with pytest.raises(ValidationError, match="not like this"):
            one.edit("old", lambda _: "name: New\n", refuse_at(number), version=None, managed=False)
        assert other.read("old") == created
        with pytest.raises(ValidationError, match="not like this"):
            one.create("new", b"name: New\n", refuse_at(number))
        assert other.read("new") is None
        assert list(other.list_stamps() or {}) == ["old"]

    def test_a_change_that_fails_changes_nothing(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        created = one.create("old", OLD, accept)

        def fail(_: str) -> str:
            raise ValidationError("cannot", "yaml_parse")

        with pytest.raises(ValidationError, match="cannot"):
            one.edit("old", fail, accept, version=None)
        assert other.read("old") == created

    def test_the_mark_is_changed_with_and_without_the_text(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        one.create("old", OLD, accept)
        assert one.edit("old", lambda text: text, accept, version=None, managed=False).is_managed is False
        stored = other.read("old")
        assert stored is not None
        assert (stored.is_managed, stored.data) == (False, OLD)

    def test_an_id_that_exists_and_one_that_does_not(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        one.create("old", OLD, accept)
        with pytest.raises(ConflictError, match="choose another id"):
            other.create("old", b"name: Second\n", accept)
        with pytest.raises(NotFoundError):
            other.edit("gone", lambda text: text, accept, version=None)
        with pytest.raises(NotFoundError):
            other.delete("gone", version=None)
        assert other.read("gone") is None

    def test_an_outdated_version_is_refused(self, stores: tuple[RoomStore, RoomStore]) -> None:
        one, other = stores
        created = one.create("old", OLD, accept)
        edited = one.edit("old", lambda _: "name: New\n", accept, version=created.version)
        with pytest.raises(VersionConflictError):
            other.edit("old", lambda _: "name: Newer\n", accept, version=created.version)
        with pytest.raises(VersionConflictError):
            other.delete("old", version=created.version)
        assert one.read("old") == edited

    def test_changes_of_two_at_once_are_all_made_or_told(self, stores: tuple[RoomStore, RoomStore]) -> None:
        created = stores[0].create("old", b"name: x\n", accept)
        results: list[str] = []

        def append(store: RoomStore, number: int) -> None:
            try:
                store.edit("old", lambda text: f"{text}# {number}\n", accept, version=created.version)
                results.append("made")
            except VersionConflictError:
                results.append("told")

        threads = [threading.Thread(target=append, args=(stores[number % 2], number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == ["made", *["told"] * 7]
        unconditional = [
            threading.Thread(
                target=store.edit, args=("old", lambda text: f"{text}#\n", accept), kwargs={"version": None}
            )
            for store in stores * 4
        ]
        for thread in unconditional:
            thread.start()
        for thread in unconditional:
            thread.join()
        stored = stores[0].read("old")
        assert stored is not None
        assert stored.data.count(b"#") == 1 + 8, "none is lost"
