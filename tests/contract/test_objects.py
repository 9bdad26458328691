"""Stores of objects tested against their contract: a folder, and a bucket of moto's server."""

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.errors import StoreError
from agent.core.settings import Settings
from agent.storage.objects import ObjectStore
from agent.storage.objects.folder import FolderObjectStore
from agent.storage.objects.s3 import S3ObjectStore
from gateway.features.documents.bootstrap_documents import build_object_store
from tests.contract.objects_contract import ObjectStoreContract, file_of
from tests.support.s3 import KEY_ID, SECRET, S3Server, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as made:
        yield made


def bucket(server: S3Server, prefix: str, name: str = "") -> S3ObjectStore:
    return S3ObjectStore(
        name or server.bucket, prefix, endpoint=server.url, region="us-east-1", key_id=KEY_ID, secret=SECRET
    )


class TestFolder(ObjectStoreContract):
    @pytest.fixture
    def objects(self, tmp_path: Path) -> ObjectStore:
        return FolderObjectStore(tmp_path / "objects")

    @pytest.fixture
    def dead(self, tmp_path: Path) -> ObjectStore:
        (tmp_path / "in the way").write_text("a file")
        return FolderObjectStore(tmp_path / "in the way")

    def test_what_a_dead_process_left_half_written_is_removed(self, objects: ObjectStore, tmp_path: Path) -> None:
        objects.put("uploads/a", file_of(tmp_path, b"x"))
        half = tmp_path / "objects" / "uploads" / ".part-0"
        half.write_bytes(b"half")
        assert [one.name for one in objects.list("uploads")] == ["uploads/a"]
        os.utime(half, (0, time.time() - 90_000))
        objects.put("uploads/b", file_of(tmp_path, b"y"))
        assert not half.exists()


class TestBucket(ObjectStoreContract):
    @pytest.fixture
    def objects(self, server: S3Server, tmp_path: Path) -> ObjectStore:
        return bucket(server, f"{tmp_path.name}/deep")

    @pytest.fixture
    def dead(self, server: S3Server) -> ObjectStore:
        return bucket(server, "", "no-such-bucket")

    def test_an_upload_that_breaks_off_leaves_nothing(
        self, server: S3Server, objects: S3ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = file_of(tmp_path, bytes(30 * 2**20))
        real = Path.open

        class Breaks(io.BufferedReader):
            def read(self, size: int | None = -1) -> bytes:
                if self.tell() > 20 * 2**20:
                    raise OSError(5, "Input/output error")
                return super().read(size)

        monkeypatch.setattr(Path, "open", lambda self, *_: Breaks(real(self, "rb", buffering=0)))
        with pytest.raises(StoreError):
            objects.put("half", path)
        assert server.unfinished == []
        assert not any(key.endswith("half") for key in server.keys)

    def test_a_server_that_is_away_is_said_within_seconds(self, tmp_path: Path) -> None:
        with s3_server() as other:
            away = bucket(other, "x")
            other.stop()
            began = time.monotonic()
            with pytest.raises(StoreError, match="cannot be used: HTTP error"):
                away.put("a", file_of(tmp_path, b"x"))
            assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "url", ["s3://", "s3://key:secret@bucket/x", "https://bucket.example", "file://host/x", "s3:x"]
)
def test_an_address_that_is_no_store_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Exception, match=r"AGENT_OBJECTS_URL: must be s3://BUCKET/PREFIX"):
        build_object_store(Settings(_env_file=None, data_dir=tmp_path, objects_url=url))


def test_a_folder_can_be_given_by_its_address(tmp_path: Path) -> None:
    shared = build_object_store(Settings(_env_file=None, objects_url=f"file://{tmp_path}/shared%20files"))
    assert (shared.location, shared.is_shared) == (str(tmp_path / "shared files"), True)
    own = build_object_store(Settings(_env_file=None, data_dir=tmp_path))
    assert (own.location, own.is_shared) == (str(tmp_path), False)
