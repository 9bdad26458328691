"""The contract of `ObjectStore`. A driver's test class provides `objects`, and `dead`: a store that cannot be used."""

import hashlib
from pathlib import Path
from random import Random

import pytest

from agent.core.errors import NotFoundError, StoreError
from agent.storage.objects import ObjectInfo, ObjectStore


def file_of(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return path


class ObjectStoreContract:
    @pytest.fixture
    def objects(self) -> ObjectStore:
        raise AssertionError("a driver's test class gives its own `objects` fixture")

    @pytest.fixture
    def dead(self) -> ObjectStore:
        raise AssertionError("a driver's test class gives its own `dead` fixture")

    def test_what_is_put_is_read_replaced_listed_and_deleted(self, objects: ObjectStore, tmp_path: Path) -> None:
        objects.put("uploads/ann/1", file_of(tmp_path, b"one"))
        objects.put("uploads/ann/2", file_of(tmp_path, b""))
        objects.put("uploads/annabel/3", file_of(tmp_path, b"three"))
        with objects.open("uploads/ann/1") as file:
            assert (file.read(2), file.read(), file.seek(0), file.read()) == (b"on", b"e", 0, b"one")
        with objects.open("uploads/ann/2") as file:
            assert file.read() == b""
        assert list(objects.list("uploads/ann")) == [ObjectInfo("uploads/ann/1", 3), ObjectInfo("uploads/ann/2", 0)]
        objects.put("uploads/ann/1", file_of(tmp_path, b"another"))
        objects.fetch("uploads/ann/1", tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == b"another"
        for _ in range(2):
            objects.delete("uploads/ann/1")
        assert [one.name for one in objects.list("uploads")] == ["uploads/ann/2", "uploads/annabel/3"]
        assert list(objects.list("nothing")) == []
        for _ in range(2):
            objects.delete_all("uploads/ann")
        assert [one.name for one in objects.list("uploads")] == ["uploads/annabel/3"]

    def test_what_is_put_stays_when_its_file_changes_or_goes(self, objects: ObjectStore, tmp_path: Path) -> None:
        path = file_of(tmp_path, b"as it was")
        objects.put("a", path)
        path.unlink()
        path.write_bytes(b"changed")
        with objects.open("a") as file:
            assert file.read() == b"as it was"

    def test_what_is_not_there_is_said_and_leaves_no_file(self, objects: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="uploads/none is not in"):
            objects.open("uploads/none").close()
        with pytest.raises(NotFoundError):
            objects.fetch("uploads/none", tmp_path / "fetched")
        with pytest.raises(StoreError):
            objects.put("uploads/none", tmp_path / "no file")
        assert not (tmp_path / "fetched").exists()
        assert list(objects.list("uploads")) == []

    @pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "ä", "x" * 600])
    def test_only_plain_names_are_names(self, objects: ObjectStore, tmp_path: Path, name: str) -> None:
        with pytest.raises(ValueError, match="not the name of an object"):
            objects.put(name, file_of(tmp_path, b"x"))
        with pytest.raises(ValueError, match="not the name of an object"):
            objects.open(name).close()

    def test_a_large_file_comes_back_whole_and_can_be_sought(self, objects: ObjectStore, tmp_path: Path) -> None:
        data = Random(7).randbytes(17 * 2**20 + 3)
        objects.put("large", file_of(tmp_path, data))
        with objects.open("large") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == hashlib.sha256(data).hexdigest()
            assert file.seek(2**20) == 2**20
            assert file.read(5) == data[2**20 : 2**20 + 5]

    def test_it_says_whether_it_can_be_used(self, objects: ObjectStore, dead: ObjectStore, tmp_path: Path) -> None:
        assert objects.check() == objects.check(writes=True) == objects.location
        assert list(objects.list("check")) == []
        for use in (
            dead.check,
            lambda: dead.check(writes=True),
            lambda: dead.put("a", file_of(tmp_path, b"x")),
            lambda: dead.delete("a"),
            lambda: list(dead.list("a")),
        ):
            with pytest.raises(StoreError, match="cannot be used") as caught:
                use()
            assert dead.location in caught.value.message
            assert "secret" not in caught.value.message
